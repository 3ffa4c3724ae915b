// Every op of the registry with numbers that nobody means, as arguments and as sizes of inputs: it
// is made or refused. What this looks for is arithmetic of shapes that overflows (the sanitizers
// see it), and memory taken for a result that nobody has asked for yet.
#include <climits>

#include <holdfast/transforms_impl.h>

#include "transforms/differentiate.h"
#include "transforms/samples.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::vector<int> hostile_numbers = {INT_MIN, INT_MIN + 1, -(1 << 30), -1,          0,      1,
                                          1 << 27, 1 << 29,     1 << 30,    INT_MAX - 1, INT_MAX};

bool can_be_made(const registry::Row& row, const registry::Sample& sample,
                 const std::vector<Dtype>& dtypes) {
  detail::InTracing tracing;
  try {
    std::vector<array> inputs;
    for (size_t i = 0; i < dtypes.size(); ++i) {
      inputs.push_back(detail::placeholder(sample.inputs[i].shape, dtypes[i]));
    }
    row.run(registry::Call(std::move(inputs), sample.arguments));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Windows are computed when they are asked for, and unstack makes as many arrays as it is asked
// for.
bool works_at_once(const std::string& op) {
  return op == "unstack" || op == "hanning" || op == "hamming" || op == "bartlett" ||
         op == "blackman";
}

// Calls `use` with each integer in the text changed to each hostile number.
template <class Use>
void for_changed_numbers(std::string& text, const Use& use) {
  const std::string before = text;
  size_t at = 0;
  while ((at = before.find_first_of("-0123456789", at)) != std::string::npos) {
    size_t end = before.find_first_not_of("0123456789", at + 1);
    if (end == std::string::npos) end = before.size();
    for (int hostile : hostile_numbers) {
      text = before.substr(0, at) + std::to_string(hostile) + before.substr(end);
      use();
    }
    at = end;
  }
  text = before;
}

}  // namespace

TEST_CASE("every op of the registry with numbers that nobody means") {
  size_t made = 0, refused = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    if (works_at_once(row.name)) continue;
    for (const registry::Sample& sample : registry::samples_of(row)) {
      std::vector<Dtype> dtypes;
      for (const registry::Input& input : sample.inputs) {
        Dtype dtype = accepts(row, float32) ? float32 : int32;
        dtypes.push_back(registry::make_input(input, dtype, 1).dtype());
      }
      registry::Sample changed = sample;
      auto use = [&] {
        INFO(std::string(row.name) << " of " << sample.text);
        (can_be_made(row, changed, dtypes) ? made : refused) += 1;
      };
      for (auto& [name, value] : changed.arguments) for_changed_numbers(value, use);
      for (registry::Input& input : changed.inputs) {
        for (ShapeElem& dim : input.shape) {
          ShapeElem before = dim;
          for (int hostile : hostile_numbers) {
            if (hostile < 0) continue;
            dim = hostile;
            use();
          }
          // Empty, and yet a product of the others that overflows.
          Shape shape = input.shape;
          std::fill(input.shape.begin(), input.shape.end(), INT_MAX);
          dim = 0;
          use();
          input.shape = shape;
          dim = before;
        }
      }
    }
  }
  CHECK(made > 1000);
  CHECK(refused > 1000);
}
