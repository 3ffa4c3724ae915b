// Derivatives and vmap of every op on the GPU: what they are on the CPU. Whether they are right is
// tested there, in float64.
#include <optional>

#include "support/rounding.h"
#include "transforms/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// The inputs of a function, and where it is differentiated: vjp with `weights`, jvp in `direction`.
struct Point {
  std::vector<array> inputs, weights, direction;

  Point(const Function& f, std::vector<array> at, uint64_t seed) : inputs(std::move(at)) {
    std::mt19937_64 random(seed);
    weights = random_like(f(inputs), random);
    direction = random_like(inputs, random);
  }
  // One after the other, and back.
  std::vector<array> all() const {
    std::vector<array> result = inputs;
    result.insert(result.end(), weights.begin(), weights.end());
    result.insert(result.end(), direction.begin(), direction.end());
    return result;
  }
  Point with(const std::vector<array>& all) const {
    Point result = *this;
    auto next = all.begin();
    for (std::vector<array>* part : {&result.inputs, &result.weights, &result.direction}) {
      for (array& one : *part) one = *next++;
    }
    return result;
  }
};

// vjp, jvp and vmap of `f`, on a device.
std::vector<array> transformed_on(Device device, const Function& f, const Point& at) {
  StreamContext here(device);
  std::vector<array> results = vjp(f, at.inputs, at.weights).second;
  for (const array& tangent : jvp(f, at.inputs, at.direction).second) results.push_back(tangent);
  std::vector<array> all = at.inputs;
  std::vector<int> axes(all.size(), -1);
  all[0] = stack({all[0], all[0]}, 0);
  axes[0] = 0;
  for (const array& output : vmap(f, axes, {})(all)) results.push_back(output);
  eval(results);
  return results;
}

// By how much derivatives of a row may differ. Those of sums of products are sums of products, of
// the same terms and of weights. The others are formulas of one or two functions of numbers about
// 1, and sums of a few terms: the tolerance of the registry, 16 roundings on each device.
std::string difference(const std::string& row, const RoundedCall& call, size_t index,
                       const array& got, const array& expected) {
  const Rounding* rounding = rounding_of(row, float32);
  if (rounding && (rounding->size == Size::terms || rounding->size == Size::largest_terms))
    return beyond_rounding(*rounding, call, index, got, expected);
  return registry::difference(got, expected, 1);
}

bool is_refused_on_gpu(const Function& f, const std::vector<array>& inputs) {
  StreamContext on_gpu(Device::gpu);
  try {
    f(inputs);
  } catch (const std::invalid_argument&) {
    return true;  // a factorisation
  }
  return false;
}

}  // namespace

TEST_CASE("transforms of every op give on the gpu what they give on the cpu") {
  uint64_t seed = 7000;
  size_t compared = 0;
  for (const registry::Row& row : registry::rows()) {
    const std::string name = row.name;
    if (!accepts(row, float32) || name == "view" || name == "linalg.lu" ||
        name == "linalg.lu_factor") {
      continue;  // has no derivative
    }
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result || sample.inputs.empty()) continue;
      StreamContext on_cpu(Device::cpu);
      std::mt19937_64 random(++seed);
      std::vector<array> inputs;
      for (const registry::Input& input : sample.inputs)
        inputs.push_back(random_input(name, input, float32, random));
      const Function f = [&](const std::vector<array>& x) {
        return row.run(registry::Call(x, sample.arguments));
      };
      INFO(name << " of " << sample.text);
      std::optional<Point> at;
      std::vector<array> expected;
      try {
        at.emplace(f, inputs, seed);
        expected = transformed_on(Device::cpu, f, *at);
      } catch (const std::invalid_argument&) {
        continue;  // of integers, or without a derivative
      }
      if (is_refused_on_gpu(f, inputs)) continue;
      const std::vector<array> got = transformed_on(Device::gpu, f, *at);
      REQUIRE(got.size() == expected.size());
      const RoundedCall call{
          [&](const auto& all) { return transformed_on(Device::cpu, f, at->with(all)); }, at->all(),
          sample};
      for (size_t k = 0; k < got.size(); ++k) {
        const std::string text = difference(name, call, k, got[k], expected[k]);
        CHECK_MESSAGE(text.empty(), k << ": " << text);
      }
      ++compared;
    }
  }
  CHECK(compared > 150);
}
