// The two directions of differentiation, on graphs that were traced.
#pragma once

#include <optional>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/primitive.h>
#include <holdfast/stream.h>

namespace holdfast::detail {

// The stream of the op that computes the array; without one the default.
StreamOrDevice stream_of(const array& a);

// What a transform builds for an op runs on that op's stream: while one of these is alive, it is
// the default. A graph on one stream does not wait for another because it was transformed.
class OnStreamOf {
 public:
  explicit OnStreamOf(const array& a) {
    if (a.has_primitive()) context_.emplace(a.primitive().stream());
  }

 private:
  std::optional<StreamContext> context_;
};

// Nodes that are the arrays, as far as values go, and that a trace starts from.
std::vector<array> traced(const std::vector<array>& arrays);
// A tracer without a value: it stands for what is not known yet.
array placeholder(Shape shape, Dtype dtype);

// The cotangents of `from` that follow from those of `to`. An array that stands in `from` twice has
// all of its cotangent at the first place.
std::vector<array> pull_back(const std::vector<array>& from, const std::vector<array>& to,
                             const std::vector<array>& cotangents);
// The tangents of `to` that follow from those of `from`.
std::vector<array> push_forward(const std::vector<array>& from, const std::vector<array>& tangents,
                                const std::vector<array>& to);

}  // namespace holdfast::detail
