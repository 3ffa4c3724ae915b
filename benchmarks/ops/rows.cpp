#include "benchmarks/ops/rows.h"

#include <regex>
#include <stdexcept>

namespace holdfast::bench {
namespace {

std::vector<array> results(array a) { return {std::move(a)}; }
std::vector<array> results(std::vector<array> list) { return list; }
std::vector<array> results(std::pair<array, array> both) { return {both.first, both.second}; }

constexpr const char* missing = "";
// What stands for the MLX column in the others.
constexpr const char* same = "=";

constexpr const char* peer(const char* expression, const char* mlx) {
  return expression[0] == '=' ? mlx : expression;
}

#define ROW(kind, name, inputs, expression, mlx, jax, numpy)                              \
  OpRow{OpKind::kind,                                                                     \
        name,                                                                             \
        inputs,                                                                           \
        []([[maybe_unused]] const std::vector<array>& a) { return results(expression); }, \
        mlx,                                                                              \
        peer(jax, mlx),                                                                   \
        peer(numpy, mlx)},
const OpRow all_rows[] = {
#include "benchmarks/ops/rows.def"
};
#undef ROW

Dtype dtype_of(const std::string& name) {
  for (Dtype dtype : {float32, float16, bfloat16, complex64}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  throw std::invalid_argument("[bench] unknown kind of input \"" + name + "\"");
}

void add_input(const std::string& kind, const Shape& shape, int bound, const array& key,
               std::vector<array>& inputs) {
  if (kind == "key") {
    inputs.push_back(random::key(1));
  } else if (kind == "int32") {
    inputs.push_back(random::randint(0, bound, shape, int32, key));
  } else if (kind == "positive") {
    inputs.push_back(random::uniform(array(0.1f), array(1.0f), shape, float32, key));
  } else if (kind == "sorted") {
    inputs.push_back(sort(random::normal(shape, key), 0));
  } else if (kind == "definite") {
    array a = random::normal({shape[0], shape[0]}, key);
    inputs.push_back(matmul(a, transpose(a)) + static_cast<float>(shape[0]) * eye(shape[0]));
  } else if (kind == "quantized") {
    for (array& part : quantize(random::normal(shape, bfloat16, key), 64, 4)) {
      inputs.push_back(std::move(part));
    }
  } else {
    inputs.push_back(random::normal(shape, dtype_of(kind), key));
  }
}

}  // namespace

std::span<const OpRow> op_rows() { return all_rows; }

std::vector<array> make_inputs(const std::string& text) {
  static const std::regex input(R"((\w+)\(([\d,]*)\)(?:<(\d+))?)");
  static const std::regex number(R"(\d+)");
  std::vector<array> inputs;
  for (std::sregex_iterator at(text.begin(), text.end(), input), end; at != end; ++at) {
    Shape shape;
    std::string dims = (*at)[2];
    for (std::sregex_iterator dim(dims.begin(), dims.end(), number); dim != end; ++dim) {
      shape.push_back(std::stoi(dim->str()));
    }
    int bound = (*at)[3].matched ? std::stoi((*at)[3]) : 0;
    add_input((*at)[1], shape, bound, random::key(inputs.size() + 1), inputs);
  }
  eval(inputs);
  return inputs;
}

}  // namespace holdfast::bench
