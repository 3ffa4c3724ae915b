// An op with two kernels: what was bound for the first is still there for the second, as on Metal.
// Validation tells, when it was not meant.
#include <holdfast/validation.h>

#include "mlx/allocator.h"
#include "mlx/backend/metal/device.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

#include "check.h"

namespace mx = mlx::core;

namespace {

constexpr const char* source = R"(
[[kernel]] void doubled(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }
[[kernel]] void increased(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) { y[i] = x[i] + 1; }
)";

// 2x + 1, when the second kernel is given what the first one wrote; x + 1 when that is forgotten.
class TwoSteps : public mx::Primitive {
 public:
  TwoSteps(mx::Stream stream, bool binds_again)
      : mx::Primitive(stream), binds_again_(binds_again) {}
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("[TwoSteps] runs on GPU streams");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    auto& device = mx::metal::device(stream().device);
    auto& encoder = device.get_command_encoder(stream().index);
    auto library = device.get_library("two_steps", [] { return std::string(source); });
    outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
    mx::array between(outputs[0].shape(), outputs[0].dtype(), nullptr, {});
    between.set_data(mx::allocator::malloc(between.nbytes()));
    MTL::Size grid(outputs[0].size(), 1, 1);
    encoder.set_compute_pipeline_state(device.get_kernel("doubled", library));
    encoder.set_input_array(inputs[0], 0);
    encoder.set_output_array(between, 1);
    encoder.dispatch_threads(grid, grid);
    encoder.set_compute_pipeline_state(device.get_kernel("increased", library));
    if (binds_again_) encoder.set_input_array(between, 0);
    encoder.set_output_array(outputs[0], 1);
    encoder.dispatch_threads(grid, grid);
    encoder.add_temporary(between);
  }
  const char* name() const override { return "TwoSteps"; }

 private:
  bool binds_again_;
};

std::vector<holdfast::validation::Report> reports_of(bool binds_again, float expected) {
  holdfast::validation::Scope scope;
  mx::array x({1.0f, 2.0f, 3.0f});
  mx::array y(x.shape(), x.dtype(),
              std::make_shared<TwoSteps>(mx::default_stream(mx::Device::gpu), binds_again), {x});
  mx::eval(y);
  CHECK(y.data<float>()[2] == expected);
  return scope.reports();
}

}  // namespace

int main() {
  CHECK(reports_of(true, 7).empty());
  auto reports = reports_of(false, 4);
  CHECK(reports.size() == 1);
  CHECK(reports[0].id == "bindings.kept");
  CHECK(reports[0].field("op") == "TwoSteps");
  CHECK(reports[0].field("kernel") == "increased");
  CHECK(reports[0].field("argument") == "x");
  CHECK(reports[0].field("other_kernel") == "doubled");
  return 0;
}
