// How a built-in primitive is compared with others, and recorded for a file of functions.
//
// A class says once what it was made with:
//
//   class Transpose final : public Recorded<Transpose, Single<ViewOp>> {
//     auto members() const { return std::tie(axes_); }
//
// and has is_equivalent and record from that. Its record is called again by a row of
// ops/recorded_calls.cpp, which takes the same values as arguments.
#pragma once

#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "graph/op.h"
#include "graph/record.h"
#include "ops/recorded_calls.h"

namespace holdfast {

// --- values of a state ---

// Enumerations are numbers, and so are sizes with a sign; an optional number is a list of at most
// one.
template <typename T>
RecordedValue recorded_value(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<int>(value);
  } else if constexpr (std::same_as<T, int64_t>) {
    return static_cast<size_t>(value);
  } else if constexpr (std::same_as<T, std::optional<int>>) {
    return value ? std::vector<int>{*value} : std::vector<int>{};
  } else {
    return RecordedValue(std::in_place_type<T>, value);
  }
}

// The other way; std::invalid_argument for a value of another kind. An enumeration names its last
// value: `constexpr E last_value(E)`, found by its argument.
template <typename T>
T value_of(const RecordedValue& value) {
  if constexpr (std::is_enum_v<T>) {
    int given = value_of<int>(value);
    if (given < 0 || given > static_cast<int>(last_value(T{}))) {
      throw std::invalid_argument("a number that names nothing: " + std::to_string(given));
    }
    return static_cast<T>(given);
  } else if constexpr (std::same_as<T, int64_t>) {
    return static_cast<int64_t>(value_of<size_t>(value));
  } else if constexpr (std::same_as<T, std::optional<int>>) {
    const auto& list = value_of<std::vector<int>>(value);
    if (list.size() > 1) throw std::invalid_argument("more than one number for an optional one");
    return list.empty() ? std::nullopt : std::optional<int>(list[0]);
  } else {
    const T* found = std::get_if<T>(&value);
    if (found == nullptr) throw std::invalid_argument("a value of another type than expected");
    return *found;
  }
}

template <typename... T>
std::vector<RecordedValue> recorded_values(const std::tuple<T...>& members) {
  return std::apply(
      [](const auto&... value) { return std::vector<RecordedValue>{recorded_value(value)...}; },
      members);
}

// --- primitives ---

// `recorded_as` of the class, where there is one, is the kind of its record; else its name is.
template <class Derived, class Base>
class Recorded : public Base {
 public:
  using Base::Base;

  bool is_equivalent(const Primitive& other) const final {
    const auto* same = dynamic_cast<const Derived*>(&other);
    return same != nullptr && self().members() == same->members();
  }
  std::optional<Record> record() const final {
    if constexpr (requires { Derived::recorded_as; }) {
      return Record{Derived::recorded_as, recorded_values(self().members())};
    } else {
      return Record{self().name(), recorded_values(self().members())};
    }
  }

  std::vector<array> call_again(const RecordedCall& call) const final {
    return holdfast::call_again(*record(), call);
  }

  bool has_vmap_rule() const final {
    return !std::same_as<decltype(&Derived::vmap_rule), decltype(&Op::vmap_rule)>;
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace holdfast
