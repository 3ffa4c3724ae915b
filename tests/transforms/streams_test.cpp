// What a transform builds for an op runs on the op's stream. A graph on one stream would wait for
// another else: for ever, where that one waits for the graph.
#include <set>

#include "support/gate.h"
#include "transforms/cases.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Ops of the graph of `outputs` that run on another stream than `s`, by name. Views run nowhere.
// Zeros by themselves, for a result that is data and follows from no op, have no stream to follow.
std::set<std::string> strangers(std::vector<array> outputs, Stream s) {
  std::erase_if(outputs, [](const array& output) {
    return output.has_primitive() && std::string(output.primitive().name()) == "Full";
  });
  std::set<std::uintptr_t> seen;
  std::set<std::string> names;
  while (!outputs.empty()) {
    array at = outputs.back();
    outputs.pop_back();
    if (!at.has_primitive() || !seen.insert(at.id()).second) continue;
    Primitive& primitive = at.primitive();
    if (primitive.stream() != s && !primitive.traits().is_view) names.insert(primitive.name());
    outputs.insert(outputs.end(), at.inputs().begin(), at.inputs().end());
  }
  return names;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

// Every transform of `f`, whose ops are placed on `s`, while another stream is the default.
void check_streams(const Function& f, const std::vector<array>& inputs, Stream s,
                   std::mt19937_64& random) {
  auto placed = [&](const std::vector<array>& x) {
    StreamContext context(s);
    return f(x);
  };
  std::vector<array> weights = random_like(f(inputs), random), direction;
  direction = random_like(inputs, random);
  eval(weights);
  eval(direction);
  auto gradient = [&](const std::vector<array>& x) { return vjp(placed, x, weights).second; };
  CHECK(joined(strangers(gradient(inputs), s)) == "");
  CHECK(joined(strangers(jvp(placed, inputs, direction).second, s)) == "");
  CHECK(joined(strangers(jvp(gradient, inputs, direction).second, s)) == "");
}

}  // namespace

TEST_CASE_FIXTURE(OnCpu, "derivatives of every op are computed on its stream") {
  Stream s = new_stream(Device::cpu);
  uint64_t seed = 1;
  int checked = 0;
  auto check = [&](const std::string& name, const Function& f, std::vector<array> inputs) {
    INFO(name);
    std::mt19937_64 random(seed++);
    eval(inputs);
    try {
      check_streams(f, inputs, s, random);
      ++checked;
    } catch (const std::invalid_argument&) {  // no derivative
    } catch (const std::logic_error&) {
    }
  };
  for (const registry::Row& row : registry::rows()) {
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      std::mt19937_64 random(seed++);
      std::vector<array> inputs;
      for (const registry::Input& input : sample.inputs) {
        inputs.push_back(random_input(row.name, input, float32, random));
      }
      check(
          row.name,
          [&](const std::vector<array>& x) { return row.run(registry::Call(x, sample.arguments)); },
          inputs);
      break;
    }
  }
  for (const Case& c : more_cases()) {
    std::mt19937_64 random(seed++);
    check(c.name, c.f, inputs_of_case(c, random));
  }
  CHECK(checked > 150);
}

TEST_CASE("sums of cotangents, zeros and functions with rules stay on the stream") {
  Stream s = new_stream(Device::cpu), other = default_stream(Device::cpu);
  Gate gate(other);
  gate.wait_until_reached();
  array x({1.0f, 2.0f, 3.0f}), unused({1.0f});
  auto twice = custom_vjp(
      [=](const std::vector<array>& in) { return std::vector<array>{multiply(in[0], in[0], s)}; },
      [](const std::vector<array>& primals, const std::vector<array>& cotangents,
         const std::vector<array>&) {
        return std::vector<array>{primals[0] * cotangents[0] + cotangents[0] * primals[0]};
      });
  auto again = checkpoint([=](const std::vector<array>& in) {
    return std::vector<array>{multiply(exp(in[0], s), in[0], s)};
  });
  auto f = [=](const std::vector<array>& in) {
    array parts = split(in[0], 3, 0, s)[1];
    array sum_of_all = add(twice({in[0]})[0], again({in[0]})[0], s);
    return std::vector<array>{sum(add(multiply(sum_of_all, parts, s), sin(in[0], s), s), s)};
  };
  auto [outputs, gradients] = vjp(f, {x, unused}, {array(1.0f)});
  auto [same, tangents] = jvp(f, {x, unused}, {x, unused});
  auto rows = vmap([=](const std::vector<array>& in) { return twice(in); }, {0}, {0})({x});
  std::vector<array> all{outputs[0], gradients[0], gradients[1], tangents[0], rows[0]};
  async_eval(all);
  // While the default stream is held. With a limit: it would wait for ever.
  for (array& a : all) CHECK(a.wait_for(std::chrono::seconds(20)));
  gate.open();
}
