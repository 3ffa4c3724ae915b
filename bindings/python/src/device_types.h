// Device, Stream, ThreadLocalStream and StreamContext. DeviceType is an enum of Python's, which the
// package makes and hands in.
#pragma once

#include <optional>

#include <holdfast/stream.h>

#include "python.h"

namespace holdfast::python {

void add_device_types(PyObject* module);
// A Stream, ThreadLocalStream, Device or DeviceType; none for anything else.
std::optional<StreamOrDevice> stream_from(PyObject* object);
PyObject* new_stream_object(const Stream& stream);

}  // namespace holdfast::python
