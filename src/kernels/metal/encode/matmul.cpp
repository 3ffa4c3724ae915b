#include <algorithm>
#include <bit>

#include "base/text.h"
#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/metal/parts.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/matmul_parameters.h"

constexpr int64_t few_vectors = 4;  // of matvec_rows and matvec_columns
constexpr int64_t product_block = 16;

// A stack of matrices whose lines are multiplied with those of another: the rows of A, the columns
// of B.
struct MatrixOperand {
  MatrixOperand(const array& of, int64_t lines, int64_t depth, int line_axis, int depth_axis)
      : a(of),
        // Where there is one only, its stride says nothing.
        line(lines > 1 ? of.strides(line_axis) : 0),
        along(depth > 1 ? of.strides(depth_axis) : 0),
        is_along(depth == 1 || along == 1),
        is_across(lines == 1 || line == 1) {}

  bool is_aligned() const {
    const int64_t item = static_cast<int64_t>(a.itemsize());
    auto is_even = [&](int64_t stride) { return stride * item % product_block == 0; };
    return metal::is_aligned(a, product_block) && is_even(is_along ? line : along) &&
           std::all_of(batch.begin(), batch.end(), is_even);
  }

  array a;
  int64_t line, along;       // strides from line to line, and along the depth
  bool is_along, is_across;  // neighbours in memory are neighbours along the depth; across it
  Dimensions batch;          // strides
};

// A product of stacks of matrices.
struct Products {
  MatrixOperand a, b;
  Dimensions batch_shape;
  int64_t batch, m, n, k;

  Extents extents(const MatrixOperand& of) const {
    Extents result;
    for (size_t i = 0; i < batch_shape.size(); ++i)
      result.push_back(extent_of(batch_shape[i], of.batch[i]));
    return result;
  }
  int32_t dimensions() const { return static_cast<int32_t>(batch_shape.size()); }
};

Products products_of(const array& a, const array& b, const array& out) {
  const int64_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  Products p{MatrixOperand(a, m, k, -2, -1), MatrixOperand(b, n, k, -1, -2), {}, 1, m, n, k};
  Shape batch(out.shape().begin(), out.shape().end() - 2);
  auto batch_strides = [&](const array& x) {
    return broadcast_strides(Shape(x.shape().begin(), x.shape().end() - 2),
                             Strides(x.strides().begin(), x.strides().end() - 2), batch);
  };
  const Strides of_a = batch_strides(a), of_b = batch_strides(b);
  const std::span<const int64_t> lists[] = {span_of(of_a), span_of(of_b)};
  const JointLayout layout = collapse_jointly(span_of(batch), lists);
  p.batch_shape = layout.shape;
  p.batch = layout.size;
  p.a.batch = layout.strides[0];
  p.b.batch = layout.strides[1];
  return p;
}

// One B for all: the batch is more rows of A, where these follow each other.
void join_rows(Products& p) {
  if (p.batch_shape.size() != 1 || p.b.batch[0] != 0) return;
  if (p.m > 1 && p.a.batch[0] != p.m * p.a.line) return;
  if (p.batch * p.m > most_small_elements) return;
  if (p.m == 1) p.a.line = p.a.batch[0];
  p.a.is_across = p.a.line == 1;
  p.m *= p.batch;
  p.batch = 1;
  p.batch_shape.clear();
  p.a.batch.clear();
  p.b.batch.clear();
}

// Neighbours along the depth or across it.
void arrange(Encoder& encoder, Products& p, const array& out) {
  auto is_arranged = [](const MatrixOperand& x) { return x.is_along || x.is_across; };
  if (is_arranged(p.a) && is_arranged(p.b)) return;
  const array a = is_arranged(p.a) ? p.a.a : make_dense(encoder, p.a.a);
  const array b = is_arranged(p.b) ? p.b.a : make_dense(encoder, p.b.a);
  p = products_of(a, b, out);
  join_rows(p);
}

void encode_tiles(Encoder& encoder, Products& p, array& out) {
  const bool on_matrix_units = p.a.a.itemsize() == 2;
  if (on_matrix_units) arrange(encoder, p, out);
  auto tiles_of = [&](int64_t side) {
    return p.batch * divide_up(p.m, side) * divide_up(p.n, side);
  };
  // Products of two transposed matrices are rare: they have no kernel with large tiles.
  const bool has_large = on_matrix_units && (p.a.is_along || !p.b.is_along);
  const int64_t side = has_large && tiles_of(128) >= busy_threadgroups ? 128 : 64;
  const DepthCut cut(p.k, tiles_of(side), 32);
  const Product product{fit(p.m),
                        fit(p.n),
                        fit(p.k),
                        fit(cut.parts),
                        fit(cut.part),
                        p.dimensions(),
                        p.a.line,
                        p.a.along,
                        p.b.line,
                        p.b.along,
                        p.a.is_aligned(),
                        p.b.is_aligned(),
                        out.dtype() != p.a.a.dtype()};
  std::string name = "matmul_any";
  if (on_matrix_units) {
    name = "matmul_" + std::to_string(side) + (p.a.is_along ? "_n" : "_t") +
           (p.b.is_along ? "t" : "n");
  }
  const Extents of_a = p.extents(p.a), of_b = p.extents(p.b);
  encode_in_parts(encoder, cut.parts, p.batch, out, [&](array& target) {
    Launch launch(encoder, "matmul", entry_of(name, p.a.a));
    launch.with(p.a.a, p.b.a, output(target), product, of_a, of_b);
    launch.over({grid_length(encoder, divide_up(p.m, side) * divide_up(p.n, side), 256),
                 grid_length(encoder, cut.parts, 1), grid_length(encoder, p.batch, 1)},
                {256});
  });
}

// One side of the product has few lines: the other one is read once, in whole blocks. False, and
// nothing encoded, where there are none.
bool encode_vectors(Encoder& encoder, const Products& p, array& out) {
  const bool on_right = p.m > few_vectors;  // B has the vectors
  const MatrixOperand &matrix = on_right ? p.a : p.b, &x = on_right ? p.b : p.a;
  const int64_t rows = on_right ? p.m : p.n, vectors = on_right ? p.n : p.m;
  const int64_t block = product_block / static_cast<int64_t>(matrix.a.itemsize());
  constexpr int64_t threads = 256, rows_together = 4;
  if (!matrix.is_aligned() || (!matrix.is_along && !matrix.is_across) ||
      (matrix.is_along ? p.k : rows) % block != 0 ||
      (matrix.is_along && (!x.is_along || !x.is_aligned())))
    return false;

  auto blocks_of = [&](int64_t length) {
    return static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(32, divide_up(length, block)))));
  };
  const int64_t width = blocks_of(matrix.is_along ? p.k : rows);
  const int64_t groups =
      divide_up(rows, matrix.is_along ? threads / width * rows_together : width * block);
  const DepthCut cut(p.k, groups * p.batch, matrix.is_along ? width * block : threads / width,
                     matrix.is_along ? width * block * 4 : threads / width * 4);
  const MatrixVectors settings{fit(rows),
                               fit(p.k),
                               fit(vectors),
                               fit(cut.parts),
                               fit(cut.part),
                               fit(width),
                               p.dimensions(),
                               out.dtype() != matrix.a.dtype() || cut.parts > 1,
                               matrix.is_along ? matrix.line : matrix.along,
                               x.line,
                               x.along,
                               on_right ? static_cast<uint64_t>(vectors) : 1,
                               on_right ? 1 : static_cast<uint64_t>(rows)};
  const char* count = vectors == 1 && out.dtype() != complex64 ? "_1" : "_4";
  encode_in_parts(encoder, cut.parts, p.batch, out, [&](array& target) {
    Launch(
        encoder, "matmul",
        entry_of(std::string(matrix.is_along ? "matvec_rows" : "matvec_columns") + count, matrix.a))
        .with(matrix.a, x.a, output(target), settings, p.extents(matrix), p.extents(x))
        .over({grid_length(encoder, groups, threads), grid_length(encoder, cut.parts, 1),
               grid_length(encoder, p.batch, 1)},
              {threads});
  });
  return true;
}

}  // namespace

void add_parts(Encoder& encoder, const array& sums, int64_t parts, int64_t products, array& out) {
  const bool is_complex = out.dtype() == complex64;
  const uint64_t total = out.size() * (is_complex ? 2 : 1);
  const SumParts settings{total / static_cast<uint64_t>(products), total, fit(parts)};
  Launch(encoder, "matmul", is_complex ? "add_parts_float32" : entry_of("add_parts", out))
      .with(sums, output(out), settings)
      .over(static_cast<int64_t>(total));
}

void MetalBackend::matmul(Encoder& encoder, const array& a, const array& b, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (a.shape(-1) == 0) {
    const uint64_t zero = 0;
    encoder.fill(out, &zero);
    return;
  }
  Products p = products_of(a, b, out);
  join_rows(p);
  if (std::min(p.m, p.n) <= few_vectors && encode_vectors(encoder, p, out)) return;
  encode_tiles(encoder, p, out);
}

void MetalBackend::segmented_matmul(Encoder& encoder, const array& a, const array& b,
                                    const array& segments, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  const array pairs = make_dense(encoder, segments);
  const auto count = static_cast<int64_t>(pairs.size()) / 2;
  const int64_t m = a.shape(0), k = a.shape(1), n = b.shape(1);
  constexpr int64_t side = 64;
  const Product product{fit(m),       fit(n),       fit(k),       1,     fit(k), 0,    a.strides(0),
                        a.strides(1), b.strides(1), b.strides(0), false, false,  false};
  Launch(encoder, "matmul", entry_of("segmented_matmul", a))
      .with(a, b, pairs, output(out), product)
      .errors({text("[segmented_mm] expected segments inside 0 to ", k, ", got {} to {}")})
      .over({grid_length(encoder, divide_up(m, side) * divide_up(n, side), 256), 1,
             grid_length(encoder, count, 1)},
            {256});
}

}  // namespace holdfast::kernels::metal
