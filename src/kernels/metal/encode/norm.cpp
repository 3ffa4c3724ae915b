#include <optional>

#include "kernels/metal/encode/rows.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

// As in norm.metal.
struct Norm {
  float epsilon;
  bool is_centred, has_weight, has_bias, aligned;
};

}  // namespace

void MetalBackend::norm(Encoder& encoder, NormKind kind, float epsilon, const array& in,
                        const array* weight, const array* bias, array& out) {
  if (out.size() == 0) return encoder.allocate(out);
  const array x = make_rows_walkable(encoder, in);
  std::optional<array> weights, biases;
  if (weight) weights = make_dense(encoder, *weight);
  if (bias) biases = make_dense(encoder, *bias);
  // A temporary copy is not donatable: its memory is reused by later ops of the queue.
  if (in.flags().row_contiguous) {
    allocate_or_take(encoder, in, out);
  } else {
    encoder.allocate(out);
  }
  const Norm norm{epsilon, kind == NormKind::layer, weight != nullptr, bias != nullptr,
                  (!weights || is_aligned(*weights, 16)) && (!biases || is_aligned(*biases, 16))};
  const RowLaunch rows(x, out);
  const std::string dtype = dtype_name(x.dtype().val());
  auto parameters = [&](Launch& launch) {
    // A row that is missing is not read.
    weights ? launch.input(*weights) : launch.list(Extents{});
    biases ? launch.input(*biases) : launch.list(Extents{});
  };
  if (!rows.is_long()) {
    Launch launch(encoder, "norm", "norm_rows_" + dtype);
    launch.with(x, output(out));
    parameters(launch);
    launch.with(norm, rows.rows(), rows.extents());
    return launch.groups(rows.groups(), rows.threadgroup());
  }
  array states = make_temporary(encoder, static_cast<size_t>(rows.states()) * 16);
  Launch(encoder, "norm", "norm_states_" + dtype)
      .with(x, output(states), rows.rows(), rows.extents())
      .groups(rows.groups(), rows.threadgroup());
  Launch launch(encoder, "norm", "norm_write_" + dtype);
  launch.with(x, output(out));
  parameters(launch);
  launch.with(states, norm, rows.rows(), rows.extents());
  launch.groups(rows.groups(), rows.threadgroup());
}

}  // namespace holdfast::kernels::metal
