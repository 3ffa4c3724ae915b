// Rules of the library's primitives that a program calls by hand, with what is no call of the op.
#include <climits>

#include <holdfast/primitives.h>

#include "transforms/samples.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Arrays = std::vector<array>;
using Numbers = std::vector<int>;

// Calls it; whether it gave something.
template <class Rule>
bool is_answered(const Rule& rule) {
  try {
    rule();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

TEST_CASE("every op of the registry: rules that are called with what is no call of the op") {
  size_t answered = 0;
  for (const registry::Row& row : registry::rows()) {
    StreamContext runs_on(registry::device_of(row));
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      const Dtype dtype = registry::accepts(row, sample, float32) ? float32 : int32;
      Arrays inputs;
      for (const registry::Input& input : sample.inputs) {
        inputs.push_back(registry::make_input(input, dtype, 1));
      }
      for (const array& made : row.run(registry::Call(inputs, sample.arguments))) {
        if (!made.has_primitive()) continue;
        INFO(std::string(row.name) << " of " << sample.text << ": " << made.primitive().name());
        Primitive& op = made.primitive();
        const Arrays primals = made.inputs(), outputs = made.outputs();
        Numbers argnums, in_front;
        for (size_t i = 0; i < primals.size(); ++i) {
          if (issubdtype(primals[i].dtype(), inexact)) argnums.push_back(static_cast<int>(i));
        }
        answered += is_answered([&] { op.vjp(primals, outputs, argnums, outputs); });
        CHECK_THROWS_AS(op.vjp({}, {}, {}, {}), std::exception);
        CHECK_THROWS_AS(op.vjp(primals, {}, argnums, outputs), std::exception);
        CHECK_THROWS_AS(op.vjp(primals, outputs, argnums, {}), std::exception);
        if (!primals.empty()) {
          CHECK_THROWS_AS(op.vjp({}, outputs, argnums, outputs), std::exception);
        }
        for (int argnum : {-1, static_cast<int>(primals.size()), INT_MIN, INT_MAX}) {
          CHECK_THROWS_AS(op.vjp(primals, outputs, {argnum}, outputs), std::exception);
        }
        const Arrays odd(outputs.size(), ones({5, 0, 3}));
        CHECK_THROWS_AS(op.vjp(primals, odd, argnums, outputs), std::exception);
        is_answered([&] { op.jvp({}, {}, {}); });
        is_answered([&] { op.jvp(primals, {}, argnums); });
        is_answered([&] { op.jvp({}, outputs, {0}); });
        is_answered([&] { op.jvp(primals, primals, {7, -1, INT_MAX}); });
        CHECK_THROWS_AS(op.vmap({}, {}), std::invalid_argument);
        CHECK_THROWS_AS(op.vmap({}, {0}), std::invalid_argument);
        CHECK_THROWS_AS(op.vmap({ones({2})}, {}), std::invalid_argument);
        CHECK_THROWS_AS(op.vmap({ones({2})}, {1}), std::invalid_argument);
        CHECK_THROWS_AS(op.vmap({ones({2})}, {-2}), std::invalid_argument);
        CHECK_THROWS_AS(op.vmap({ones({2}), ones({3})}, {0, 0}), std::invalid_argument);
        // No number of inputs, and no rank, makes it crash.
        for (size_t count = 1; count < 6; ++count) {
          for (const array& one : {ones({2}), ones({2, 3}, int32), ones({2, 3, 4, 5})}) {
            is_answered([&] { op.vmap(Arrays(count, one), Numbers(count, 0)); });
          }
        }
      }
    }
  }
  CHECK(answered > 100);
}

TEST_CASE("rules by hand: what they give, and what is said") {
  array a = ones({2, 3}), b = full({2, 3}, 2.0f);
  array product = a * b;
  Primitive& multiply = product.primitive();
  Arrays parts = multiply.vjp({a, b}, {a}, {0, 1}, {product});
  check_values<float>(parts.at(0), {2, 3}, {2, 2, 2, 2, 2, 2});
  check_values<float>(parts.at(1), {2, 3}, {1, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH_AS(multiply.vjp({a, b}, {}, {0}, {product}),
                       "[vjp] of Multiply: expected a cotangent for each of 1 outputs, got 0",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(multiply.vjp({a, b}, {a}, {2}, {product}),
                       "[vjp] of Multiply: expected the number of one of 2 primals, got 2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(multiply.vmap({a, b}, {0}),
                       "[vmap] of Multiply: expected an axis for each of 2 inputs, got 1",
                       std::invalid_argument);
  array found = take(ones({4, 3}), array({1, 0}), 0);
  auto [mapped, axes] = found.primitive().vmap({ones({5, 4, 3}), array({1, 0})}, {0, -1});
  REQUIRE(mapped.size() == 1);
  CHECK(mapped[0].size() == 5 * 2 * 3);
}

TEST_CASE("rules by hand: of a custom function") {
  auto square = custom_function([](const Arrays& in) { return Arrays{in[0] * in[1]}; });
  array a = ones({2});
  array made = square({a, a})[0];
  Primitive& op = made.primitive();
  CHECK_THROWS_AS(op.vjp({}, {}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(op.vjp({a, a}, {a}, {0}, {made}), std::invalid_argument);
  CHECK_THROWS_AS(op.jvp({}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(op.jvp(made.inputs(), {}, {0}), std::invalid_argument);
  CHECK_THROWS_AS(op.jvp(made.inputs(), {a, a}, {2, 0}), std::invalid_argument);
  CHECK_THROWS_AS(op.jvp(made.inputs(), {a}, {-1}), std::invalid_argument);
  CHECK_THROWS_AS(op.vmap({}, {}), std::invalid_argument);
  CHECK_THROWS_AS(op.vmap({a}, {0}), std::invalid_argument);
  CHECK_THROWS_AS(array({2}, float32, made.primitive_ptr(), {a}), std::invalid_argument);
  CHECK(op.vjp(made.inputs(), {a}, {0, 1}, {made}).size() == 2);
}

TEST_CASE("transforms of nothing, and rules that give another number of arrays") {
  auto all = [](const Arrays& in) { return in; };
  auto none = [](const Arrays&) { return Arrays{}; };
  array a = ones({2});
  CHECK(vjp(all, Arrays{}, Arrays{}).second.empty());
  CHECK(jvp(all, Arrays{}, Arrays{}).second.empty());
  CHECK(vjp(none, Arrays{a}, Arrays{}).second.size() == 1);
  CHECK_THROWS_AS(vjp(all, Arrays{}, Arrays{a}), std::invalid_argument);
  CHECK_THROWS_AS(vjp(all, Arrays{a}, Arrays{}), std::invalid_argument);
  CHECK_THROWS_AS(jvp(all, Arrays{}, Arrays{a}), std::invalid_argument);
  CHECK_THROWS_AS(jvp(all, Arrays{a}, Arrays{}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all)(Arrays{}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all, {0})(Arrays{}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all, {0}, {0, 0})(Arrays{a}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(none, {0}, {0})(Arrays{a}), std::invalid_argument);

  class Generous final : public Primitive {
   public:
    using Primitive::Primitive;
    void eval_cpu(const Arrays&, Arrays&) override {}
    void eval_gpu(const Arrays&, Arrays&) override {}
    const char* name() const override { return "Generous"; }
    Arrays vjp(const Arrays& primals, const Arrays&, const Numbers&, const Arrays&) override {
      return Arrays(5, primals[0]);
    }
    std::pair<Arrays, Numbers> vmap(const Arrays& inputs, const Numbers&) override {
      return {Arrays{inputs[0]}, Numbers{}};
    }
  };
  auto node = [](const array& x) {
    return array(x.shape(), x.dtype(), std::make_shared<Generous>(default_stream(default_device())),
                 {x});
  };
  CHECK_THROWS_AS(grad([&](const array& x) { return sum(node(x)); })(a), std::logic_error);
  CHECK_THROWS_AS(vmap([&](const array& x) { return node(x); })(a), std::logic_error);
}
