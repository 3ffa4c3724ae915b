#include <holdfast/dtype.h>

#include <ostream>
#include <stdexcept>
#include <string>

namespace holdfast {

namespace {

using Val = Dtype::Val;
using Category = Dtype::Category;
using Kind = Dtype::Kind;

struct Entry {
  Dtype dtype;
  const char* name;
  Kind kind;
  Category category;
};

// In the order of Dtype::Val.
constexpr Entry entries[] = {
    {bool_, "bool", Kind::b, Category::generic},
    {uint8, "uint8", Kind::u, Category::unsignedinteger},
    {uint16, "uint16", Kind::u, Category::unsignedinteger},
    {uint32, "uint32", Kind::u, Category::unsignedinteger},
    {uint64, "uint64", Kind::u, Category::unsignedinteger},
    {int8, "int8", Kind::i, Category::signedinteger},
    {int16, "int16", Kind::i, Category::signedinteger},
    {int32, "int32", Kind::i, Category::signedinteger},
    {int64, "int64", Kind::i, Category::signedinteger},
    {float16, "float16", Kind::f, Category::floating},
    {float32, "float32", Kind::f, Category::floating},
    {float64, "float64", Kind::f, Category::floating},
    {bfloat16, "bfloat16", Kind::V, Category::floating},
    {complex64, "complex64", Kind::c, Category::complexfloating},
};
static_assert(sizeof(entries) / sizeof(entries[0]) == dtype_count);

// std::invalid_argument for a value that a program made up.
const Entry& entry(Val val) {
  const auto place = static_cast<size_t>(val);
  if (place >= dtype_count) [[unlikely]] {
    throw std::invalid_argument("[dtype] expected one of the " + std::to_string(dtype_count) +
                                " dtypes, got number " + std::to_string(place));
  }
  return entries[place];
}

// The tree generic > number > {integer > {signed, unsigned}, inexact > {floating, complex}}.
Category parent(Category category) {
  switch (category) {
    case Category::complexfloating:
    case Category::floating:
      return Category::inexact;
    case Category::signedinteger:
    case Category::unsignedinteger:
      return Category::integer;
    case Category::inexact:
    case Category::integer:
      return Category::number;
    case Category::number:
    case Category::generic:
      break;
  }
  return Category::generic;
}

Dtype promote_integers(const Dtype& a, const Dtype& b) {
  if (kindof(a) == kindof(b)) return a.size() >= b.size() ? a : b;
  const Dtype& with_sign = kindof(a) == Kind::i ? a : b;
  const Dtype& without_sign = kindof(a) == Kind::i ? b : a;
  if (without_sign.val() == Val::uint64) return float32;
  if (with_sign.size() > without_sign.size()) return with_sign;
  // The signed type that holds all values of the unsigned one.
  switch (without_sign.val()) {
    case Val::uint8:
      return int16;
    case Val::uint16:
      return int32;
    default:
      return int64;
  }
}

}  // namespace

bool issubdtype(const Dtype& a, const Dtype& b) { return a.val() == b.val(); }

bool issubdtype(const Category&, const Dtype&) { return false; }

bool issubdtype(const Dtype& a, const Category& b) {
  return issubdtype(entry(a.val()).category, b);
}

bool issubdtype(const Category& a, const Category& b) {
  for (Category category = a;; category = parent(category)) {
    if (category == b) return true;
    if (category == Category::generic) return false;
  }
}

Dtype promote_types(const Dtype& a, const Dtype& b) {
  if (a.val() == b.val()) return a;
  for (Val strongest : {Val::complex64, Val::float64, Val::float32}) {
    if (a.val() == strongest || b.val() == strongest) return dtype_of(strongest);
  }
  bool a_is_half = issubdtype(a, Category::floating), b_is_half = issubdtype(b, Category::floating);
  if (a_is_half && b_is_half) return float32;  // float16 and bfloat16
  if (a_is_half) return a;
  if (b_is_half) return b;
  if (a.val() == Val::bool_) return b;
  if (b.val() == Val::bool_) return a;
  return promote_integers(a, b);
}

Dtype::Kind kindof(const Dtype& t) { return entry(t.val()).kind; }

Dtype dtype_of(Val val) { return entry(val).dtype; }

const char* dtype_name(Val val) { return entry(val).name; }

std::ostream& operator<<(std::ostream& os, const Dtype& dtype) {
  return os << dtype_name(dtype.val());
}

std::ostream& operator<<(std::ostream& os, const Dtype::Kind& kind) {
  constexpr char letters[] = "buifcV";
  return os << letters[static_cast<size_t>(kind)];
}

}  // namespace holdfast
