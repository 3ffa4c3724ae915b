// Nodes that a program builds of the library's primitives: those that no op would make are refused.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include <holdfast/compile_impl.h>
#include <holdfast/holdfast.h>
#include <holdfast/primitives.h>

#include "ops/array_testing.h"
#include "registry/registry.h"

using namespace holdfast;

namespace {

template <class Name>
array node(Shape shape, Dtype dtype, std::vector<array> inputs) {
  return array(shape, dtype, std::make_shared<Name>(default_stream(default_device())), inputs);
}

array reduced(Shape shape, Dtype dtype, std::vector<int> axes, std::vector<array> inputs,
              Reduce::ReduceType type = Reduce::Sum) {
  Stream s = default_stream(default_device());
  return array(shape, dtype, std::make_shared<Reduce>(s, type, axes), inputs);
}

array largest(Shape shape, Dtype dtype, int axis, std::vector<array> inputs) {
  Stream s = default_stream(default_device());
  return array(shape, dtype, std::make_shared<ArgReduce>(s, ArgReduce::ArgMax, axis), inputs);
}

const std::type_info& type_of(const array& a) {
  const Primitive& primitive = a.primitive();
  return typeid(primitive);
}

bool is_same(const array& a, const array& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && array_equal(a, b).item<bool>();
}

}  // namespace

TEST_CASE("primitives: element-wise nodes are checked when they are built") {
  array a = ones({2, 3}), integers = ones({2, 3}, int32);
  CHECK(is_same(node<Add>({2, 3}, float32, {a, a}), a + a));
  CHECK(is_same(node<Add>({2, 3}, float32, {a, ones({3})}), a + a));
  CHECK_THROWS_WITH_AS(node<Add>({2, 3}, float32, {a}),
                       "[array] a node of Add: [add] expected 2 inputs, got 1",
                       std::invalid_argument);
  CHECK_THROWS_AS(node<Add>({2, 3}, float32, {}), std::invalid_argument);
  CHECK_THROWS_AS(node<Add>({2, 3}, float32, {a, a, a}), std::invalid_argument);
  CHECK_THROWS_AS(node<Select>({2, 3}, float32, {a, a}), std::invalid_argument);
  CHECK_THROWS_AS(node<Add>({2, 3}, float32, {a, ones({2})}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      node<Add>({6}, float32, {a, a}),
      "[array] a node of Add: expected float32 of shape (2,3), got float32 of shape (6)",
      std::invalid_argument);
  CHECK_THROWS_AS(node<Add>({2, 3}, int32, {a, a}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(node<Add>({2, 3}, float32, {a, integers}),
                       "[array] a node of Add: expected float32 as input 1, got int32",
                       std::invalid_argument);
  CHECK_THROWS_AS(node<Exp>({2, 3}, float32, {integers}), std::invalid_argument);
  CHECK_THROWS_AS(node<BitwiseAnd>({2, 3}, float32, {a, a}), std::invalid_argument);
  auto addition = std::make_shared<Add>(default_stream(default_device()));
  CHECK_THROWS_WITH_AS(array::make_arrays({{2, 3}, {2, 3}}, {float32, float32}, addition, {a, a}),
                       "[array] a node of Add: expected 1 output, got 2", std::invalid_argument);
  CHECK_THROWS_AS(array::make_arrays({{2, 3}, {2, 3}}, {float32}, addition, {a, a}),
                  std::invalid_argument);
  CHECK(is_same(array::make_arrays({{2, 3}}, {float32}, addition, {a, a})[0], a + a));

  auto conversion = std::make_shared<AsType>(default_stream(default_device()), int32);
  CHECK(is_same(array({2, 3}, int32, conversion, {a}), integers));
  CHECK(is_same(array({2, 3}, int32, conversion, {integers}), integers));
  CHECK_THROWS_AS(array({2, 3}, int32, conversion, {}), std::invalid_argument);
  CHECK_THROWS_AS(array({2, 3}, float32, conversion, {a}), std::invalid_argument);
  CHECK_THROWS_AS(array({6}, int32, conversion, {integers}), std::invalid_argument);
}

TEST_CASE("primitives: reductions are checked when they are built") {
  array a = reshape(arange(6.0f), {2, 3});
  CHECK(is_same(reduced({2, 1}, float32, {1}, {a}), sum(a, 1, true)));
  CHECK(is_same(reduced({2}, float32, {1}, {a}), sum(a, 1)));
  CHECK(is_same(reduced({}, bool_, {0, 1}, {a}, Reduce::Or), any(a)));
  CHECK(is_same(reduced({2, 3}, float32, {}, {a}), a));
  CHECK(is_same(reduced({2, 1}, float32, {1}, {zeros({2, 0})}), zeros({2, 1})));
  CHECK(is_same(reduced({2}, float32, {1}, {ones({2, 70000}, float16)}), full({2}, 70000.0f)));
  CHECK_THROWS_WITH_AS(reduced({2}, float32, {2}, {a}),
                       "[sum] axis 2 is out of range for an array with 2 dimensions",
                       std::out_of_range);
  CHECK_THROWS_WITH_AS(reduced({2}, float32, {-1}, {a}),
                       "[array] a node of Sum: expected what its function makes, with axes counted "
                       "from the front, in order",
                       std::invalid_argument);
  CHECK_THROWS_AS(reduced({}, float32, {1, 0}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(reduced({2}, float32, {1, 1}, {a}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(reduced({2}, float32, {1}, {}),
                       "[array] a node of Sum: expected 1 input, got 0", std::invalid_argument);
  CHECK_THROWS_AS(reduced({3}, float32, {1}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(reduced({2}, int32, {1}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(reduced({2}, float32, {1}, {zeros({2, 0})}, Reduce::Max), std::invalid_argument);
  CHECK_THROWS_AS(reduced({2}, float32, {1}, {a}, static_cast<Reduce::ReduceType>(7)),
                  std::invalid_argument);

  CHECK(is_same(largest({2, 1}, uint32, 1, {a}), argmax(a, 1, true)));
  CHECK(is_same(largest({3}, uint32, 0, {a}), argmax(a, 0)));
  CHECK_THROWS_AS(largest({2}, uint32, 2, {a}), std::out_of_range);
  CHECK_THROWS_AS(largest({}, uint32, 0, {array(1.0f)}), std::out_of_range);
  CHECK_THROWS_AS(largest({2}, uint32, -1, {a}), std::invalid_argument);
  CHECK_THROWS_AS(largest({2}, uint32, 1, {a, a}), std::invalid_argument);
  CHECK_THROWS_AS(largest({2}, int32, 1, {a}), std::invalid_argument);
  CHECK_THROWS_AS(largest({2}, uint32, 1, {zeros({2, 0})}), std::invalid_argument);
}

TEST_CASE("primitives: derivatives of reductions whose shape has lost the axes, or kept them") {
  array a = reshape(arange(6.0f), {2, 3}) + 1.0f;
  for (Shape shape : {Shape{2}, Shape{2, 1}}) {
    auto by_node = [&](Reduce::ReduceType type) {
      return grad([shape, type](const array& x) {
        return sum(square(reduced(shape, float32, {1}, {x}, type)));
      });
    };
    CHECK(is_same(by_node(Reduce::Sum)(a),
                  grad([](const array& x) { return sum(square(sum(x, 1))); })(a)));
    CHECK(is_same(by_node(Reduce::Max)(a),
                  grad([](const array& x) { return sum(square(max(x, 1))); })(a)));
  }
}

TEST_CASE("primitives: nodes of a primitive that the library made are checked, too") {
  array a = ones({2, 3}), flat = ones({6});
  auto of = [](const array& made, Shape shape, std::vector<array> inputs) {
    return array(shape, made.dtype(), made.primitive_ptr(), inputs);
  };
  CHECK(is_same(of(a + a, {6}, {flat, flat}), flat + flat));
  CHECK_THROWS_AS(of(a + a, {2, 3}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(of(a + a, {2000, 3000}, {a, a}), std::invalid_argument);
  CHECK_THROWS_AS(of(astype(a, int32), {6}, {a}), std::invalid_argument);
  CHECK(is_same(of(sum(a, 1), {4}, {ones({4, 2})}), sum(ones({4, 2}), 1)));
  CHECK_THROWS_AS(of(sum(a, 1), {6}, {flat}), std::out_of_range);
  CHECK(is_same(of(matmul(a, ones({3, 2})), {3, 3}, {ones({3, 2}), a}), matmul(ones({3, 2}), a)));
  CHECK_THROWS_AS(of(matmul(a, ones({3, 2})), {2, 2}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(of(matmul(a, ones({3, 2})), {2, 2}, {a, a}), std::invalid_argument);
  CHECK_THROWS_AS(of(matmul(a, ones({3, 2})), {2000, 2}, {a, ones({3, 2})}), std::invalid_argument);
  CHECK_THROWS_AS(of(softmax(a, -1), {2, 3}, {flat}), std::exception);
  CHECK_THROWS_AS(of(sort(a), {3000, 3}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(of(transpose(a), {2, 3}, {a}), std::invalid_argument);
  CHECK_THROWS_AS(of(slice(flat, {3}, {6}), {3}, {ones({2})}), std::invalid_argument);
  array mapped = vmap([](const array& x) { return exp(x); })(a);
  CHECK_THROWS_AS(of(mapped, {2, 3}, {}), std::invalid_argument);
}

TEST_CASE("primitives: nodes of every op of the registry are checked when they are built") {
  size_t rebuilt = 0, refused = 0, others_made = 0, others_refused = 0;
  auto check = [&](const array& made) {
    const std::shared_ptr<Primitive> primitive = made.primitive_ptr();
    const std::vector<array> given = made.inputs();
    const size_t position = made.sibling_position();
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    for (const array& output : made.outputs()) {
      shapes.push_back(output.shape());
      dtypes.push_back(output.dtype());
    }
    auto build = [&](const std::vector<array>& inputs, const Shape& shape) {
      std::vector<Shape> changed = shapes;
      changed[position] = shape;
      return array::make_arrays(changed, dtypes, primitive, inputs)[position];
    };
    // Something else: refused, or what the function computes of it.
    auto try_other = [&](const std::vector<array>& inputs, const Shape& shape) {
      try {
        build(inputs, shape).eval();
        ++others_made;
      } catch (const std::exception&) {
        ++others_refused;
      }
    };
    Shape larger = shapes[position];
    larger.push_back(1000);
    try_other(given, larger);
    std::vector<array> fewer = given, more = given;
    if (!fewer.empty()) fewer.pop_back();
    more.push_back(ones({7}));
    if (!given.empty()) try_other(fewer, shapes[position]);
    try_other(more, shapes[position]);
    for (size_t i = 0; i < given.size(); ++i) {
      for (const array& other : {array(1.0f), ones({3}), ones({2, 0}, int32), ones({5, 1, 7})}) {
        std::vector<array> others = given;
        others[i] = other;
        try_other(others, shapes[position]);
      }
    }
    // As it was: made once more, or refused where its function makes something else of these.
    try {
      CHECK(registry::difference(build(given, shapes[position]), made) == "");
      ++rebuilt;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  };
  for (const registry::Row& row : registry::rows()) {
    for (const registry::Sample& sample : registry::samples_of(row)) {
      if (sample.outcome != registry::Sample::Outcome::result) continue;
      const Dtype dtype = registry::accepts(row, sample, float32) ? float32 : int32;
      std::vector<array> inputs;
      for (const registry::Input& input : sample.inputs) {
        inputs.push_back(registry::make_input(input, dtype, 1));
      }
      INFO(std::string(row.name) << " of " << sample.text);
      for (const array& made : row.run(registry::Call(inputs, sample.arguments))) {
        if (made.has_primitive()) check(made);
      }
    }
  }
  CHECK(rebuilt > 50 * refused);
  CHECK(others_refused > 5 * others_made);
}

TEST_CASE("primitives: nodes of compiled steps are checked when they are built") {
  auto steps = compile([](const std::vector<array>& in) {
    return std::vector<array>{where(in[0], exp(in[1]), in[2]) * in[2]};
  });
  array c = ones({2, 3}, bool_), a = ones({2, 3});
  array made = steps({c, a, a})[0];
  REQUIRE(type_of(made) == typeid(Compiled));
  auto primitive = made.primitive_ptr();
  std::vector<array> inputs = made.inputs();
  REQUIRE(inputs.size() == 3);
  auto node = [&](Shape shape, Dtype dtype, std::vector<array> from) {
    return array(shape, dtype, primitive, from);
  };
  CHECK(is_same(node({2, 3}, float32, inputs), made));
  CHECK_THROWS_WITH_AS(node({2, 3}, float32, {}),
                       "[array] a node of Compiled: expected 3 inputs, got 0",
                       std::invalid_argument);
  CHECK_THROWS_AS(node({2, 3}, float32, {inputs[0], inputs[1], inputs[2], a}),
                  std::invalid_argument);
  CHECK_THROWS_AS(node({2, 3}, float32, {a, a, a}), std::invalid_argument);
  CHECK_THROWS_AS(node({2, 3}, float32, {c, c, c}), std::invalid_argument);
  CHECK_THROWS_AS(node({2000, 3000}, float32, inputs), std::invalid_argument);
  CHECK_THROWS_AS(node({2, 3}, int8, inputs), std::invalid_argument);
  CHECK_THROWS_AS(array::make_arrays({{2, 3}, {2, 3}}, {float32, float32}, primitive, inputs),
                  std::invalid_argument);
}

TEST_CASE("primitives: what is evaluated by hand is checked") {
  // Evaluates another primitive on its own inputs, the first `count` of them.
  class ByHand final : public Primitive {
   public:
    ByHand(std::shared_ptr<Primitive> inner, size_t count)
        : Primitive(inner->stream()), inner_(std::move(inner)), count_(count) {}
    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
      std::vector<array> some(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count_));
      inner_->eval_cpu(some, outputs);
    }
    void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override {
      eval_cpu(inputs, outputs);
    }
    const char* name() const override { return "ByHand"; }

   private:
    std::shared_ptr<Primitive> inner_;
    size_t count_;
  };
  auto by_hand = [](std::shared_ptr<Primitive> inner, Shape shape, Dtype dtype,
                    std::vector<array> inputs, size_t count) {
    array result(shape, dtype, std::make_shared<ByHand>(std::move(inner), count), inputs);
    eval(result);
    return result;
  };
  Stream s = default_stream(default_device());
  array a = reshape(arange(6.0f), {2, 3});
  auto add = [&] { return std::make_shared<Add>(s); };
  auto total = [&](int axis) {
    return std::make_shared<Reduce>(s, Reduce::Sum, std::vector<int>{axis});
  };
  CHECK(is_same(by_hand(add(), {2, 3}, float32, {a, a}, 2), a + a));
  CHECK(is_same(by_hand(total(1), {2}, float32, {a}, 1), sum(a, 1)));
  CHECK(is_same(by_hand((a + a).primitive_ptr(), {2, 3}, float32, {a, a}, 2), a + a));
  for (size_t count : {0, 1, 3}) {
    CHECK_THROWS_AS(by_hand(add(), {2, 3}, float32, {a, a, a}, count), std::invalid_argument);
  }
  CHECK_THROWS_AS(by_hand(add(), {2, 3}, int8, {a, a}, 2), std::invalid_argument);
  CHECK_THROWS_AS(by_hand(add(), {2000, 3000}, float32, {a, a}, 2), std::invalid_argument);
  CHECK_THROWS_AS(by_hand(total(1), {2}, float32, {a}, 0), std::invalid_argument);
  CHECK_THROWS_AS(by_hand(total(-1), {2}, float32, {a}, 1), std::invalid_argument);
  CHECK_THROWS_AS(by_hand(total(5), {2}, float32, {a}, 1), std::out_of_range);
  CHECK_THROWS_AS(by_hand(total(1), {2}, float32, {ones({200000, 3})}, 1), std::invalid_argument);
}

TEST_CASE("primitives: shapes are asked for with the inputs that there are") {
  Stream s = default_stream(default_device());
  array a = ones({2, 3});
  Add add(s);
  AsType conversion(s, int32);
  Reduce total(s, Reduce::Sum, {1}), beyond(s, Reduce::Sum, {5});
  array fused = compile([](const std::vector<array>& in) {
    return std::vector<array>{exp(in[0]) + in[1]};
  })({a, a})[0];
  CHECK(add.output_shapes({a, a}) == std::vector<Shape>{{2, 3}});
  CHECK(total.output_shapes({a}) == std::vector<Shape>{{2, 1}});
  CHECK(fused.primitive().output_shapes({a, a}) == std::vector<Shape>{{2, 3}});
  for (Primitive* primitive :
       std::vector<Primitive*>{&add, &conversion, &total, &fused.primitive()})
    CHECK_THROWS_AS(primitive->output_shapes({}), std::invalid_argument);
  CHECK_THROWS_AS(beyond.output_shapes({a}), std::out_of_range);
}

TEST_CASE("primitives: the index of a scalar's largest element has no axis") {
  array index = argmax(array(1.0f));
  CHECK(dynamic_cast<ArgReduce&>(index.primitive()).state() == std::pair{ArgReduce::ArgMax, -1});
}

TEST_CASE("primitives: a shape without the axes cannot be compiled for any shape") {
  auto squeezed = [](const std::vector<array>& in) {
    return std::vector<array>{largest({2}, uint32, 1, in)};
  };
  array a = reshape(arange(6.0f), {2, 3});
  CHECK(is_same(compile(squeezed)({a})[0], argmax(a, 1)));
  CHECK_THROWS_AS(compile(squeezed, true)({a}), std::invalid_argument);
}

TEST_CASE("primitives: every row of the table has its class") {
  Stream s = default_stream(default_device());
  array a = ones({2}), b = ones({2}, bool_), i = ones({2}, int32);
#define UNARY(function, Name, rule, in_types, description) \
  for (const array& x : {a, b, i}) {                       \
    std::string types = #in_types;                         \
    if ((types == "number" && x.dtype() == bool_) ||       \
        (types == "integral" && x.dtype() == float32))     \
      continue;                                            \
    array result = function(x);                            \
    CHECK(type_of(result) == typeid(Name));                \
    CHECK(Name(s).is_equivalent(result.primitive()));      \
    CHECK(std::string(Name(s).name()) == #Name);           \
  }
#include <holdfast/elementwise.def>
#define BINARY(function, Name, rule, in_types, description)           \
  for (const array& x : {a, i}) {                                     \
    std::string types = #in_types;                                    \
    if (types.starts_with("integ") && x.dtype() == float32) continue; \
    array result = function(x, x);                                    \
    CHECK(type_of(result) == typeid(Name));                           \
    CHECK(Name(s).is_equivalent(result.primitive()));                 \
  }
#include <holdfast/elementwise.def>
  CHECK(type_of(where(b, a, a)) == typeid(Select));
}
