#include "support/rounding.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <set>
#include <sstream>

#include <holdfast/holdfast.h>

namespace holdfast::testing {
namespace {

constexpr const char* functions =
    "exp expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh "
    "arctanh sigmoid erf erfinv power arctan2 logaddexp";
constexpr const char* fourier =
    "fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn "
    "fft.ifftn "
    "fft.rfftn fft.irfftn";
constexpr const char* sums =
    "sum mean trace prod cumsum cumprod vecdot matmul addmm block_masked_mm gather_mm segmented_mm "
    "tensordot outer inner kron einsum einsum_path conv_general conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d slice_update_add slice_update_prod "
    "scatter_add_axis scatter_add scatter_prod";

// A function is within 4 units of the last place of the exact result on both devices, which are 8
// roundings; tests/kernels and tests/msl check it.
constexpr Rounding table[] = {
    {functions, 8, false, 1, Size::result, false, "one function"},
    {"multiply divide square reciprocal abs sqrt rsqrt", 8, false, 1, Size::terms, true,
     "products of parts, which cancel; a quotient is one by a real number"},
    {sums, 4, true, 1, Size::terms, false, "sums and products in any order"},
    {fourier, 0, false, 1, Size::largest_terms, false, "sums of products with roots of 1"},
    {"hadamard_transform", 2, true, 1, Size::signed_sum, false, "a sum whose signs differ"},
    {"var", 8, true, 4, Size::squares, false, "squares of differences from a mean"},
    {"std", 8, true, 4, Size::root_of_squares, false, "the root of var"},
    {"logsumexp logcumsumexp", 16, true, 1, Size::logarithm, false,
     "an exponential and a logarithm for each term"},
    {"softmax", 32, true, 1, Size::result, false,
     "exponentials of differences up to 6, by their sum"},
    {"random.normal random.laplace", 12, false, 2, Size::result, false,
     "a function of equal numbers, then a product and a sum"},
    {"random.gumbel", 24, false, 3, Size::result, false, "two logarithms"},
    {"random.truncated_normal", 90, false, 40, Size::result, false,
     "erfinv of a number between two values of erf, which it magnifies by up to 10"},
    {"hanning hamming blackman", 24, false, 3, Size::result, false, "sums of one or two cosines"},
    {"linalg.norm", 32, true, 4, Size::result, false, "a root of a sum of powers, all positive"},
    {"linalg.cross", 8, false, 3, Size::squares, false, "two products that are subtracted"},
    {"fast.rms_norm", 16, true, 4, Size::result, false,
     "a product with the root of a sum of squares"},
    {"fast.layer_norm", 16, true, 4, Size::squares, false,
     "differences from a mean by a root of about 1, times a weight"},
    {"fast.rope*", 64, false, 2, Size::inputs, false,
     "two products with sines of angles up to 64, which are rounded first"},
    {"fast.scaled_dot_product_attention", 16, true, 4, Size::attention, false, "a softmax"},
    {"fast.paged_attention", 64, true, 4, Size::attention, false,
     "a softmax, between rotations of queries and of what is averaged"},
    {"fast.kv_decode", 4, true, 1, Size::signed_sum, false, "a rotation: a sum whose signs differ"},
    {"fast.gated_delta", 32, true, 4, Size::squares, false,
     "sums of products of a state and what is added to it, a token after the other"},
    {"fast.causal_conv", 16, true, 2, Size::squares, false, "a sum of products, and a sigmoid"},
    {"dequantize*", 2, false, 2, Size::terms, false, "a product and a sum"},
    {"quantized_matmul* gather_qmm qqmm gather_qqmm", 6, true, 4, Size::terms, false,
     "a sum of products; weights are rounded to the dtype where there are many rows, on each "
     "device "
     "from another number on"},
};

bool names(const char* rows, const std::string& row) {
  std::istringstream all(rows);
  for (std::string one; all >> one;) {
    if (one == row) return true;
    if (one.back() == '*' && row.starts_with(one.substr(0, one.size() - 1))) return true;
  }
  return false;
}

bool is_inexact(const array& a) { return issubdtype(a.dtype(), inexact); }

std::vector<complex64_t> elements_of(const array& a) {
  StreamContext on_cpu(Device::cpu);
  array wide = contiguous(astype(a, complex64));
  wide.eval();
  const array& read = wide;
  return {read.data<complex64_t>(), read.data<complex64_t>() + a.size()};
}

double largest_of(const array& a) {
  double largest = 0;
  for (const complex64_t& z : elements_of(a)) largest = std::max<double>(largest, std::abs(z));
  return largest;
}

double largest_input(const RoundedCall& call) {
  double largest = 1;
  for (const array& input : call.inputs) {
    if (is_inexact(input)) largest = std::max(largest, largest_of(input));
  }
  return largest;
}

// The inputs without their signs. Codes of small floats have theirs inside.
std::vector<array> absolute(const RoundedCall& call) {
  StreamContext on_cpu(Device::cpu);
  const auto mode = call.sample.arguments.find("mode");
  const bool has_signs = mode != call.sample.arguments.end() && mode->second != "affine";
  std::vector<array> result;
  for (const array& input : call.inputs) {
    if (is_inexact(input)) {
      // In float32, so that sums are not rounded much; the complex stay so.
      result.push_back(astype(abs(input), input.dtype() == complex64 ? complex64 : float32));
    } else if (has_signs && input.dtype() == uint32 && input.ndim() > 1) {
      const uint32_t all_but_signs = mode->second == "mxfp8" ? 0x7f7f7f7f : 0x77777777;
      result.push_back(bitwise_and(input, array(all_but_signs)));
    } else {
      result.push_back(input);
    }
  }
  return result;
}

// For each element of the result.
std::vector<double> sizes(const Rounding& rounding, const RoundedCall& call, size_t index,
                          const array& expected) {
  StreamContext on_cpu(Device::cpu);
  const std::vector<complex64_t> exact = elements_of(expected);
  std::vector<double> result(exact.size(), 1.0);
  switch (rounding.size) {
    case Size::result:
      for (size_t i = 0; i < exact.size(); ++i) result[i] = std::max<double>(1, std::abs(exact[i]));
      break;
    case Size::terms:
    case Size::largest_terms: {
      const std::vector<complex64_t> terms = elements_of(call.run(absolute(call))[index]);
      double largest = 0;
      for (size_t i = 0; i < terms.size(); ++i) {
        result[i] = std::abs(terms[i]);
        largest = std::max(largest, result[i]);
      }
      if (rounding.size == Size::largest_terms) std::fill(result.begin(), result.end(), largest);
      break;
    }
    case Size::signed_sum: {
      const array& x = call.inputs[0];
      const auto scale = call.sample.arguments.find("scale");
      double total = 0;
      for (const complex64_t& z : elements_of(x)) total += std::abs(z);
      total *= scale != call.sample.arguments.end() ? std::stod(scale->second)
                                                    : 1 / std::sqrt(double(x.shape(-1)));
      std::fill(result.begin(), result.end(), total);
      break;
    }
    case Size::squares:
    case Size::root_of_squares:
    case Size::inputs: {
      const double largest = largest_input(call);
      for (size_t i = 0; i < exact.size(); ++i) {
        result[i] = rounding.size == Size::inputs ? 2 * largest : 4 * largest * largest;
        if (rounding.size == Size::root_of_squares)
          result[i] /= std::max<double>(0.1, std::abs(exact[i]));
      }
      break;
    }
    case Size::logarithm: {
      std::vector<array> real_parts;
      for (const array& input : call.inputs) real_parts.push_back(real(input));
      const std::vector<complex64_t> whole = elements_of(call.run(real_parts)[index]);
      for (size_t i = 0; i < exact.size(); ++i) {
        if (std::isfinite(exact[i].real()))
          result[i] = std::exp(whole[i].real() - exact[i].real()) + std::abs(exact[i].real());
      }
      break;
    }
    case Size::attention: {
      const double scale = std::stod(call.sample.arguments.at("scale"));
      const double product = scale * call.inputs[0].shape(-1) * largest_of(call.inputs[0]) *
                             largest_of(call.inputs[1]);
      const double value = largest_of(call.inputs[2]);
      std::fill(result.begin(), result.end(), value * std::max(1.0, product));
    }
  }
  return result;
}

double unit_of(Dtype dtype) {
  return dtype == float16 ? 0x1p-11 : dtype == bfloat16 ? 0x1p-8 : 0x1p-24;
}

// Roundings of a Fourier transform along an axis of `n` elements: a stage for each factor of n, in
// which an element is multiplied by a root (4) and added to others (two parts, one for each bit of
// the factor). Where n has a factor above 7, a device may make it three transforms of a power of
// two above 2 n, of which the terms grow by the root of that.
double steps_of_fourier(int64_t n) {
  auto stages = [](double length) { return 8 * (1 + std::log2(length)); };
  int64_t rest = n;
  for (int64_t prime : {2, 3, 5, 7}) {
    while (rest % prime == 0) rest /= prime;
  }
  const double padded = 4 * static_cast<double>(n);
  return rest == 1 ? stages(static_cast<double>(n)) : 3 * stages(padded) * std::sqrt(padded);
}

double steps_of(const Rounding& rounding, const RoundedCall& call, const array& expected) {
  double steps = rounding.steps;
  if (rounding.rows == fourier) {
    // As if it were along all axes.
    std::set<int64_t> lengths(expected.shape().begin(), expected.shape().end());
    for (const array& input : call.inputs)
      lengths.insert(input.shape().begin(), input.shape().end());
    for (int64_t length : lengths) steps += length > 1 ? steps_of_fourier(length) : 0;
  }
  if (rounding.adds) {
    size_t terms = 0;
    for (const array& input : call.inputs) terms = std::max(terms, input.size());
    steps += static_cast<double>(terms);
  }
  return steps;
}

}  // namespace

const Rounding* rounding_of(const std::string& row, Dtype dtype) {
  for (const Rounding& rounding : table) {
    if (names(rounding.rows, row) && (!rounding.only_complex || dtype == complex64))
      return &rounding;
  }
  return nullptr;
}

std::string beyond_rounding(const Rounding& rounding, const RoundedCall& call, size_t index,
                            const array& got, const array& expected) {
  std::ostringstream text;
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    text << got.dtype() << got.shape() << " instead of " << expected.dtype() << expected.shape();
    return text.str();
  }
  if (!is_inexact(expected)) return registry::difference(got, expected, 0);
  const double unit = steps_of(rounding, call, expected) * unit_of(float32) +
                      rounding.stores * unit_of(expected.dtype());
  const std::vector<double> size = sizes(rounding, call, index, expected);
  const std::vector<complex64_t> ours = elements_of(got), theirs = elements_of(expected);
  for (size_t i = 0; i < ours.size(); ++i) {
    complex64_t difference = ours[i] - theirs[i];
    if (rounding.size == Size::logarithm) {
      // The imaginary part of a logarithm is one of many, whole turns apart.
      difference.imag(static_cast<float>(
          std::remainder(static_cast<double>(difference.imag()), 2 * std::numbers::pi)));
    }
    auto is_same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const bool is_equal =
        is_same(ours[i].real(), theirs[i].real()) && is_same(ours[i].imag(), theirs[i].imag());
    const double bound = 2 * unit * size[i];
    const double distance =
        std::max(std::abs(double{difference.real()}), std::abs(double{difference.imag()}));
    if (is_equal || distance <= bound) continue;
    text << "element " << i << " is " << ours[i] << " instead of " << theirs[i]
         << ", which differ by more than " << bound << " (" << rounding.why << ")";
    return text.str();
  }
  return "";
}

}  // namespace holdfast::testing
