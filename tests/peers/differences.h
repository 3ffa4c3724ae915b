// Where we differ from MLX on purpose.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::peers {

struct Difference {
  std::string_view name, dtypes, sample;  // dtypes: a list, empty for all; sample: empty for all
  double factor;                          // how much wider the tolerance is; 0: not compared
  const char* reason;
};

inline constexpr Difference differences[] = {
    {"cumsum", "float16 bfloat16", "", 4,
     "MLX rounds each partial sum to the half type, we the result"},
    {"logcumsumexp", "float16 bfloat16", "", 4,
     "MLX rounds each partial sum to the half type, we the result"},
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
};

inline const Difference* find(std::string_view name, std::string_view dtype,
                              std::string_view sample) {
  for (const Difference& row : differences) {
    bool has_dtype = row.dtypes.empty() ||
                     (" " + std::string(row.dtypes) + " ").find(" " + std::string(dtype) + " ") !=
                         std::string::npos;
    if (row.name == name && has_dtype && (row.sample.empty() || row.sample == sample)) return &row;
  }
  return nullptr;
}

}  // namespace holdfast::peers
