// Every op of the registry, its derivatives and its mapped form, saved and loaded: the same bits.
#include <map>

#include "ops/recorded_calls.h"
#include "transforms/cases.h"
#include "transforms/export_testing.h"
#include "transforms/hostile_calls.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Calls that the tests saved, some of each kind.
using SeenCalls = std::map<std::string, std::vector<CallAlone>>;

SeenCalls& seen_calls() {
  static SeenCalls calls;
  return calls;
}

void remember(const std::string& file) {
  for (CallAlone& call : calls_in(file)) {
    std::vector<CallAlone>& known = seen_calls()[call.record.kind];
    if (known.size() < 24) known.push_back(std::move(call));
  }
}

// False where the function itself refuses these inputs.
bool round_trip(const TemporaryFolder& folder, const Function& f, const Args& inputs) {
  Args expected;
  try {
    expected = f(inputs);
    eval(expected);
  } catch (const std::exception&) {
    return false;
  }
  std::string file = folder / "function";
  export_function(file, ArgsFunction(f), inputs);
  remember(file);
  Args got = import_function(file)(inputs);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(has_same_bits(got[i], expected[i]));
  }
  return true;
}

// The cotangents of all inputs that have any.
Function derivative_of(const Function& f, const Args& outputs) {
  return [f, outputs](const Args& x) {
    Args cotangents;
    for (const array& output : outputs) cotangents.push_back(ones_like(output));
    return vjp(f, x, cotangents).second;
  };
}

void check_all_forms(const TemporaryFolder& folder, const Function& f, const Args& inputs,
                     size_t& checked) {
  if (!round_trip(folder, f, inputs)) return;
  ++checked;
  if (inputs.empty()) return;
  Args outputs = f(inputs);
  auto is_inexact = [](const array& a) { return issubdtype(a.dtype(), inexact); };
  if (std::all_of(inputs.begin(), inputs.end(), is_inexact) &&
      std::all_of(outputs.begin(), outputs.end(), is_inexact)) {
    round_trip(folder, derivative_of(f, outputs), inputs);
  }
  Args stacked;
  for (const array& input : inputs) stacked.push_back(stack({input, input}));
  round_trip(folder, vmap(f), stacked);
}

}  // namespace

TEST_CASE("export: every op of the registry") {
  TemporaryFolder folder;
  uint64_t seed = 7000;
  size_t checked = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    for (Dtype dtype : {float32, float16, int32, bool_, complex64}) {
      if (!accepts(row, dtype)) continue;
      for (const registry::Sample& sample : registry::samples_of(row)) {
        std::mt19937_64 random(seed++);
        Args inputs;
        for (const registry::Input& input : sample.inputs) {
          inputs.push_back(random_input(row.name, input, dtype, random));
        }
        Function f = [&](const Args& x) { return row.run(registry::Call(x, sample.arguments)); };
        INFO(std::string(row.name)
             << " of " << sample.text << ", " << std::string(dtype_name(dtype)));
        if (dtype == float32) {
          check_all_forms(folder, f, inputs, checked);
        } else {
          checked += round_trip(folder, f, inputs);
        }
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE_FIXTURE(OnCpu, "export: what has no row") {
  TemporaryFolder folder;
  size_t checked = 0;
  std::mt19937_64 random(71);
  for (const Case& c : more_cases()) {
    INFO(c.name);
    Args inputs;
    for (const Shape& shape : c.shapes) {
      inputs.push_back(random_input("", {"a", shape}, c.dtype, random));
    }
    check_all_forms(folder, c.f, inputs, checked);
  }
  CHECK(checked > 50);
}

TEST_CASE("export: low-bit products, fp8, attention with masks, views and other internals") {
  TemporaryFolder folder;
  auto check = [&](const char* name, const Function& f, const Args& inputs) {
    INFO(name);
    CHECK(round_trip(folder, f, inputs));
  };
  random::seed(5);
  for (const char* mode : {"affine", "mxfp4", "mxfp8", "nvfp4"}) {
    bool affine = std::string(mode) == "affine";
    check(mode,
          [&](const Args& x) {
            Args parts = quantize(x[1], std::nullopt, std::nullopt, mode);
            std::optional<array> biases;
            if (affine) biases = parts[2];
            array back = dequantize(parts[0], parts[1], biases, std::nullopt, std::nullopt, mode);
            array product = quantized_matmul(x[0], parts[0], parts[1], biases, true, std::nullopt,
                                             std::nullopt, mode);
            array gathered = gather_qmm(
                stack({x[0], x[0]}), stack({parts[0], parts[0]}), stack({parts[1], parts[1]}),
                biases ? std::optional(stack({*biases, *biases})) : std::nullopt, array({0u, 1u}),
                array({1u, 0u}), true, std::nullopt, std::nullopt, mode);
            parts.insert(parts.end(), {back, product, gathered});
            return parts;
          },
          {random::normal({3, 64}), random::normal({8, 64})});
  }
  check("fp8", [](const Args& x) { return Args{from_fp8(to_fp8(x[0]), float16)}; },
        {random::normal({5})});
  array q = random::normal({1, 4, 3, 8}, float16), k = random::normal({1, 2, 5, 8}, float16);
  check("attention",
        [](const Args& x) {
          auto attend = [&](const char* mode, std::optional<array> mask) {
            return fast::scaled_dot_product_attention(x[0], x[1], x[1], 0.3f, mode, mask, x[3]);
          };
          return Args{attend("", std::nullopt), attend("causal", std::nullopt),
                      attend("array", x[2]), attend("array", x[2] > array(0.0f, float16))};
        },
        {q, k, random::normal({3, 5}, float16), random::normal({4}, float16)});
  check("views",
        [](const Args& x) {
          Args results = split(x[0], Shape{2, 3}, 1);
          results.push_back(slice(x[0], {3, 4}, {-10, -10}, {-1, -2}));
          results.push_back(slice(x[0], {2, 0}, {2, 3}));
          results.push_back(slice_update_max(x[0], x[0], {3, 5}, {-10, -10}, {-1, -1}));
          results.push_back(diagonal(x[0], 9));
          results.push_back(diagonal(x[0], -1));
          results.push_back(as_strided(x[0], {3, 3}, {1, 2}, 4));
          results.push_back(contiguous(transpose(x[0]), true));
          results.push_back(copy(x[0]));
          results.push_back(depends({x[0]}, {exp(x[0])})[0]);
          results.push_back(full({3, 4, 6}, x[0]));
          results.push_back(view(x[0], uint16));
          return results;
        },
        {random::normal({4, 6})});
  check("random numbers of a key",
        [](const Args& x) {
          auto [first, second] = random::split(x[0]);
          return Args{random::normal({4}, float32, first), random::bits({3}, 2, second)};
        },
        {random::key(4)});
  // Some ops are there in traces for any shape only.
  ArgsFunction any_shape = [](const Args& x) {
    array flat = reshape(x[0], {-1});
    auto loss = [](const array& a) {
      return sum(flatten(square(a)) * flatten(a + mean(a, 1, true)));
    };
    array part = slice(x[0], {0, 1}, {2, 100});
    return Args{mean(x[0], 1), flat, broadcast_to(flat, {2, 20}), grad(loss)(x[0]),
                slice_update(x[0], part * part, {0, 0}, {2, -1})};
  };
  array rows = random::normal({4, 5});
  export_function(folder / "any", any_shape, {random::normal({2, 10})}, true);
  remember(folder / "any");
  Args expected = any_shape({rows}), got = import_function(folder / "any")({rows});
  for (size_t i = 0; i < expected.size(); ++i) CHECK(has_same_bits(got[i], expected[i]));
  StreamContext on_cpu(Device::cpu);
  check("solvers",
        [](const Args& x) {
          array a = regular(x[0]);
          Args results = linalg::lu(a);
          for (array& part : list(linalg::eig(a))) results.push_back(abs(part));
          results.push_back(abs(linalg::eigvals(a)));
          return results;
        },
        {random::normal({3, 3})});
}

// A kind that no test saves may load as something else.
TEST_CASE("export: all kinds of calls were saved and loaded by the tests above") {
  std::set<std::string> missing;
  for (std::string_view kind : recorded_kinds()) {
    if (!seen_calls().contains(std::string(kind))) missing.insert(std::string(kind));
  }
  missing.erase("CustomKernel");     // tests/kernel_library
  missing.erase("Arange");           // without inputs it is a constant of a trace; tests/capture
  if (seen_calls().empty()) return;  // this test alone was chosen
  for (const std::string& kind : missing) MESSAGE(kind);
  CHECK(missing.empty());
}

// An op is made or refused; what this looks for is arithmetic of shapes that overflows, which the
// sanitizers see.
TEST_CASE("export: calls of every kind with numbers that no file should hold") {
  size_t made = 0, refused = 0;
  for (const auto& [kind, calls] : seen_calls()) {
    for (const CallAlone& call : calls) {
      for_hostile_variants(
          call, [&](const CallAlone& variant) { (can_be_made(variant) ? made : refused) += 1; });
    }
  }
  if (seen_calls().empty()) return;
  CHECK(made > 1000);
  CHECK(refused > 10000);
}
