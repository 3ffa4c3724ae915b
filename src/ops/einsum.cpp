// einsum: a greedy path of pairs, each pair one batched matrix product.
#include <holdfast/einsum.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>

#include "ops/dynamic_shape.h"
#include "ops/support.h"

namespace holdfast {

namespace {

struct Operand {
  std::string labels;  // one letter for each dimension
  array value;
};

struct Notation {
  std::vector<std::string> inputs;
  std::string output;
};

[[noreturn]] void fail(const std::string& message) {
  throw std::invalid_argument("[einsum] " + message);
}

// "..." becomes capital-free place holders: characters from 1 on, the last dimension first.
std::string expand_ellipsis(const std::string& labels, size_t hidden) {
  std::string result;
  size_t dots = labels.find("...");
  if (dots == std::string::npos) return labels;
  result = labels.substr(0, dots);
  for (size_t i = hidden; i > 0; --i) result += static_cast<char>(i);
  return result + labels.substr(dots + 3);
}

Notation parse(const std::string& subscripts, const std::vector<array>& operands) {
  std::string text_only;
  for (char c : subscripts) {
    if (!std::isspace(static_cast<unsigned char>(c))) text_only += c;
  }
  size_t arrow = text_only.find("->");
  std::string left = text_only.substr(0, arrow);
  std::vector<std::string> parts(1);
  for (char c : left) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() != operands.size()) {
    fail(text("expected ", parts.size(), " operands for \"", subscripts, "\", got ",
              operands.size()));
  }
  auto check_letters = [&](std::string labels) {
    size_t dots = labels.find("...");
    if (dots != std::string::npos) labels.erase(dots, 3);
    for (char c : labels) {
      if (!std::isalpha(static_cast<unsigned char>(c))) {
        fail(text("expected letters, \",\", \"...\" and \"->\", got \"", subscripts, "\""));
      }
    }
    return labels.size();
  };
  Notation notation;
  size_t most_hidden = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t letters = check_letters(parts[i]), ndim = operands[i].ndim();
    bool dots = parts[i].find("...") != std::string::npos;
    if (dots ? letters > ndim : letters != ndim) {
      fail(text("\"", parts[i], "\" has ", letters, " letters, but operand ", i, " has shape ",
                operands[i].shape()));
    }
    size_t hidden = dots ? ndim - letters : 0;
    most_hidden = std::max(most_hidden, hidden);
    notation.inputs.push_back(expand_ellipsis(parts[i], hidden));
  }
  if (arrow != std::string::npos) {
    std::string right = text_only.substr(arrow + 2);
    check_letters(right);
    notation.output = expand_ellipsis(right, most_hidden);
    std::set<char> seen;
    for (char c : notation.output) {
      bool known = std::any_of(notation.inputs.begin(), notation.inputs.end(),
                               [&](const std::string& in) { return in.find(c) != in.npos; });
      if (!known || !seen.insert(c).second) {
        fail(text("each letter of the result must appear once there and in an operand, got \"",
                  subscripts, "\""));
      }
    }
  } else {
    for (size_t i = most_hidden; i > 0; --i) notation.output += static_cast<char>(i);
    std::map<char, int> counts;
    for (const std::string& in : notation.inputs) {
      for (char c : in) counts[c] += 1;
    }
    for (auto [letter, count] : counts) {
      if (count == 1 && std::isalpha(static_cast<unsigned char>(letter))) {
        notation.output += letter;
      }
    }
  }
  return notation;
}

using Sizes = std::map<char, int64_t>;

Sizes sizes_of(const Notation& notation, const std::vector<array>& operands) {
  Sizes sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < operands[i].ndim(); ++d) {
      char label = notation.inputs[i][d];
      int64_t size = operands[i].shape(static_cast<int>(d));
      auto [at, is_new] = sizes.emplace(label, size);
      if (is_new || at->second == size) continue;
      if (at->second != 1 && size != 1) {
        fail(text("dimensions of one letter must match or be 1, got ", at->second, " and ", size));
      }
      at->second = std::max(at->second, size);
    }
  }
  return sizes;
}

double count_of(const std::string& labels, const Sizes& sizes) {
  double count = 1;
  std::set<char> seen(labels.begin(), labels.end());
  for (char c : seen) count *= static_cast<double>(sizes.at(c));
  return count;
}

// Letters of both that others or the result still need.
std::string kept_labels(const std::string& a, const std::string& b,
                        const std::vector<std::string>& others, const std::string& output) {
  std::string kept;
  for (char c : a + b) {
    bool needed = output.find(c) != output.npos ||
                  std::any_of(others.begin(), others.end(),
                              [&](const std::string& o) { return o.find(c) != o.npos; });
    if (needed && kept.find(c) == kept.npos) kept += c;
  }
  return kept;
}

struct Step {
  std::vector<int> positions;
  std::string result;
};

std::vector<Step> greedy_path(const Notation& notation, const Sizes& sizes) {
  std::vector<Step> steps;
  std::vector<std::string> left = notation.inputs;
  while (left.size() > 2) {
    double best_saving = -std::numeric_limits<double>::infinity(), best_cost = 0;
    size_t best_i = 0, best_j = 1;
    bool found = false;
    for (bool disjoint : {false, true}) {
      if (found) break;
      for (size_t i = 0; i < left.size(); ++i) {
        for (size_t j = i + 1; j < left.size(); ++j) {
          bool shares = std::any_of(left[i].begin(), left[i].end(),
                                    [&](char c) { return left[j].find(c) != left[j].npos; });
          if (shares == disjoint) continue;
          std::vector<std::string> others;
          for (size_t o = 0; o < left.size(); ++o) {
            if (o != i && o != j) others.push_back(left[o]);
          }
          std::string kept = kept_labels(left[i], left[j], others, notation.output);
          double saving =
              count_of(left[i], sizes) + count_of(left[j], sizes) - count_of(kept, sizes);
          double cost = count_of(left[i] + left[j], sizes);
          if (!found || saving > best_saving || (saving == best_saving && cost < best_cost)) {
            found = true;
            best_saving = saving;
            best_cost = cost;
            best_i = i;
            best_j = j;
          }
        }
      }
    }
    std::vector<std::string> others;
    for (size_t o = 0; o < left.size(); ++o) {
      if (o != best_i && o != best_j) others.push_back(left[o]);
    }
    std::string kept = kept_labels(left[best_i], left[best_j], others, notation.output);
    steps.push_back({{static_cast<int>(best_i), static_cast<int>(best_j)}, kept});
    left = others;
    left.push_back(kept);
  }
  std::vector<int> rest;
  for (size_t i = 0; i < left.size(); ++i) rest.push_back(static_cast<int>(i));
  steps.push_back({rest, notation.output});
  return steps;
}

// --- contraction ---

// One dimension for each letter: repeated ones become the diagonal.
Operand without_repeats(Operand operand, StreamOrDevice s) {
  std::set<char> letters(operand.labels.begin(), operand.labels.end());
  if (letters.size() == operand.labels.size()) return operand;
  Strides strides = row_major_strides(operand.value.shape());
  std::string labels;
  Shape shape;
  Strides diagonal;
  for (size_t d = 0; d < operand.labels.size(); ++d) {
    size_t at = labels.find(operand.labels[d]);
    int size = operand.value.shape(static_cast<int>(d));
    if (at == labels.npos) {
      labels += operand.labels[d];
      shape.push_back(size);
      diagonal.push_back(strides[d]);
      continue;
    }
    if (shape[at] != size) {
      fail(text("dimensions of one letter must match in one operand, got ", shape[at], " and ",
                size));
    }
    diagonal[at] += strides[d];
  }
  return {labels, as_strided(operand.value, shape, diagonal, 0, s)};
}

// Sums out the letters that `keep` does not have.
Operand sum_out(Operand operand, const std::string& keep, StreamOrDevice s) {
  std::vector<int> axes;
  std::string labels;
  for (size_t d = 0; d < operand.labels.size(); ++d) {
    if (keep.find(operand.labels[d]) == keep.npos) {
      axes.push_back(static_cast<int>(d));
    } else {
      labels += operand.labels[d];
    }
  }
  if (axes.empty()) return operand;
  return {labels, sum(operand.value, axes, false, s)};
}

array in_order(const Operand& operand, const std::string& labels, StreamOrDevice s) {
  std::vector<int> axes;
  for (char c : labels) axes.push_back(static_cast<int>(operand.labels.find(c)));
  return transpose(operand.value, axes, s);
}

Operand contract(Operand a, Operand b, const std::string& kept, const Sizes& sizes,
                 StreamOrDevice s) {
  a = sum_out(std::move(a), kept + b.labels, s);
  b = sum_out(std::move(b), kept + a.labels, s);
  std::string batch, summed, rows, columns;
  for (char c : a.labels) {
    bool shared = b.labels.find(c) != b.labels.npos, stays = kept.find(c) != kept.npos;
    (shared ? (stays ? batch : summed) : rows) += c;
  }
  for (char c : b.labels) {
    if (a.labels.find(c) == a.labels.npos) columns += c;
  }
  auto shape_of = [&](const std::string& labels) {
    Shape shape;
    for (char c : labels) shape.push_back(static_cast<int>(sizes.at(c)));
    return shape;
  };
  // Dimensions of size 1 that meet larger ones are repeated.
  auto full = [&](const Operand& operand, const std::string& order) {
    return broadcast_here(in_order(operand, order, s), shape_of(order), s);
  };
  array left = full(a, batch + rows + summed), right = full(b, batch + summed + columns);
  std::string labels = batch + rows + columns;
  if (!issubdtype(left.dtype(), inexact)) {
    // Matrix products are for floating and complex numbers.
    Operand wide_a{batch + rows + summed, left}, wide_b{batch + summed + columns, right};
    std::string all = batch + rows + columns + summed;
    auto spread = [&](const Operand& operand) {
      std::vector<int> missing;
      std::string present;
      for (size_t i = 0; i < all.size(); ++i) {
        if (operand.labels.find(all[i]) == operand.labels.npos) {
          missing.push_back(static_cast<int>(i));
        } else {
          present += all[i];
        }
      }
      return expand_dims(in_order(operand, present, s), missing, s);
    };
    array product = multiply(spread(wide_a), spread(wide_b), s);
    return sum_out({all, broadcast_here(product, shape_of(all), s)}, labels, s);
  }
  auto merged = [&](const array& value, std::initializer_list<std::string> parts) {
    Shape shape;
    for (char c : batch) shape.push_back(static_cast<int>(sizes.at(c)));
    for (const std::string& part : parts) {
      int64_t count = 1;
      for (char c : part) count *= sizes.at(c);
      shape.push_back(safe_cast(count, "einsum"));
    }
    return reshape_here(value, shape, s);
  };
  array product = matmul(merged(left, {rows, summed}), merged(right, {summed, columns}), s);
  return {labels, reshape_here(product, shape_of(labels), s)};
}

}  // namespace

std::pair<std::vector<std::vector<int>>, std::string> einsum_path(
    const std::string& subscripts, const std::vector<array>& operands) {
  if (operands.empty()) fail("expected one operand or more, got none");
  Notation notation = parse(subscripts, operands);
  Sizes sizes = sizes_of(notation, operands);
  std::vector<Step> steps = greedy_path(notation, sizes);
  std::vector<std::vector<int>> path;
  double naive = count_of(
                     [&] {
                       std::string all;
                       for (const std::string& in : notation.inputs) all += in;
                       return all;
                     }(),
                     sizes) *
                 static_cast<double>(operands.size());
  std::string report =
      text("  Complete contraction: ", subscripts, "\n  Naive FLOP count: ", naive, "\n  Steps:");
  for (const Step& step : steps) {
    path.push_back(step.positions);
    report += text("\n    ", step.positions, " -> ", step.result);
  }
  return {path, report + "\n"};
}

array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s) {
  if (operands.empty()) fail("expected one operand or more, got none");
  Notation notation = parse(subscripts, operands);
  Sizes sizes = sizes_of(notation, operands);
  Dtype dtype = result_type(operands);
  std::vector<Operand> left;
  for (size_t i = 0; i < operands.size(); ++i) {
    left.push_back(without_repeats({notation.inputs[i], astype(operands[i], dtype, s)}, s));
  }
  for (const Step& step : greedy_path(notation, sizes)) {
    std::vector<Operand> taken;
    for (size_t i = step.positions.size(); i-- > 0;) {
      auto at = left.begin() + step.positions[i];
      taken.insert(taken.begin(), *at);
      left.erase(at);
    }
    Operand result = taken[0];
    if (taken.size() == 2) result = contract(taken[0], taken[1], step.result, sizes, s);
    left.push_back(sum_out(std::move(result), step.result, s));
  }
  array result = in_order(left[0], notation.output, s);
  Shape shape;
  for (char c : notation.output) shape.push_back(static_cast<int>(sizes.at(c)));
  return broadcast_here(result, shape, s);
}

}  // namespace holdfast
