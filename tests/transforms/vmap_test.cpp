// vmap of every op of the registry against a loop over its calls.
#include "transforms/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int calls = 3;

// The input of each call, and all of them with the mapped axis at `axis`; -1: one for all.
struct MappedInput {
  std::vector<array> each;
  array all;
  int axis;
};

MappedInput mapped_input(const std::string& op, const registry::Input& input, Dtype dtype, int axis,
                         std::mt19937_64& random) {
  std::vector<array> each;
  for (int i = 0; i < calls; ++i) {
    if (i > 0 && axis < 0) {
      each.push_back(each[0]);
    } else {
      each.push_back(random_input(op, input, dtype, random));
    }
  }
  return {each, axis < 0 ? each[0] : stack(each, axis), axis};
}

// Every way to map some of the inputs along some axis: each input by itself along each of its axes,
// and all together along the first and along the last.
std::vector<std::vector<int>> mappings(const registry::Sample& sample) {
  std::vector<std::vector<int>> result;
  size_t count = sample.inputs.size();
  for (size_t i = 0; i < count; ++i) {
    for (int axis = 0; axis <= static_cast<int>(sample.inputs[i].shape.size()); ++axis) {
      std::vector<int> axes(count, -1);
      axes[i] = axis;
      result.push_back(axes);
    }
  }
  if (count > 1) {
    result.push_back(std::vector<int>(count, 0));
    std::vector<int> last;
    for (const registry::Input& input : sample.inputs) {
      last.push_back(static_cast<int>(input.shape.size()));
    }
    result.push_back(last);
  }
  return result;
}

}  // namespace

TEST_CASE("vmap of every op against a loop, along every axis") {
  uint64_t seed = 1000;
  size_t checked = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    // A larger product may add in another order, and what it adds may cancel.
    double tolerance = row.family == registry::Family::products ? 400 : 4;
    for (Dtype dtype : {float32, int32, bool_, complex64}) {
      if (!accepts(row, dtype)) continue;
      for (const registry::Sample& sample : registry::samples_of(row)) {
        if (sample.outcome != registry::Sample::Outcome::result) continue;
        for (const std::vector<int>& axes : mappings(sample)) {
          std::mt19937_64 random(seed++);
          std::vector<MappedInput> inputs;
          for (size_t i = 0; i < axes.size(); ++i) {
            inputs.push_back(mapped_input(row.name, sample.inputs[i], dtype, axes[i], random));
          }
          Function f = [&](const std::vector<array>& x) {
            return row.run(registry::Call(x, sample.arguments));
          };
          INFO(std::string(row.name) << " of " << sample.text << " mapped along "
                                     << doctest::toString(axes.empty() ? 0 : axes[0]) << ", "
                                     << std::string(dtype_name(dtype)));
          std::vector<std::vector<array>> expected;
          std::vector<array> all;
          for (const MappedInput& input : inputs) all.push_back(input.all);
          try {
            for (int i = 0; i < calls; ++i) {
              std::vector<array> one;
              for (const MappedInput& input : inputs) {
                one.push_back(input.each[static_cast<size_t>(i)]);
              }
              expected.push_back(f(one));
            }
          } catch (const std::invalid_argument&) {
            continue;
          }
          for (int out_axis = 0; out_axis < 2; ++out_axis) {
            std::vector<int> out_axes;
            for (const array& output : expected[0]) {
              out_axes.push_back(out_axis == 0 ? 0 : static_cast<int>(output.ndim()));
            }
            std::vector<array> got = vmap(f, axes, out_axes)(all);
            REQUIRE(got.size() == expected[0].size());
            for (size_t k = 0; k < got.size(); ++k) {
              std::vector<array> rows;
              for (const std::vector<array>& outputs : expected) rows.push_back(outputs[k]);
              std::string difference =
                  registry::difference(got[k], stack(rows, out_axes[k]), tolerance);
              CHECK_MESSAGE(difference.empty(), difference);
            }
            ++checked;
          }
        }
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE_FIXTURE(OnCpu, "vmap of what has no row") {
  uint64_t seed = 5000;
  for (const Case& c : more_cases()) {
    registry::Sample sample;
    for (const Shape& shape : c.shapes) sample.inputs.push_back({"a", shape, 0});
    for (const std::vector<int>& axes : mappings(sample)) {
      std::mt19937_64 random(seed++);
      std::vector<array> all;
      std::vector<std::vector<array>> each(calls);
      for (size_t i = 0; i < axes.size(); ++i) {
        MappedInput input = mapped_input(c.name, sample.inputs[i], c.dtype, axes[i], random);
        all.push_back(input.all);
        for (size_t k = 0; k < calls; ++k) each[k].push_back(input.each[k]);
      }
      INFO(c.name << " mapped along " << axes[0]);
      std::vector<array> got = vmap(c.f, axes, {})(all);
      for (size_t k = 0; k < got.size(); ++k) {
        std::vector<array> rows;
        for (const std::vector<array>& inputs : each) rows.push_back(c.f(inputs)[k]);
        std::string difference = registry::difference(got[k], stack(rows, 0), 30);
        CHECK_MESSAGE(difference.empty(), difference);
      }
    }
  }
}

TEST_CASE("vmap: axes that are negative and not -1 are refused when it is made") {
  auto same = [](const std::vector<array>& a) { return a; };
  CHECK_NOTHROW(vmap(same, {-1, 0}, {-1}));
  CHECK_THROWS_WITH_AS(vmap(same, {0, -2}), doctest::Contains("[vmap]"), std::invalid_argument);
  CHECK_THROWS_AS(vmap(same, {0}, {-2}), std::invalid_argument);
  CHECK_THROWS_AS(vmap([](const array& a) { return a; }, -2), std::invalid_argument);
}
