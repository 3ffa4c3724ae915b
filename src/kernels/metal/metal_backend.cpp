#include "kernels/metal/metal_backend.h"

namespace holdfast::kernels::metal {

MetalBackend& MetalBackend::get() {
  static auto* backend = new MetalBackend;  // as long as the process: queues may use it at exit
  return *backend;
}

}  // namespace holdfast::kernels::metal
