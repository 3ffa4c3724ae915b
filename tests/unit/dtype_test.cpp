// Dtypes: names, kinds, categories and the promotion lattice.
#include <doctest/doctest.h>

#include <holdfast/dtype.h>

#include <sstream>
#include <string>
#include <vector>

using namespace holdfast;

namespace {

std::vector<Dtype> every_dtype() {
  std::vector<Dtype> result;
  for (int i = 0; i < dtype_count; ++i) result.push_back(dtype_of(static_cast<Dtype::Val>(i)));
  return result;
}

std::string promoted(const Dtype& a, const Dtype& b) {
  return dtype_name(promote_types(a, b).val());
}

}  // namespace

TEST_CASE("a dtype knows its name, its size and its value") {
  const char* names[] = {"bool",    "uint8",   "uint16",   "uint32",   "uint64",
                         "int8",    "int16",   "int32",    "int64",    "float16",
                         "float32", "float64", "bfloat16", "complex64"};
  for (int i = 0; i < dtype_count; ++i) {
    auto val = static_cast<Dtype::Val>(i);
    CHECK(dtype_of(val).val() == val);
    CHECK(std::string(dtype_name(val)) == names[i]);
    std::ostringstream stream;
    stream << dtype_of(val);
    CHECK(stream.str() == names[i]);
    dispatch_dtype(val, [&](auto type) {
      using T = typename decltype(type)::type;
      CHECK(size_of(dtype_of(val)) == sizeof(T));
    });
  }
}

TEST_CASE("kinds are NumPy's letters; bfloat16 is V") {
  std::ostringstream stream;
  for (const Dtype& dtype : every_dtype()) stream << kindof(dtype);
  CHECK(stream.str() == "buuuuiiiifffVc");
}

TEST_CASE("promotion is symmetric, idempotent, and bool yields to all") {
  for (const Dtype& a : every_dtype()) {
    CHECK(promote_types(a, a) == a);
    CHECK(promote_types(bool_, a) == a);
    CHECK(promote_types(complex64, a) == complex64);
    for (const Dtype& b : every_dtype()) CHECK(promoted(a, b) == promoted(b, a));
  }
}

TEST_CASE("promotion of every pair of different types") {
  // Row by row above the diagonal; the order of rows and columns is that of Dtype::Val from uint8
  // on.
  const std::vector<std::vector<std::string>> table = {
      {"uint16", "uint32", "uint64", "int16", "int16", "int32",
       "int64"},                                                 // uint8 with uint16 ... int64
      {"uint32", "uint64", "int32", "int32", "int32", "int64"},  // uint16
      {"uint64", "int64", "int64", "int64", "int64"},            // uint32
      {"float32", "float32", "float32", "float32"},              // uint64
      {"int16", "int32", "int64"},                               // int8
      {"int32", "int64"},                                        // int16
      {"int64"},                                                 // int32
  };
  for (size_t row = 0; row < table.size(); ++row) {
    for (size_t column = 0; column < table[row].size(); ++column) {
      Dtype a = dtype_of(static_cast<Dtype::Val>(row + 1));
      Dtype b = dtype_of(static_cast<Dtype::Val>(row + column + 2));
      INFO(dtype_name(a.val()), " and ", dtype_name(b.val()));
      CHECK(promoted(a, b) == table[row][column]);
    }
  }
  for (const Dtype& a : every_dtype()) {
    if (!issubdtype(a, integer)) continue;
    for (const Dtype& f : {float16, bfloat16, float32, float64}) CHECK(promote_types(a, f) == f);
  }
  CHECK(promote_types(float16, bfloat16) == float32);
  CHECK(promote_types(float16, float32) == float32);
  CHECK(promote_types(bfloat16, float32) == float32);
  for (const Dtype& f : {float16, bfloat16, float32}) CHECK(promote_types(f, float64) == float64);
  CHECK(promote_types(complex64, float64) == complex64);
}

TEST_CASE("issubdtype follows the category tree") {
  CHECK(issubdtype(float32, float32));
  CHECK_FALSE(issubdtype(float32, float64));
  CHECK_FALSE(issubdtype(floating, float32));
  for (const Dtype& dtype : every_dtype()) {
    CHECK(issubdtype(dtype, generic));
    CHECK(issubdtype(dtype, number) == (dtype != bool_));
  }
  CHECK_FALSE(issubdtype(bool_, integer));
  CHECK(issubdtype(uint8, unsignedinteger));
  CHECK_FALSE(issubdtype(uint8, signedinteger));
  CHECK(issubdtype(int64, signedinteger));
  CHECK(issubdtype(int64, integer));
  CHECK_FALSE(issubdtype(int64, inexact));
  CHECK(issubdtype(bfloat16, floating));
  CHECK(issubdtype(complex64, complexfloating));
  CHECK(issubdtype(complex64, inexact));
  CHECK_FALSE(issubdtype(complex64, floating));
  CHECK(issubdtype(floating, inexact));
  CHECK(issubdtype(floating, floating));
  CHECK_FALSE(issubdtype(inexact, floating));
  CHECK_FALSE(issubdtype(number, integer));
}
