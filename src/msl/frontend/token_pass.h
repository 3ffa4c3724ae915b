// The pass over the user's text before clang reads it. It changes only what C++ cannot say:
//   0.5            0.5f: literals are float in MSL
//   1.5h, 1.5bf    a half and a bfloat literal
//   [[buffer(0)]]  __attribute__((holdfast("buffer",0))): Metal's attributes, which our handlers
//   read (attributes.h).
//                  In lists with standard attributes only Metal's leave the list.
//   device T x[4]  as a parameter: device T* x
//   f() const device {   the address space of a member function is dropped: `this` converts to the
//                  generic space. Of members that differ in nothing else, the first stays
//   constant bool b [[function_constant(0)]];   gets its value
//   template [[host_name("f")]] …   becomes extern template …: a declaration
//   #pragma METAL fp …   becomes #pragma clang fp …
//   half(b)        half(__hf_meet(b)) where b is a bfloat, which clang does not cast: the front-end
//   learns from clang which casts these are, and calls the pass again with their operands
// Everything else, comments and line ends too, stays where it is, so that a position in the result
// maps back.
#pragma once

#include <compare>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msl/kernel_source.h"

namespace holdfast::msl {

struct RewrittenText {
  std::string text;

  // The position in the original of a position in `text`.
  size_t original(size_t position) const;

  // From `at` in `text` on, positions are those of the original, shifted; sorted.
  struct Stretch {
    size_t at, original;
    bool copied;  // false: text of ours, all of it stands for `original`
  };
  std::vector<Stretch> stretches;
};

struct TextRange {
  size_t begin, end;
  auto operator<=>(const TextRange&) const = default;
};

// `met`: operands of casts, in positions of `source`, that go through __hf_meet.
RewrittenText rewrite_tokens(std::string_view source,
                             const std::vector<FunctionConstant>& constants = {},
                             const std::set<TextRange>& met = {});

// The thread attributes of a kernel's parameters ([[thread_position_in_grid]], …).
bool is_thread_attribute(std::string_view name);

}  // namespace holdfast::msl
