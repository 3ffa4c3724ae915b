// Limits and counters of memory.
#include "mlx/memory.h"
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

int main() {
  mx::clear_cache();
  size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  {
    mx::array a = mx::ones({1024, 1024});
    mx::eval(a);
    CHECK(mx::get_active_memory() >= before + (4u << 20));
    CHECK(mx::get_peak_memory() >= before + (4u << 20));
  }
  CHECK(mx::get_active_memory() < before + (4u << 20));
  CHECK(mx::get_cache_memory() > 0);
  mx::clear_cache();
  CHECK(mx::get_cache_memory() == 0);

  size_t old_cache = mx::set_cache_limit(1 << 20);
  CHECK(mx::set_cache_limit(old_cache) == (1 << 20));
  size_t old_limit = mx::set_memory_limit(before + (64u << 20));
  CHECK(mx::get_memory_limit() == before + (64u << 20));
  try {
    mx::eval(mx::ones({1024, 1024, 64}));
    CHECK(false);
  } catch (const std::exception&) {
  }
  mx::set_memory_limit(old_limit);
  mx::array a = mx::ones({16}) + 1.0f;
  CHECK(mx::sum(a).item<float>() == 32.0f);
}
