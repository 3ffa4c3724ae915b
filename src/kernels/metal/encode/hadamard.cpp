#include "kernels/plan/hadamard.h"

#include <algorithm>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/hadamard_parameters.h"

constexpr int64_t hadamard_elements = 8192;

// Passes over rows that do not fit threadgroup memory: the rest of the power of two, 16 at a time,
// and then the factor.
SmallVector<int, 8> hadamard_passes(HadamardSize size, int64_t done) {
  SmallVector<int, 8> passes;
  for (int64_t left = size.power / done; left > 1;) {
    const int pass = left >= 16 ? 16 : 2;
    passes.push_back(pass);
    left /= pass;
  }
  if (size.factor > 1) passes.push_back(size.factor);
  return passes;
}

}  // namespace

void MetalBackend::hadamard(Encoder& encoder, float scale, bool transposed, const array& in,
                            array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const array rows = make_dense(encoder, in);
  const HadamardSize size = hadamard_size(out.shape(-1));
  const HadamardSigns signs = hadamard_signs(size.factor, transposed);
  const std::string dtype = dtype_name(out.dtype().val());
  const auto elements = static_cast<int64_t>(out.size());
  const int64_t length = out.shape(-1);
  const bool is_long = length > hadamard_elements;

  // Of long rows, pieces are rows of their own first.
  const int64_t piece = is_long ? std::min<int64_t>(size.power, hadamard_elements) : length;
  const auto power = static_cast<uint32_t>(is_long ? piece : size.power);
  const int64_t count = elements / piece;
  const Hadamard hadamard{fit(count),
                          fit(piece),
                          is_long ? 1 : static_cast<uint32_t>(size.factor),
                          power,
                          is_long ? 1.0f : scale,
                          false};
  const int64_t together =
      std::clamp<int64_t>(hadamard_elements / 2 / piece, 1, std::max<int64_t>(1, count / 264));
  auto start = [&](const std::string& entry, const array& from, array& to) {
    Hadamard placed = hadamard;
    placed.aligned = is_aligned(from, 16) && together * piece % 8 == 0;
    Launch(encoder, "hadamard", entry)
        .with(from, output(to), placed, signs, static_cast<uint32_t>(together))
        .over(grid_length(encoder, divide_up(count, together), 256), 256);
  };
  if (!is_long) return start("hadamard_rows_" + dtype, rows, out);

  // Between passes, elements are float32.
  array between = out.dtype() == float32 ? out : array(out.shape(), float32, nullptr, {});
  if (out.dtype() != float32) encoder.allocate(between);
  start((out.dtype() == float32 ? "hadamard_rows_" : "hadamard_wide_") + dtype, rows, between);
  auto stride = static_cast<uint64_t>(piece);
  const SmallVector<int, 8> passes = hadamard_passes(size, piece);
  for (size_t i = 0; i < passes.size(); ++i) {
    const bool is_last = i + 1 == passes.size();
    const uint64_t threads = static_cast<uint64_t>(elements / passes[i] / 4);
    const float factor = is_last ? scale : 1.0f;
    Launch(encoder, "hadamard",
           "hadamard_pass_" + std::to_string(passes[i]) + '_' + (is_last ? dtype : "float32"))
        .with(between, output(is_last ? out : between), threads, stride, factor, signs)
        .over(static_cast<int64_t>(threads));
    stride *= static_cast<uint64_t>(passes[i]);
  }
}

}  // namespace holdfast::kernels::metal
