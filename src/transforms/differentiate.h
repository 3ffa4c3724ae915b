// The two directions of differentiation, on graphs that were traced.
#pragma once

#include <vector>

#include <holdfast/array.h>

namespace holdfast::detail {

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
