// Exported functions with custom kernels.
#include <holdfast/holdfast.h>

#include "kernel_library/temporary_folder.h"
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("export: custom kernels are in the file") {
  if (!metal::is_available()) return;
  TemporaryFolder folder;
  std::string file = folder.path() + "/f";
  std::function<Args(const Args&)> f = [](const Args& x) {
    auto kernel = fast::metal_kernel("scaled", {"x"}, {"y", "z"},
                                     "uint i = thread_position_in_grid.x;"
                                     "y[i] = twice(x[i]) * T(k); if (flag) z[0] = x_shape[0];",
                                     "inline float twice(float v) { return 2 * v; }");
    return kernel({x[0]}, {x[0].shape(), {1}}, {float32, int32}, {4, 1, 1}, {4, 1, 1},
                  {{"T", float32}, {"k", 3}, {"flag", true}}, 7.0f, false, {});
  };
  array x({1.0f, 2.0f, 3.0f, 4.0f});
  export_function(file, f, {x});
  Args got = import_function(file)({x});
  check_values<float>(got[0], {4}, {6, 12, 18, 24});
  check_values<int>(got[1], {1}, {4});
}
