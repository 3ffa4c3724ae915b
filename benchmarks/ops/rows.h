// The rows of rows.def as data.
#pragma once

#include <holdfast/holdfast.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace holdfast::bench {

enum class OpKind { plain, library };

struct OpRow {
  OpKind kind;
  const char* name;
  const char* inputs;
  std::vector<array> (*run)(const std::vector<array>& a);
  const char *mlx, *jax, *numpy;  // empty: missing

  std::map<std::string, std::string> expressions() const {
    return {{"mlx", mlx}, {"jax", jax}, {"numpy", numpy}};
  }
};

std::span<const OpRow> op_rows();

// The arrays that a row's column `inputs` names, evaluated.
std::vector<array> make_inputs(const std::string& text);

}  // namespace holdfast::bench
