// Products that are composed of matmul.
#include <algorithm>
#include <numeric>

#include "ops/dynamic_shape.h"
#include "ops/inner.h"
#include "ops/support.h"

namespace holdfast {

namespace {

Dtype checked_inexact(const char* op, const array& a, const array& b) {
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!issubdtype(dtype, inexact)) {
    throw std::invalid_argument(text("[", op, "] expected a floating or complex dtype, got ",
                                     a.dtype(), " and ", b.dtype()));
  }
  return dtype;
}

void check_matrices(const char* op, const array& a, const array& b) {
  if (a.ndim() < 2 || b.ndim() < 2 || a.shape(-1) != b.shape(-2)) {
    throw std::invalid_argument(
        text("[", op, "] expected matrices with matching inner dimensions, got shapes ", a.shape(),
             " and ", b.shape()));
  }
}

// A mask with one element per block, repeated to `rows` x `columns`.
array expand_mask(const array& mask, int block, int rows, int columns, const char* name,
                  StreamOrDevice s) {
  auto blocks = [&](int size) { return size / block + (size % block != 0); };
  int down = blocks(rows), across = blocks(columns);
  if (mask.ndim() < 2 || mask.shape(-2) != down || mask.shape(-1) != across) {
    throw std::invalid_argument(text("[block_masked_mm] expected ", name, " with last dimensions (",
                                     down, ",", across, "), got shape ", mask.shape()));
  }
  Shape batch(mask.shape().begin(), mask.shape().end() - 2);
  Shape wide = batch, target = batch, start(batch.size() + 2, 0), stop = batch;
  for (int dim : {down, block, across, block}) wide.push_back(dim);
  target.push_back(safe_cast(int64_t{down} * block, "block_masked_mm"));
  target.push_back(safe_cast(int64_t{across} * block, "block_masked_mm"));
  stop.push_back(rows);
  stop.push_back(columns);
  array expanded = broadcast_here(expand_dims(mask, std::vector<int>{-3, -1}, s), wide, s);
  return slice(reshape_here(expanded, target, s), start, stop, s);
}

array apply_mask(const array& a, const std::optional<array>& mask, int block, const char* name,
                 StreamOrDevice s) {
  if (!mask) return a;
  array expanded = expand_mask(*mask, block, a.shape(-2), a.shape(-1), name, s);
  if (mask->dtype() == bool_) return where(expanded, a, array(0, a.dtype()), s);
  return multiply(a, astype(expanded, a.dtype(), s), s);
}

// Inputs: a, b, segments (uint32 pairs).
class SegmentedMatmul final : public Recorded<SegmentedMatmul, Op> {
 public:
  using Recorded::Recorded;
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  std::vector<array> decomposed(const std::vector<array>& inputs) override;
  const char* name() const override { return "SegmentedMM"; }
  auto members() const { return std::tie(); }
};

void SegmentedMatmul::encode(Encoder& encoder, const std::vector<array>& inputs,
                             std::vector<array>& outputs) {
  kernels::backend_of(encoder).segmented_matmul(encoder, inputs[0], inputs[1], inputs[2],
                                                outputs[0]);
}

// What lies outside a segment counts as zero.
std::vector<array> SegmentedMatmul::decomposed(const std::vector<array>& inputs) {
  const array &a = inputs[0], &segments = inputs[2];
  Stream s = stream();
  Shape limits(segments.shape().begin(), segments.shape().end() - 1);
  limits.push_back(1);
  limits.push_back(1);
  auto limit = [&](int which) { return reshape_here(take(segments, which, -1, s), limits, s); };
  array places = arange(0, static_cast<double>(a.shape(1)), uint32, s);
  array inside = logical_and(greater_equal(places, limit(0), s), less(places, limit(1), s), s);
  return {matmul(where(inside, a, array(0, a.dtype()), s), inputs[1], s)};
}

}  // namespace

array addmm(array c, array a, array b, const float& alpha, const float& beta, StreamOrDevice s) {
  return addmm(c, a, b, double{alpha}, double{beta}, s);
}

// Half types are rounded once: neither the product nor what is added to it is, before the sum.
array addmm(const array& c, const array& a, const array& b, double alpha, double beta,
            StreamOrDevice s) {
  Dtype dtype = promote_types(promote_types(a.dtype(), b.dtype()), c.dtype());
  if (!issubdtype(dtype, inexact)) {
    throw std::invalid_argument(text("[addmm] expected a floating or complex dtype, got ", dtype));
  }
  Dtype compute = computed_in(dtype);
  array product = matmul(astype(a, dtype, s), astype(b, dtype, s), s, true);
  if (broadcast_shapes_for("addmm", c.shape(), product.shape()) != product.shape()) {
    throw std::invalid_argument(
        text("[addmm] expected c that broadcasts to ", product.shape(), ", got shape ", c.shape()));
  }
  array added = astype(astype(c, dtype, s), compute, s);
  if (alpha != 1) product = multiply(std::move(product), array(alpha, compute), s);
  if (beta != 1) added = multiply(std::move(added), array(beta, compute), s);
  return astype(add(std::move(product), std::move(added), s), dtype, s);
}

array block_masked_mm(array a, array b, int block_size, std::optional<array> mask_out,
                      std::optional<array> mask_lhs, std::optional<array> mask_rhs,
                      StreamOrDevice s) {
  bool has_masks = mask_out || mask_lhs || mask_rhs;
  if (has_masks && block_size != 32 && block_size != 64) {
    throw std::invalid_argument(
        text("[block_masked_mm] expected a block size of 32 or 64, got ", block_size));
  }
  check_matrices("block_masked_mm", a, b);
  Dtype dtype = checked_inexact("block_masked_mm", a, b);
  auto scales = [](const std::optional<array>& mask) { return mask && mask->dtype() != bool_; };
  // Half types are rounded once, after masks that are factors.
  Dtype compute = scales(mask_lhs) || scales(mask_rhs) ? computed_in(dtype) : dtype;
  array left = apply_mask(astype(std::move(a), compute, s), mask_lhs, block_size, "mask_lhs", s);
  array right = apply_mask(astype(std::move(b), compute, s), mask_rhs, block_size, "mask_rhs", s);
  array product = matmul(left, right, s, scales(mask_out));
  return astype(apply_mask(product, mask_out, block_size, "mask_out", s), dtype, s);
}

array gather_mm(array a, array b, std::optional<array> lhs_indices,
                std::optional<array> rhs_indices, bool /*sorted_indices*/, StreamOrDevice s) {
  if (!lhs_indices && !rhs_indices) return matmul(a, b, s);
  check_matrices("gather_mm", a, b);
  Dtype dtype = checked_inexact("gather_mm", a, b);
  auto gathered = [&](const array& matrices, const std::optional<array>& given, const char* what) {
    if (!given) return astype(matrices, dtype, s);
    if (!issubdtype(given->dtype(), integer)) {
      throw std::invalid_argument(
          text("[gather_mm] expected integer ", what, ", got ", given->dtype()));
    }
    return astype(take(as_one_batch(matrices, s), *given, 0, s), dtype, s);
  };
  return matmul(gathered(a, lhs_indices, "lhs_indices"), gathered(b, rhs_indices, "rhs_indices"),
                s);
}

array segmented_mm(array a, array b, array segments, StreamOrDevice s) {
  if (a.ndim() != 2 || b.ndim() != 2) {
    throw std::invalid_argument(
        text("[segmented_mm] expected two matrices, got shapes ", a.shape(), " and ", b.shape()));
  }
  check_matrices("segmented_mm", a, b);
  Dtype dtype = checked_inexact("segmented_mm", a, b);
  if (segments.ndim() < 1 || segments.shape(-1) != 2 || !issubdtype(segments.dtype(), integer)) {
    throw std::invalid_argument(text("[segmented_mm] expected integer segments (..., 2), got ",
                                     segments.dtype(), " of shape ", segments.shape()));
  }
  Shape shape(segments.shape().begin(), segments.shape().end() - 1);
  shape.push_back(a.shape(0));
  shape.push_back(b.shape(1));
  checked_size("segmented_mm", shape, dtype);
  return make_node<SegmentedMatmul>(std::move(shape), dtype,
                                    {astype(std::move(a), dtype, s), astype(std::move(b), dtype, s),
                                     astype(std::move(segments), uint32, s)},
                                    s);
}

array tensordot(const array& a, const array& b, const int axis, StreamOrDevice s) {
  if (axis < 0 || axis > static_cast<int>(std::min(a.ndim(), b.ndim()))) {
    throw std::invalid_argument(text("[tensordot] expected 0 to ", std::min(a.ndim(), b.ndim()),
                                     " axes to sum over, got ", axis));
  }
  std::vector<int> axes_a(static_cast<size_t>(axis)), axes_b(axes_a.size());
  std::iota(axes_a.begin(), axes_a.end(), static_cast<int>(a.ndim()) - axis);
  std::iota(axes_b.begin(), axes_b.end(), 0);
  return tensordot(a, b, axes_a, axes_b, s);
}

array tensordot(const array& a, const array& b, const std::vector<int>& axes_a,
                const std::vector<int>& axes_b, StreamOrDevice s) {
  Dtype dtype = checked_inexact("tensordot", a, b);
  if (axes_a.size() != axes_b.size()) {
    throw std::invalid_argument(
        text("[tensordot] expected as many axes of a as of b, got ", axes_a, " and ", axes_b));
  }
  checked_axes("tensordot", axes_a, a.ndim());
  checked_axes("tensordot", axes_b, b.ndim());
  // The summed axes of a go to its end, those of b to its front, in the order they are given.
  std::vector<int> order_a, order_b, summed_a, summed_b;
  Shape shape;
  for (size_t i = 0; i < axes_a.size(); ++i) {
    summed_a.push_back(checked_axis("tensordot", axes_a[i], a.ndim()));
    summed_b.push_back(checked_axis("tensordot", axes_b[i], b.ndim()));
    if (a.shape(summed_a.back()) != b.shape(summed_b.back())) {
      throw std::invalid_argument(text("[tensordot] axis ", axes_a[i], " of a (",
                                       a.shape(summed_a.back()), ") must match axis ", axes_b[i],
                                       " of b (", b.shape(summed_b.back()), ")"));
    }
  }
  int depth = 1, rows = 1, columns = 1;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    if (std::find(summed_a.begin(), summed_a.end(), axis) != summed_a.end()) continue;
    order_a.push_back(axis);
    shape.push_back(a.shape(axis));
    rows *= a.shape(axis);
  }
  for (int axis : summed_a) {
    order_a.push_back(axis);
    depth *= a.shape(axis);
  }
  order_b = summed_b;
  for (int axis = 0; axis < static_cast<int>(b.ndim()); ++axis) {
    if (std::find(summed_b.begin(), summed_b.end(), axis) != summed_b.end()) continue;
    order_b.push_back(axis);
    shape.push_back(b.shape(axis));
    columns *= b.shape(axis);
  }
  array left = reshape_here(transpose(astype(a, dtype, s), order_a, s), {rows, depth}, s);
  array right = reshape_here(transpose(astype(b, dtype, s), order_b, s), {depth, columns}, s);
  return reshape_here(matmul(left, right, s), shape, s);
}

array outer(const array& a, const array& b, StreamOrDevice s) {
  return multiply(reshape_here(a, {static_cast<int>(a.size()), 1}, s), flatten(b, s), s);
}

array inner(const array& a, const array& b, StreamOrDevice s) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b, s);
  if (a.shape(-1) != b.shape(-1)) {
    throw std::invalid_argument(text("[inner] last dimension of a (", a.shape(-1),
                                     ") must match that of b (", b.shape(-1), ")"));
  }
  return tensordot(a, b, {-1}, {-1}, s);
}

array kron(const array& a, const array& b, StreamOrDevice s) {
  size_t ndim = std::max(a.ndim(), b.ndim());
  Shape wide_a, wide_b, shape;
  for (size_t i = 0; i < ndim; ++i) {
    int dim_a = i + a.ndim() < ndim ? 1 : a.shape(static_cast<int>(i + a.ndim() - ndim));
    int dim_b = i + b.ndim() < ndim ? 1 : b.shape(static_cast<int>(i + b.ndim() - ndim));
    wide_a.push_back(dim_a);
    wide_a.push_back(1);
    wide_b.push_back(1);
    wide_b.push_back(dim_b);
    shape.push_back(safe_cast(int64_t{dim_a} * dim_b, "kron"));
  }
  return reshape_here(multiply(reshape_here(a, wide_a, s), reshape_here(b, wide_b, s), s), shape,
                      s);
}

}  // namespace holdfast
