// Calls of ops that have no row in the registry, or whose rows have no numbers to differentiate by.
#pragma once

#include <cmath>

#include "transforms/samples.h"

namespace holdfast::testing {

struct Case {
  std::string name;
  Dtype dtype;
  std::vector<Shape> shapes;  // of the inputs
  Function f;
};

inline array symmetric(const array& a) {
  return matmul(a, swapaxes(a, -1, -2)) + eye(a.shape(-2), a.dtype());
}
// Far enough from a singular matrix.
inline array regular(const array& a) {
  return a + array(4, a.dtype()) * eye(a.shape(-1), a.dtype());
}

inline std::vector<array> list(array a) { return {std::move(a)}; }
inline std::vector<array> list(std::pair<array, array> both) { return {both.first, both.second}; }
inline std::vector<array> list(std::vector<array> all) { return all; }

inline std::vector<Case> more_cases() {
  std::vector<Case> cases;
  auto add_case = [&](std::string name, Dtype dtype, std::vector<Shape> shapes, auto f) {
    Function of_list = [f](const std::vector<array>& x) { return list(f(x)); };
    cases.push_back({std::move(name), dtype, std::move(shapes), of_list});
  };
  using X = const std::vector<array>&;

  // --- products ---
  add_case("matmul", float64, {{3, 4}, {4, 5}}, [](X x) { return matmul(x[0], x[1]); });
  add_case("matmul of stacks", float64, {{2, 1, 3, 4}, {5, 4, 2}},
           [](X x) { return matmul(x[0], x[1]); });
  add_case("matmul of a vector", float64, {{4}, {2, 4, 3}}, [](X x) { return matmul(x[0], x[1]); });
  add_case("addmm", float64, {{5}, {3, 4}, {4, 5}},
           [](X x) { return addmm(x[0], x[1], x[2], 0.5f, 2.0f); });
  add_case("tensordot", float64, {{2, 3, 4}, {4, 3, 2}},
           [](X x) { return tensordot(x[0], x[1], {1, 2}, {1, 0}); });
  add_case("outer", float64, {{3}, {2, 2}}, [](X x) { return outer(x[0], x[1]); });
  add_case("inner", float64, {{3, 4}, {2, 4}}, [](X x) { return inner(x[0], x[1]); });
  add_case("hadamard_transform", float32, {{3, 12}}, [](X x) { return hadamard_transform(x[0]); });
  // Not a symmetric matrix.
  add_case("hadamard_transform of 20", float32, {{2, 40}},
           [](X x) { return hadamard_transform(x[0], 0.5f); });
  add_case("kron", float64, {{2, 3}, {3, 2}}, [](X x) { return kron(x[0], x[1]); });
  add_case("einsum", float64, {{2, 3, 4}, {4, 5}},
           [](X x) { return einsum("bij,jk->bki", {x[0], x[1]}); });
  add_case("segmented_mm", float64, {{3, 6}, {6, 2}},
           [](X x) { return segmented_mm(x[0], x[1], array({0u, 2u, 2u, 6u, 3u, 3u}, {3, 2})); });
  add_case("gather_mm", float64, {{3, 2, 4}, {2, 4, 3}}, [](X x) {
    return gather_mm(x[0], x[1], array({0u, 2u, 2u, 1u}), array({1u, 1u, 0u, 0u}));
  });
  add_case("block_masked_mm", float64, {{33, 3}, {3, 2}, {2, 1}},
           [](X x) { return block_masked_mm(x[0], x[1], 32, x[2]); });

  // --- slices that are found when the op runs ---
  add_case("slice at a start", float64, {{5, 6}},
           [](X x) { return slice(x[0], array({1, 2}), {0, 1}, Shape{2, 3}); });
  add_case("slice_update at a start", float64, {{5, 6}, {2, 3}},
           [](X x) { return slice_update(x[0], x[1], array({1, 2}), {0, 1}); });

  // --- convolutions ---
  add_case("conv1d", float64, {{2, 9, 4}, {6, 3, 2}},
           [](X x) { return conv1d(x[0], x[1], 2, 1, 2, 2); });
  add_case("conv2d", float64, {{2, 5, 6, 2}, {3, 3, 2, 2}},
           [](X x) { return conv2d(x[0], x[1], {2, 1}, {1, 0}); });
  add_case("conv3d", float64, {{1, 3, 4, 3, 2}, {2, 2, 2, 2, 2}},
           [](X x) { return conv3d(x[0], x[1]); });
  add_case("conv_general", float64, {{2, 7, 6}, {4, 3, 3}},
           [](X x) { return conv_general(x[0], x[1], {3}, {2}, {1}, {2}, {2}, 2, true); });
  add_case("conv_general that cuts", float64, {{1, 9, 1}, {2, 2, 1}},
           [](X x) { return conv_general(x[0], x[1], {2}, {-1}, {-2}, {1}, {1}, 1, false); });
  add_case("conv_transpose2d", float64, {{2, 3, 3, 2}, {3, 2, 3, 2}},
           [](X x) { return conv_transpose2d(x[0], x[1], {2, 1}, {1, 0}, {1, 1}, {1, 0}); });

  // --- linear algebra ---
  add_case("inv", float64, {{2, 3, 3}}, [](X x) { return linalg::inv(regular(x[0])); });
  add_case("cholesky", float64, {{2, 3, 3}}, [](X x) { return linalg::cholesky(symmetric(x[0])); });
  add_case("cholesky, upper", float64, {{3, 3}},
           [](X x) { return linalg::cholesky(symmetric(x[0]), true); });
  add_case("tri_inv", float64, {{3, 3}}, [](X x) { return linalg::tri_inv(regular(x[0])); });
  add_case("cholesky_inv", float64, {{3, 3}},
           [](X x) { return linalg::cholesky_inv(regular(x[0])); });
  add_case("solve", float64, {{2, 3, 3}, {3, 2}},
           [](X x) { return linalg::solve(regular(x[0]), x[1]); });
  add_case("solve_triangular", float64, {{3, 3}, {3}},
           [](X x) { return linalg::solve_triangular(regular(x[0]), x[1], true); });
  add_case("qr, tall", float64, {{2, 4, 3}}, [](X x) { return linalg::qr(x[0]); });
  add_case("qr, wide", float64, {{2, 4}}, [](X x) { return linalg::qr(x[0]); });
  add_case("eigh", float64, {{3, 3}}, [](X x) {
    // Vectors have any sign: their squares have not.
    auto [values, vectors] = linalg::eigh(symmetric(x[0]));
    return std::vector<array>{values, square(vectors)};
  });
  add_case("eigvalsh", float64, {{2, 3, 3}}, [](X x) { return linalg::eigvalsh(symmetric(x[0])); });
  add_case("singular values", float64, {{2, 3, 4}},
           [](X x) { return linalg::svd(x[0], false, {}); });
  add_case("svd", float64, {{3, 3}}, [](X x) {
    std::vector<array> parts = linalg::svd(x[0]);
    return std::vector<array>{square(parts[0]), parts[1], square(parts[2])};
  });
  add_case("pinv", float64, {{4, 3}}, [](X x) { return linalg::pinv(x[0]); });
  add_case("slogdet", float64, {{2, 3, 3}}, [](X x) { return linalg::slogdet(regular(x[0])); });
  add_case("det", float64, {{3, 3}}, [](X x) { return linalg::det(x[0]); });
  add_case("lu", float64, {{3, 3}}, [](X x) {
    std::vector<array> parts = linalg::lu(regular(x[0]));
    return std::vector<array>{parts[1], parts[2]};
  });
  add_case("lu_factor", float64, {{3, 3}},
           [](X x) { return linalg::lu_factor(regular(x[0])).first; });
  add_case("norm", float64, {{3, 4}}, [](X x) { return linalg::norm(x[0]); });
  add_case("norm of order 3", float64, {{3, 4}},
           [](X x) { return linalg::norm(x[0], 3.0, std::vector<int>{1}); });
  add_case("nuclear norm", float64, {{3, 3}}, [](X x) { return linalg::norm(x[0], "nuc"); });
  add_case("cross", float64, {{2, 3}, {2, 3}}, [](X x) { return linalg::cross(x[0], x[1]); });

  // --- fast ---
  add_case("rms_norm", float64, {{3, 8}, {8}},
           [](X x) { return fast::rms_norm(x[0], x[1], 1e-3f); });
  add_case("rms_norm without weight", float64, {{2, 2, 8}},
           [](X x) { return fast::rms_norm(x[0], std::nullopt, 1e-3f); });
  add_case("layer_norm", float64, {{3, 8}, {8}, {8}},
           [](X x) { return fast::layer_norm(x[0], x[1], x[2], 1e-3f); });
  add_case("attention", float64, {{2, 4, 3, 5}, {2, 2, 6, 5}, {2, 2, 6, 4}},
           [](X x) { return fast::scaled_dot_product_attention(x[0], x[1], x[2], 0.4f); });
  add_case("attention of an array with itself", float64, {{1, 2, 3, 4}},
           [](X x) { return fast::scaled_dot_product_attention(x[0], x[0], x[0], 0.4f); });
  add_case("causal attention with sinks", float64, {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}, {2}},
           [](X x) {
             return fast::scaled_dot_product_attention(x[0], x[1], x[2], 0.4f, "causal",
                                                       std::nullopt, x[3]);
           });
  add_case("masked attention", float64, {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}, {3, 5}},
           [](X x) {
             return fast::scaled_dot_product_attention(x[0], x[1], x[2], 0.4f, "array", x[3]);
           });
  add_case("rope", float32, {{2, 3, 4, 8}},
           [](X x) { return fast::rope(x[0], 6, false, 100.0f, 0.5f, 2); });
  add_case("rope with frequencies", float32, {{2, 4, 6}, {3}}, [](X x) {
    return fast::rope(x[0], 6, true, std::nullopt, 0.5f, array({1, 3}), x[1] * x[1] + array(1.0f));
  });

  // --- transforms ---
  auto parts_of = [](const array& z) { return std::vector<array>{real(z), imag(z)}; };
  add_case("fft", float32, {{2, 6}, {2, 6}}, [=](X x) {
    array z = astype(x[0], complex64) + array(complex64_t(0, 1)) * x[1];
    return parts_of(fft::fft(z, 8, -1));
  });
  add_case("ifftn", float32, {{4, 6}, {4, 6}}, [=](X x) {
    array z = astype(x[0], complex64) + array(complex64_t(0, 1)) * x[1];
    return parts_of(fft::ifftn(z, Shape{3, 6}, {0, 1}));
  });
  add_case("rfft", float32, {{3, 8}}, [=](X x) { return parts_of(fft::rfft(x[0])); });
  add_case("rfft, cut to an odd length", float32, {{3, 8}},
           [=](X x) { return parts_of(fft::rfft(x[0], 7, -1)); });
  for (int length : {8, 7}) {
    add_case("irfft of length " + std::to_string(length), float32, {{3, 5}, {3, 5}}, [=](X x) {
      array z = astype(x[0], complex64) + array(complex64_t(0, 1)) * x[1];
      return fft::irfft(z, length, -1);
    });
  }
  add_case("fftshift", float64, {{5, 4}}, [](X x) { return fft::fftshift(x[0]); });

  // --- quantised ---
  for (bool transposed : {true, false}) {
    add_case(transposed ? "quantized_matmul" : "quantized_matmul, not transposed", float32,
             {{2, transposed ? 64 : 32}, {32, 2}, {32, 2}}, [=](X x) {
               array codes =
                   quantize(reshape(sin(arange(0, 32 * 64, float32)), {32, 64}), 32, 4)[0];
               return quantized_matmul(x[0], codes, x[1], x[2], transposed, 32, 4);
             });
  }
  add_case("gather_qmm", float32, {{3, 2, 32}, {2, 4, 1}, {2, 4, 1}}, [](X x) {
    array codes = quantize(reshape(sin(arange(0, 2 * 4 * 32, float32)), {2, 4, 32}), 32, 4)[0];
    return gather_qmm(x[0], codes, x[1], x[2], array({0u, 2u, 2u}), array({1u, 1u, 0u}), true, 32,
                      4);
  });
  // The edge of each group stands apart: it stays the edge when all move a little.
  for (int bits : {2, 4, 8}) {
    add_case("quantize, " + std::to_string(bits) + " bits", float32, {{2, 64}}, [=](X x) {
      array spike = astype(equal(remainder(arange(0, 64, int32), array(32)), array(5)), float32);
      std::vector<array> parts = quantize(x[0] - spike * array(9.0f), 32, bits);
      return stack({parts[1], parts[2]});
    });
  }
  add_case("dequantize", float32, {{3, 2}, {3, 2}}, [](X x) {
    array codes = quantize(reshape(sin(arange(0, 3 * 64, float32)), {3, 64}), 32, 8)[0];
    return dequantize(codes, x[0], x[1], 32, 8);
  });

  // --- random numbers do not depend on what they are scaled by ---
  add_case("normal", float64, {{3}},
           [](X x) { return astype(random::normal({3}, random::key(1)), float64) * x[0]; });
  return cases;
}

inline std::vector<array> inputs_of_case(const Case& c, std::mt19937_64& random) {
  std::vector<array> inputs;
  for (const Shape& shape : c.shapes) {
    inputs.push_back(random_input(c.name, {"a", shape, 0}, c.dtype, random));
  }
  return inputs;
}

}  // namespace holdfast::testing
