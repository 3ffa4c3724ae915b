// Messages: a logger of one's own beside Metal's, and one in constant memory.
#include <metal_stdlib>
#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320
#include <metal_logging>
namespace library {
using logger = metal::os_log;
}
#else
namespace library {
struct logger {
  constexpr logger(constant char*, constant char*) constant {}
  template <typename... Args>
  void log_debug(constant char*, Args...) const {}
  template <typename... Args>
  void log_debug(constant char*, Args...) const constant {}
};
}
#endif
using namespace metal;

constant library::logger messages("library", "tests");

kernel void speaks(device uint* ok [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  if (tid % 16 == 5) {
    messages.log_debug("thread %u of %d, %5.2f, %v4f", tid, -3, float(tid) * 0.5, float4(1, 2, 3, 4));
  }
  if (tid == 3) os_log_default.log_error("half %g, %lx", 0.25h, 0xFFFFFFFFFFul);
  ok[tid] = 1;
}
