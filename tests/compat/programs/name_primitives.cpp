// Primitives by their class: found in graphs, and put into nodes by hand.
#include <cstdio>
#include <sstream>
#include <string>
#include <typeinfo>

#include "mlx/graph_utils.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

#include "check.h"

namespace mine {

// A name that the library has, too.
class Add : public mlx::core::UnaryPrimitive {
 public:
  explicit Add(mlx::core::Stream stream) : UnaryPrimitive(stream) {}
  void eval_cpu(const std::vector<mlx::core::array>& inputs, mlx::core::array& out) override {
    out.copy_shared_buffer(inputs[0]);
  }
  void eval_gpu(const std::vector<mlx::core::array>& inputs, mlx::core::array& out) override {
    eval_cpu(inputs, out);
  }
  const char* name() const override { return "MyAdd"; }
};

mlx::core::array add(const mlx::core::array& x) {
  return mlx::core::array(x.shape(), x.dtype(),
                          std::make_shared<Add>(mlx::core::to_stream(mlx::core::StreamOrDevice{})),
                          {x});
}

}  // namespace mine

using namespace mlx::core;

// Programs have bases of these names themselves.
class Op {};
class Record {};
class Elementwise : Op {};

namespace {

array own_add(const array& a, const array& b, StreamOrDevice s = {}) {
  return array(a.shape(), a.dtype(), std::make_shared<Add>(to_stream(s)), {a, b});
}

array own_exp(const array& a, StreamOrDevice s = {}) {
  return array(a.shape(), a.dtype(), std::make_shared<Exp>(to_stream(s)), {a});
}

// The sum of each row.
array own_sum(const array& a, StreamOrDevice s = {}) {
  auto shape = a.shape();
  shape.back() = 1;
  int axis = static_cast<int>(a.ndim()) - 1;
  return array(shape, a.dtype(),
               std::make_shared<Reduce>(to_stream(s), Reduce::Sum, std::vector<int>{axis}), {a});
}

array own_arg(const array& a, ArgReduce::ReduceType type, int axis, bool keep) {
  auto shape = a.shape();
  if (keep)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return array(shape, uint32,
               std::make_shared<ArgReduce>(default_stream(default_device()), type, axis), {a});
}

bool same(const array& a, const array& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && array_equal(a, b).item<bool>();
}

void look() {
  array x = array({1.0f, 2.0f, 3.0f});
  array total = sum(exp(x + x), 0, true);
  CHECK(typeid(total.primitive()) == typeid(Reduce));
  CHECK(dynamic_cast<Reduce*>(&total.primitive())->state().first == Reduce::Sum);
  array e = total.inputs()[0];
  CHECK(typeid(e.primitive()) == typeid(Exp));
  CHECK(typeid(e.inputs()[0].primitive()) == typeid(Add));
  CHECK(typeid(e.primitive()) != typeid(Add));
  CHECK(dynamic_cast<Reduce*>(&e.primitive()) == nullptr);
  CHECK(std::string(Exp(default_stream(default_device())).name()) == "Exp");
  array where_ = where(x > 1.0f, x, -x);
  CHECK(typeid(where_.primitive()) == typeid(Select));
  CHECK(typeid(where_.inputs()[0].primitive()) == typeid(Greater));
  CHECK(typeid(where_.inputs()[2].primitive()) == typeid(Negative));
  CHECK(typeid(argmax(x).primitive()) == typeid(ArgReduce));
  CHECK(typeid(argmin(x, 0).primitive()) == typeid(ArgReduce));
  CHECK(typeid(astype(x, int32).primitive()) == typeid(AsType));
  array mine = mine::add(x);
  CHECK(typeid(mine.primitive()) != typeid(Add));
  CHECK(typeid(mine.primitive()) == typeid(mine::Add));
  CHECK(same(mine, x));
}

void compute() {
  array a = reshape(arange(6.0f), {2, 3});
  array b = array({3.0f, -1.0f, 0.5f, 8.0f, 2.0f, 9.0f}, {2, 3});
  CHECK(same(own_add(own_exp(a), b), exp(a) + b));
  CHECK(same(own_add(a, array({1.0f, 2.0f, 3.0f})), a + array({1.0f, 2.0f, 3.0f})));
  CHECK(same(own_sum(b), sum(b, 1, true)));
  for (int axis : {0, 1}) {
    for (bool keep : {false, true}) {
      CHECK(same(own_arg(b, ArgReduce::ArgMax, axis, keep), argmax(b, axis, keep)));
      CHECK(same(own_arg(b, ArgReduce::ArgMin, axis, keep), argmin(b, axis, keep)));
    }
  }
  Stream other = new_stream(default_device());
  CHECK(own_add(a, b, other).primitive().stream() == other);
  CHECK(same(own_add(a, b, other), a + b));
  std::vector<int> both{0, 1};
  auto prod_ = std::make_shared<Reduce>(default_stream(default_device()), Reduce::Prod, both);
  CHECK(same(array({1, 1}, float32, prod_, {b}), prod(b, both, true)));
  auto all_ = std::make_shared<Reduce>(default_stream(default_device()), Reduce::And, both);
  CHECK(same(array({}, bool_, all_, {b}), all(b)));
}

void transform() {
  array a = reshape(arange(6.0f), {2, 3}) * 0.25f;
  auto with_nodes = [](const array& x) { return sum(square(own_sum(own_exp(own_add(x, x))))); };
  auto with_ops = [](const array& x) { return sum(square(sum(exp(x + x), 1, true))); };
  CHECK(same(grad(with_nodes)(a), grad(with_ops)(a)));
  CHECK(same(grad(grad([&](const array& x) { return sum(own_exp(x)); }))(array(0.5f)),
             exp(array(0.5f))));

  auto rows = [](const array& x) { return own_sum(own_add(own_exp(x), x)); };
  array batch = random::normal({4, 2, 3}, random::key(1));
  CHECK(same(vmap(rows)(batch), sum(exp(batch) + batch, 2, true)));
  auto indices = [](const array& x) { return own_arg(x, ArgReduce::ArgMax, 1, false); };
  CHECK(same(vmap(indices)(batch), argmax(batch, 2)));

  using Arrays = std::vector<array>;
  auto function = [](const Arrays& in) { return Arrays{own_exp(own_add(in[0], in[1]))}; };
  array compiled = compile(function)({a, a})[0];
  CHECK(typeid(compiled.primitive()) == typeid(Compiled));
  std::string lib_name = dynamic_cast<Compiled&>(compiled.primitive()).lib_name();
  auto with_ops_too = [](const Arrays& in) { return Arrays{exp(in[0] + in[1])}; };
  array again = compile(with_ops_too)({a, a})[0];
  CHECK(dynamic_cast<Compiled&>(again.primitive()).lib_name() == lib_name);
  auto another = [](const Arrays& in) { return Arrays{exp(in[0] - in[1])}; };
  array third = compile(another)({a, a})[0];
  CHECK(dynamic_cast<Compiled&>(third.primitive()).lib_name() != lib_name);
  CHECK(lib_name.find("Add") != std::string::npos);
  CHECK(same(compiled, exp(a + a)));
  auto shapeless = compile([](const Arrays& in) { return Arrays{own_sum(own_exp(in[0]))}; }, true);
  CHECK(same(shapeless({a})[0], sum(exp(a), 1, true)));
  CHECK(same(shapeless({square(a)})[0], sum(exp(square(a)), 1, true)));

  const char* file = "name_primitives.hfx";
  export_function(file,
                  [](const Args& in) {
                    return Args{own_add(own_exp(in[0]), in[0]), own_sum(in[0]),
                                own_arg(in[0], ArgReduce::ArgMin, 0, false),
                                own_arg(in[0], ArgReduce::ArgMin, 0, true)};
                  },
                  {a});
  Args imported = import_function(file)({a});
  std::remove(file);
  CHECK(same(imported[0], exp(a) + a));
  CHECK(same(imported[1], sum(a, 1, true)));
  CHECK(same(imported[2], argmin(a, 0)));
  CHECK(same(imported[3], argmin(a, 0, true)));
}

void print() {
  array x = array({1.0f, 2.0f});
  std::ostringstream text, dot, ops;
  print_graph(text, own_sum(own_exp(own_add(x, x))));
  print_graph(ops, sum(exp(x + x), 0, true));
  CHECK(text.str() == ops.str());
  export_to_dot(dot, own_exp(own_add(x, x)));
  CHECK(dot.str().find("Add") != std::string::npos);
}

}  // namespace

int main() {
  look();
  compute();
  transform();
  print();
}
