// What a compiled kernel expects of its dispatch, as bytes: a part of every target's binaries.
#pragma once

#include "base/byte_stream.h"
#include "msl/kernel_source.h"

namespace holdfast::msl {

void write_interface(ByteWriter& out, const KernelInterface& interface);
// The reader is not ok() when the bytes are not as write_interface writes them.
void read_interface(ByteReader& in, KernelInterface& interface);

}  // namespace holdfast::msl
