// Where we differ from MLX on purpose.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::registry {

struct Difference {
  std::string_view name, dtypes,
      sample;     // dtypes: a list, empty for all; sample: a part of it, empty for all
  double factor;  // how much wider the tolerance is; 0: not compared
  const char* reason;
};

inline constexpr Difference differences[] = {
    {"cumsum", "float16 bfloat16", "", 4,
     "MLX rounds each partial sum to the half type, we the result"},
    {"logcumsumexp", "float16 bfloat16", "", 4,
     "MLX rounds each partial sum to the half type, we the result"},
    {"prod", "complex64", "", 20, "products of many terms in another order"},
    {"exp", "float64", "", 1e6, "MLX computes it in float32"},
    {"sin", "float64", "", 1e6, "MLX computes it in float32"},
    {"cos", "float64", "", 1e6, "MLX computes it in float32"},
    {"sigmoid", "float64", "", 1e6, "MLX computes it in float32"},
    {"erf", "float64", "", 1e6, "MLX computes it in float32"},
    {"erfinv", "float64", "", 1e6, "MLX computes it in float32"},
    {"logaddexp", "float64", "", 1e6, "MLX computes it in float32"},
    {"logcumsumexp", "float64", "", 1e6, "MLX computes it in float32"},
    {"isposinf", "complex64", "", 0, "a complex number has no sign: we refuse, as NumPy does"},
    {"isneginf", "complex64", "", 0, "a complex number has no sign: we refuse, as NumPy does"},
    {"floor_divide", "complex64", "", 0, "complex numbers have no floor: we refuse, as NumPy does"},
    {"remainder", "bool int8 int16 int32 int64", "", 0,
     "integers by zero: undefined in MLX, 0 here; elementwise_test covers the rest"},
    {"power", "int8 int16 int32 int64", "", 0,
     "negative exponents: 0 in MLX, 1 and -1 to any power are exact here"},
    {"power", "complex64", "", 100, "MLX computes it in float32 throughout"},
    {"left_shift", "bool int8 int16 int32 int64", "", 0,
     "bool is refused; negative shifts: undefined in MLX, 0 here"},
    {"right_shift", "bool int8 int16 int32 int64", "", 0,
     "bool is refused; negative shifts: undefined in MLX"},
    {"round", "float64", "", 1e6, "MLX scales in float32"},
    {"divmod", "bool", "", 0, "integers by zero: undefined in MLX, 0 here"},
    {"logsumexp", "bool", "", 0, "MLX does not convert bool before it takes the exponential"},
    {"logsumexp", "float64", "", 1e6, "MLX computes it in float32"},
    {"logsumexp", "complex64", "", 0, "complex numbers have no largest to subtract: we refuse"},
    {"softmax", "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64", "", 0,
     "MLX rounds to the integer type, we give float32"},
    {"softmax", "float64", "", 1e6, "MLX computes it in float32"},
    {"softmax", "complex64", "", 0, "complex numbers have no largest to subtract: we refuse"},
    {"expm1", "complex64", "", 0, "MLX refuses it, NumPy and we do not"},
    {"sigmoid", "complex64", "", 0, "MLX refuses it, NumPy and we do not"},
    {"remainder", "complex64", "", 0, "MLX refuses it; we do what complex64_t does, part by part"},
    {"nan_to_num", "float64", "", 0, "MLX's limits do not fit its own float64; ours do"},
    {"random.multivariate_normal", "", "", 1000, "the root of a nearly singular matrix"},
    {"random.multivariate_normal", "float64 complex64", "", 0,
     "MLX keeps the dtype of its inputs; we give float32, the only dtype it takes"},
    {"random.categorical", "complex64", "a(1,", 0,
     "one distribution: MLX adds complex weights up, we take the real part of the logits"},
    {"random.categorical", "", "one row of thousands of logits", 0,
     "of thousands of logits: their running sum rounds differently, some draws are a neighbour"},
    {"block_masked_mm", "complex64", "", 0, "MLX has it for real matrices only"},
    {"gather_mm", "complex64", "", 0, "MLX has it for real matrices only"},
    {"segmented_mm", "complex64", "", 0, "MLX has it for real matrices only"},
    {"segmented_mm", "float16 bfloat16", "", 0,
     "MLX's segments of half types start at the wrong element"},
    {"segmented_mm", "", "invalid: a(3,9) a(8,4) n(5,2)<9", 0,
     "MLX does not compare the inner dimensions"},
    {"einsum", "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64", "", 0,
     "MLX refuses integers where it multiplies matrices; NumPy and we do not"},
    {"conv_general", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv1d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv2d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv3d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv3d", "",
     "a(1,4,4,4,2) a(2,2,2,2,1) | stride=[1,1,1] padding=[0,0,0] dilation=[2,1,1] groups=2", 0,
     "MLX has no groups in three dimensions"},
    {"conv_transpose1d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv_transpose2d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv_transpose3d", "float64 complex64", "", 0, "MLX has it for small floating types only"},
    {"conv_transpose1d", "", "padding > dilation * (kernel - 1)", 0,
     "strides and padding > dilation * (kernel - 1): MLX cuts off inputs in place of outputs"},
    {"conv_transpose2d", "", "padding > dilation * (kernel - 1)", 0,
     "strides and padding > dilation * (kernel - 1): MLX cuts off inputs in place of outputs"},
    {"conv_transpose3d", "", "padding > dilation * (kernel - 1)", 0,
     "strides and padding > dilation * (kernel - 1): MLX cuts off inputs in place of outputs"},
    {"quantize", "float64", "", 0, "MLX packs float64 in some modes; we take float32 and halves"},
    {"dequantize", "float64", "", 0, "MLX packs float64 in some modes; we take float32 and halves"},
    {"quantized_matmul", "float16 bfloat16", "", 32,
     "many rows multiply weights that are rounded to the half type"},
    {"quantized_matmul.floats", "float16 bfloat16", "", 32,
     "many rows multiply weights that are rounded to the half type"},
    {"qqmm", "float16 bfloat16", "", 32, "the operands are rounded to the half type too"},
    {"gather_qqmm", "float16 bfloat16", "", 32, "the operands are rounded to the half type too"},
    {"to_fp8", "float64", "", 0, "MLX reads float64 as something else"},
    {"hadamard_transform", "float16 bfloat16", "", 16, "MLX rounds each sum to the half type"},
    {"hadamard_transform", "complex64", "", 0, "MLX drops the imaginary part, we refuse"},
    {"hadamard_transform", "", ",1)", 0, "MLX gives a single column back as it is"},
    {"hadamard_transform", "", "a()", 0, "MLX gives a single element back as it is"},
    {"fft.fft", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.ifft", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.rfft", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.irfft", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.fft2", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.ifft2", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.rfft2", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.irfft2", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.fftn", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.ifftn", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.rfftn", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.irfftn", "", "", 20, "sums of some hundred terms in another order"},
    {"fft.rfft", "complex64", "", 0, "MLX drops the imaginary part; NumPy and we refuse"},
    {"fft.rfft2", "complex64", "", 0, "MLX drops the imaginary part; NumPy and we refuse"},
    {"fft.rfftn", "complex64", "", 0, "MLX drops the imaginary part; NumPy and we refuse"},
    {"linalg.norm", "complex64", "", 0, "MLX gives complex64 where the order is named, we float32"},
    {"linalg.norm.singular", "complex64", "", 0,
     "MLX gives complex64 where the order is named, we float32"},
    {"linalg.eig", "", "", 200, "the error of values of some hundred"},
    {"linalg.eig", "complex64", "", 0, "what MLX gives for complex matrices are not eigenvectors"},
    {"linalg.eigvals", "", "", 50, "the error of values of some forty"},
    {"linalg.eigh", "", "", 20, "the error of values of some thirty"},
    {"linalg.eigvalsh", "", "UPLO=X", 0, "MLX takes any text for \"L\", we refuse"},
    {"linalg.qr", "", "", 20, "sums of some hundred terms in another order"},
    {"linalg.cross", "bool", "", 0, "MLX refuses bool where it pads a vector of two"},
    {"linalg.det", "", "", 100, "MLX takes the exponential of a float32 logarithm"},
    {"linalg.det", "float16 bfloat16", "", 0, "MLX has it for half types up to three rows only"},
    {"linalg.slogdet", "float16 bfloat16", "", 0,
     "MLX has it for half types up to three rows only"},
    {"linalg.det", "float64", "", 1e7, "MLX computes it in float32"},
    {"fast.rms_norm", "float64", "", 1e6, "MLX rounds constants to float32"},
    {"fast.layer_norm", "float64", "", 1e6, "MLX rounds constants to float32"},
    {"fast.rope", "float64", "", 1e7, "MLX's angles are float32"},
    {"fast.rope.frequencies", "float64", "", 1e7, "MLX's angles are float32"},
    {"fast.rope.offsets", "float64", "", 1e7, "MLX's angles are float32"},
    {"fast.scaled_dot_product_attention", "float64", "", 1e6, "MLX's softmax computes in float32"},
    {"fast.scaled_dot_product_attention", "float16 bfloat16", "", 8,
     "MLX rounds scores and weights to the half type, we the result"},
};

inline const Difference* find_difference(std::string_view name, std::string_view dtype,
                                         std::string_view sample) {
  // The later row decides: exceptions stand behind what they are exceptions of.
  const Difference* found = nullptr;
  for (const Difference& row : differences) {
    bool has_dtype = row.dtypes.empty() ||
                     (" " + std::string(row.dtypes) + " ").find(" " + std::string(dtype) + " ") !=
                         std::string::npos;
    if (row.name == name && has_dtype && sample.find(row.sample) != sample.npos) found = &row;
  }
  return found;
}

}  // namespace holdfast::registry
