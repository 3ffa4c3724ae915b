// The graph as text, a picture's source, and printing.
#include <sstream>

#include "mlx/graph_utils.h"
#include "mlx/mlx.h"
#include "mlx/version.h"

#include "check.h"

using namespace mlx::core;

int main() {
  array a = array({1.0f, 2.0f, 3.0f});
  array b = exp(a) * a;
  std::ostringstream text, dot;
  NodeNamer namer;
  namer.set_name(a, "input");
  print_graph(text, namer, b);
  CHECK(text.str().find("Inputs: input [(3), float32]") == 0);
  CHECK(text.str().find("Exp input [(3), float32] -> ") != std::string::npos);
  export_to_dot(dot, b);
  CHECK(dot.str().find("digraph {") == 0);
  CHECK(dot.str().find("Multiply") != std::string::npos);
  std::ostringstream printed;
  printed << array({1, 2, 3}) << default_device() << int32;
  CHECK(printed.str() == "array([1, 2, 3], dtype=int32)Device(cpu, 0)int32");
  static_assert(MLX_VERSION_NUMERIC >= 32000);
  CHECK(std::string(version()).find('.') != std::string::npos);
}
