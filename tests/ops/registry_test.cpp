// Every row of the registry: all layouts of its inputs give one result, and dtypes that it does not
// take raise when the op is called. What the results are is checked elsewhere: by the tests of each
// op, and against MLX in tests/peers.
#include "registry/registry.h"

#include <cstdlib>

#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// The same values behind other strides.
std::vector<NamedView> layouts_of(const array& a) {
  std::vector<NamedView> layouts;
  if (a.ndim() == 0 || a.size() == 0) return layouts;
  array turned = transpose(contiguous(transpose(a)));
  layouts.push_back({"column-major", turned});
  // Every second element of something twice as large, from the back.
  Shape doubled, start, stop, step;
  for (ShapeElem dim : a.shape()) {
    doubled.push_back(2 * dim);
    start.push_back(2 * dim - 1);
    stop.push_back(-2 * dim - 1);
    step.push_back(-2);
  }
  array wide = a;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    Shape from(a.ndim(), 0), to = wide.shape(), steps(a.ndim(), 1);
    from[static_cast<size_t>(axis)] = wide.shape(axis) - 1;
    to[static_cast<size_t>(axis)] = -wide.shape(axis) - 1;
    steps[static_cast<size_t>(axis)] = -1;
    array back = slice(wide, from, to, steps);
    array pair = stack({zeros_like(back), back}, axis + 1);
    Shape merged = wide.shape();
    merged[static_cast<size_t>(axis)] *= 2;
    // zeros, element, zeros, element, …: the elements stand at odd places, in reverse order.
    wide = reshape(pair, merged);
  }
  layouts.push_back({"reversed, every second", slice(wide, start, stop, step)});
  for (NamedView& layout : layouts) layout.view.eval();
  return layouts;
}

// The first place of one axis again and again: elements that share memory.
std::vector<NamedView> repeated(const array& a) {
  std::vector<NamedView> layouts;
  for (int axis = 0; axis < static_cast<int>(a.ndim()); ++axis) {
    if (a.size() == 0 || a.shape(axis) == 1) continue;
    Shape stop = a.shape();
    stop[static_cast<size_t>(axis)] = 1;
    array view = broadcast_to(slice(a, Shape(a.ndim(), 0), stop), a.shape());
    layouts.push_back({"repeated along " + std::to_string(axis), view});
    layouts.back().view.eval();
  }
  return layouts;
}

std::vector<array> inputs_for(const registry::Sample& sample, Dtype dtype) {
  std::vector<array> inputs;
  uint64_t seed = 1;
  for (const registry::Input& input : sample.inputs) {
    inputs.push_back(registry::make_input(input, dtype, seed++));
  }
  return inputs;
}

bool names_dtype(const registry::Sample& sample) {
  return std::any_of(sample.inputs.begin(), sample.inputs.end(),
                     [](const registry::Input& input) { return input.has_row_dtype(); });
}

}  // namespace

TEST_CASE("the views of the tests hold the values of the array") {
  array a = reshape(arange(24), {2, 3, 4});
  for (const NamedView& layout : layouts_of(a)) {
    CAPTURE(layout.name);
    CHECK(layout.view.strides() != a.strides());
    CHECK(values_of<int>(layout.view) == values_of<int>(a));
  }
}

TEST_CASE("every op gives one result for all layouts of its inputs") {
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    for (const registry::Sample& sample : registry::samples_of(row)) {
      for (Dtype dtype : all_dtypes()) {
        std::vector<array> inputs = inputs_for(sample, dtype);
        bool is_named = row.accepted != 0;
        bool is_accepted = registry::accepts(row, sample, dtype);
        INFO(std::string(row.name)
             << " of " << sample.text << " with " << std::string(dtype_name(dtype)));
        registry::Results expected;
        try {
          expected = row.run(registry::Call(inputs, sample.arguments));
          CHECK(sample.outcome == registry::Sample::Outcome::result);
          CHECK(is_accepted);
        } catch (const std::invalid_argument& error) {
          std::string what = error.what();
          bool is_expected = sample.outcome == registry::Sample::Outcome::invalid_argument;
          CHECK_MESSAGE((is_expected || !is_named || !is_accepted), what);
          CHECK_MESSAGE(what.starts_with("["), what);
          continue;
        } catch (const std::out_of_range& error) {
          std::string what = error.what();
          CHECK_MESSAGE(sample.outcome == registry::Sample::Outcome::out_of_range, what);
          continue;
        }
        eval(expected);
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (sample.inputs[i].kind == "key") continue;
          for (const NamedView& layout : layouts_of(inputs[i])) {
            std::vector<array> others = inputs;
            others[i] = layout.view;
            registry::Results got = row.run(registry::Call(others, sample.arguments));
            REQUIRE(got.size() == expected.size());
            for (size_t k = 0; k < got.size(); ++k) {
              std::string difference = registry::difference(got[k], expected[k]);
              CHECK_MESSAGE(difference.empty(), layout.name << ": " << difference);
            }
          }
        }
        if (!names_dtype(sample)) break;
      }
    }
  }
}

// Sizes are drawn: HOLDFAST_TEST_SEED repeats a draw.
TEST_CASE("every op of random sizes gives one result for strided and repeated inputs") {
  const char* given = std::getenv("HOLDFAST_TEST_SEED");
  uint64_t seed = given != nullptr ? std::stoull(given) : 1;
  CAPTURE(seed);
  size_t compared = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    for (const registry::Sample& written : registry::samples_of(row)) {
      registry::Sample sample = registry::resized(written, seed += 7, true);
      for (Dtype dtype : all_dtypes()) {
        if (!registry::accepts(row, sample, dtype)) continue;
        INFO(std::string(row.name)
             << " of " << sample.text << " with " << std::string(dtype_name(dtype)));
        std::vector<array> inputs = inputs_for(sample, dtype);
        auto run = [&](const std::vector<array>& from) {
          registry::Results results = row.run(registry::Call(from, sample.arguments));
          eval(results);
          return results;
        };
        auto check = [&](const std::string& layout, const registry::Results& got,
                         const registry::Results& expected) {
          REQUIRE(got.size() == expected.size());
          for (size_t k = 0; k < got.size(); ++k) {
            std::string difference = registry::difference(got[k], expected[k], 4);
            CHECK_MESSAGE(difference.empty(), layout << ": " << difference);
          }
        };
        registry::Results expected;
        try {
          expected = run(inputs);
        } catch (const std::exception& error) {
          CHECK(std::string(error.what()).starts_with("["));
          break;  // the arguments or the indices do not fit the sizes
        }
        ++compared;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const std::string& kind = sample.inputs[i].kind;
          if (kind == "key") continue;
          std::vector<array> others = inputs;
          for (const NamedView& layout : layouts_of(inputs[i])) {
            others[i] = layout.view;
            check(layout.name, run(others), expected);
          }
          // A matrix of equal rows has no inverse.
          if (row.family == registry::Family::products &&
              std::string(row.name).find("linalg") == 0) {
            continue;
          }
          for (const NamedView& layout : repeated(inputs[i])) {
            others[i] = contiguous(layout.view);
            registry::Results plain = run(others);
            others[i] = layout.view;
            check(layout.name, run(others), plain);
          }
        }
        if (!names_dtype(sample)) break;
      }
    }
  }
  CHECK(compared > 2500);
}
