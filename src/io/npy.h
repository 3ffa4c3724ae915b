// The npy format inside a file: used by npy and npz.
#pragma once

#include <memory>
#include <string>

#include "io/support.h"

namespace holdfast::io {

// An npy file of `length` bytes that begins at `offset` of the reader.
array load_npy(const char* op, std::shared_ptr<Reader> reader, size_t offset, size_t length,
               StreamOrDevice s);
// The header of an npy file for an array whose elements follow in row-major order.
std::string npy_header(const array& a);

}  // namespace holdfast::io
