// Sums of products in Einstein's notation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/utils.h>

namespace holdfast {

// In which order einsum contracts: positions in the list of operands, from which they are taken and
// to whose end the result is added. Greedy: the pair that makes the arrays smaller by most, then
// the cheapest one. The text describes the path.
std::pair<std::vector<std::vector<int>>, std::string> einsum_path(
    const std::string& subscripts, const std::vector<array>& operands);

// "ij,jk->ik"; without "->", letters that appear once, in alphabetical order. "..." stands for
// leading dimensions that broadcast.
array einsum(const std::string& subscripts, const std::vector<array>& operands,
             StreamOrDevice s = {});

}  // namespace holdfast
