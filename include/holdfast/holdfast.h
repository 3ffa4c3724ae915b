// Everything public, in one header.
#pragma once

#include <holdfast/allocator.h>
#include <holdfast/array.h>
#include <holdfast/compile.h>
#include <holdfast/device.h>
#include <holdfast/dtype.h>
#include <holdfast/einsum.h>
#include <holdfast/encoder.h>
#include <holdfast/errors.h>
#include <holdfast/event.h>
#include <holdfast/export.h>
#include <holdfast/fast.h>
#include <holdfast/fft.h>
#include <holdfast/io.h>
#include <holdfast/kernel_cache.h>
#include <holdfast/label.h>
#include <holdfast/linalg.h>
#include <holdfast/memory.h>
#include <holdfast/metal.h>
#include <holdfast/ops.h>
#include <holdfast/primitive.h>
#include <holdfast/random.h>
#include <holdfast/stream.h>
#include <holdfast/transforms.h>
#include <holdfast/types.h>
#include <holdfast/utils.h>
