// Derivatives and vmap of every op on the GPU: what they are on the CPU. Whether they are right is
// tested there, in float64.
#include "transforms/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// vjp, jvp and vmap of `f`, on a device.
std::vector<array> transformed_on(Device device, const Function& f,
                                  const std::vector<array>& inputs, uint64_t seed) {
  StreamContext here(device);
  std::mt19937_64 random(seed);
  const std::vector<array> weights = random_like(f(inputs), random);
  const std::vector<array> direction = random_like(inputs, random);
  std::vector<array> results = vjp(f, inputs, weights).second;
  for (const array& tangent : jvp(f, inputs, direction).second) results.push_back(tangent);
  std::vector<array> all = inputs;
  std::vector<int> axes(inputs.size(), -1);
  all[0] = stack({inputs[0], inputs[0]}, 0);
  axes[0] = 0;
  for (const array& output : vmap(f, axes, {})(all)) results.push_back(output);
  eval(results);
  return results;
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
      std::vector<array> expected;
      try {
        expected = transformed_on(Device::cpu, f, inputs, seed);
      } catch (const std::invalid_argument&) {
        continue;  // of integers, or without a derivative
      }
      if (is_refused_on_gpu(f, inputs)) continue;
      const std::vector<array> got = transformed_on(Device::gpu, f, inputs, seed);
      REQUIRE(got.size() == expected.size());
      for (size_t k = 0; k < got.size(); ++k) {
        // Functions of floats are other ones there.
        const std::string difference = registry::difference(got[k], expected[k], 1);
        CHECK_MESSAGE(difference.empty(), k << ": " << difference);
      }
      ++compared;
    }
  }
  CHECK(compared > 150);
}
