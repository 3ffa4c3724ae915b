// The namespace of MLX's programs: everything of holdfast under the name mlx::core.
//
// A using-directive, not an alias: programs reopen mlx::core to add their own. The nested
// namespaces are aliases, since a second namespace of that name would make every use of it
// ambiguous.
#pragma once

#include <cassert>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast {
namespace allocator {}
namespace detail {}
namespace distributed {}
namespace fast {}
namespace fft {}
namespace io {}
namespace linalg {}
namespace metal {}
namespace random {}
}  // namespace holdfast

namespace mlx::core {

using namespace ::holdfast;

namespace allocator = ::holdfast::allocator;
namespace detail = ::holdfast::detail;
namespace distributed = ::holdfast::distributed;
namespace fast = ::holdfast::fast;
namespace fft = ::holdfast::fft;
namespace io = ::holdfast::io;
namespace linalg = ::holdfast::linalg;
namespace metal = ::holdfast::metal;
namespace random = ::holdfast::random;

}  // namespace mlx::core
