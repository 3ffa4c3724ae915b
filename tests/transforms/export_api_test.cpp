// exporter, export_function and import_function: traces, keywords, constants, and what is refused.
#include <thread>

#include <holdfast/holdfast.h>
#include <holdfast/transforms_impl.h>

#include "ops/array_testing.h"
#include "transforms/export_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no std::invalid_argument";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A primitive of the user's.
class Own final : public UnaryPrimitive {
 public:
  using UnaryPrimitive::UnaryPrimitive;
  void eval_cpu(const std::vector<array>&, array&) override {}
  void eval_gpu(const std::vector<array>&, array&) override {}
  const char* name() const override { return "Own"; }
};

}  // namespace

TEST_CASE("export: several traces, found by number, shape and dtype") {
  TemporaryFolder folder;
  int calls = 0;
  ArgsFunction f = [&](const Args& x) {
    ++calls;
    CHECK(detail::in_export_tracing());
    return x.size() == 1 ? Args{x[0] + array(1.0f)} : Args{x[0] * x[1], x[0]};
  };
  array x({1.0f, 2.0f}), y({3.0f, 4.0f, 5.0f}), z({1, 2});
  {
    FunctionExporter save = exporter(folder / "f", f, false, "what it is");
    save({x});
    save({y});
    save({z});
    save({x, x});
    CHECK_THROWS_AS(save({x + x}), std::invalid_argument);  // is there
    CHECK(!std::filesystem::exists(folder / "f"));          // not before it is complete
  }
  CHECK(!detail::in_export_tracing());
  CHECK(calls == 4);
  ImportedFunction g = import_function(folder / "f");
  CHECK(g.metadata() == "what it is");
  check_values<float>(g({x})[0], {2}, {2, 3});
  check_values<float>(g({y})[0], {3}, {4, 5, 6});
  check_values<float>(g({z})[0], {2}, {2, 3});
  Args both = g({x, x});
  REQUIRE(both.size() == 2);
  check_values<float>(both[0], {2}, {1, 4});
  check_values<float>(both[1], {2}, {1, 2});
  check_values<float>(g({y})[0], {3}, {4, 5, 6});
  CHECK(calls == 4);
  std::string message = message_of([&] { g({y, y}); });
  CHECK(contains(message, "no trace was saved for (float32 (3), float32 (3))"));
  CHECK(contains(message, "(float32 (2), float32 (2))"));
  CHECK_THROWS_AS(g({}), std::invalid_argument);
  CHECK_THROWS_AS(g({astype(x, float16)}), std::invalid_argument);
}

TEST_CASE("export: arguments by keyword") {
  TemporaryFolder folder;
  array x({1.0f, 2.0f}), y({3.0f, 4.0f});
  std::function<Args(const Kwargs&)> named = [](const Kwargs& k) {
    return Args{k.at("a") - k.at("b")};
  };
  export_function(folder / "named", named, Kwargs{{"b", x}, {"a", y}});
  ImportedFunction g = import_function(folder / "named");
  check_values<float>(g(Kwargs{{"a", x}, {"b", y}})[0], {2}, {-2, -2});
  CHECK(contains(message_of([&] { g(Kwargs{{"a", x}, {"c", y}}); }), "(a=float32 (2), b="));
  CHECK_THROWS_AS(g({x, y}), std::invalid_argument);
  CHECK_THROWS_AS(g(Kwargs{{"a", x}}), std::invalid_argument);

  std::function<Args(const Args&, const Kwargs&)> mixed = [](const Args& a, const Kwargs& k) {
    return Args{a[0] - (k.contains("b") ? k.at("b") : array(0.0f))};
  };
  FunctionExporter save = exporter(folder / "mixed", mixed);
  save({x}, {{"b", y}});
  save(Args{x});
  save.close();
  CHECK_THROWS_AS(save(Args{y}), std::runtime_error);
  g = import_function(folder / "mixed");
  check_values<float>(g({x}, {{"b", y}})[0], {2}, {-2, -2});
  check_values<float>(g({x})[0], {2}, {1, 2});
  CHECK_THROWS_AS(exporter(folder / "n", named)(Args{x}), std::invalid_argument);
}

TEST_CASE("export: shapeless functions take other sizes, of as many dimensions") {
  TemporaryFolder folder;
  ArgsFunction f = [](const Args& x) { return Args{exp(x[0]) * x[1], sort(x[0], -1)}; };
  export_function(folder / "f", f, {ones({2, 3}), ones({3})}, true);
  ImportedFunction g = import_function(folder / "f");
  array x = random::normal({5, 4}), y = random::normal({4});
  Args got = g({x, y}), expected = f({x, y});
  CHECK(has_same_bits(got[0], expected[0]));
  CHECK(has_same_bits(got[1], expected[1]));
  got = g({y = random::normal({7, 1}), array({1.0f, 2.0f})});
  CHECK(got[0].shape() == Shape{7, 2});
  CHECK(contains(message_of([&] { g({x, x}); }), "float32 of 2 dimensions, float32 of 1 dim"));
  CHECK_THROWS_AS(g({x, ones({3})}), std::invalid_argument);  // cannot be broadcast
  std::string message = message_of([&] {
    export_function(folder / "g",
                    ArgsFunction([](const Args& a) { return Args{view(a[0], float16)}; }),
                    {ones({2, 3})}, true);
  });
  CHECK(contains(message, "View"));
  CHECK(!std::filesystem::exists(folder / "g"));
}

TEST_CASE("export: equal constants are saved once, lazily loaded ones with their values") {
  TemporaryFolder folder;
  array weights = random::normal({256, 256}), same = copy(weights);
  save(folder / "weights.npy", weights);
  ArgsFunction f = [&](const Args& x) {
    return Args{matmul(x[0], weights), matmul(x[0], same),
                matmul(x[0], load(folder / "weights.npy")), x[0] + array(2.0f), x[0] * array(2.0f)};
  };
  FunctionExporter to = exporter(folder / "f", f);
  to({ones({1, 256})});
  to({ones({2, 256})});
  to.close();
  CHECK(std::filesystem::file_size(folder / "f") < weights.nbytes() * 3 / 2);
  std::filesystem::remove(folder / "weights.npy");
  Args got = import_function(folder / "f")({ones({2, 256})});
  for (int i = 0; i < 3; ++i)
    CHECK(has_same_bits(got[static_cast<size_t>(i)], matmul(ones({2, 256}), weights)));
}

TEST_CASE("export: an imported function can be transformed, compiled and exported again") {
  TemporaryFolder folder;
  ArgsFunction f = [](const Args& x) {
    auto custom = custom_vjp([](const Args& a) { return Args{a[0] * a[0]}; },
                             [](const Args& a, const Args& cotangents, const Args&) {
                               return Args{cotangents[0] * a[0] * array(100.0f)};
                             });
    return Args{sum(stop_gradient(x[0]) * x[0] + custom({x[0]})[0])};
  };
  array x({1.0f, 2.0f});
  export_function(folder / "f", f, {x});
  ImportedFunction g = import_function(folder / "f");
  CHECK(has_same_bits(g({x})[0], f({x})[0]));
  // What stopped a gradient still does; of a function with rules of its own, what it computes is
  // there, and is differentiated.
  auto slope = [&](const Args& a) { return grad([&](const Args& b) { return g(b)[0]; })(a)[0]; };
  check_values<float>(slope({x}), {2}, {3, 6});
  check_values<float>(vmap([&](const Args& a) { return g(a); })({stack({x, x + x})})[0], {2},
                      {10, 40});
  CHECK(has_same_bits(compile([&](const Args& a) { return g(a); })({x})[0], f({x})[0]));
  export_function(folder / "again", ArgsFunction([&](const Args& a) { return g(a); }), {x});
  CHECK(has_same_bits(import_function(folder / "again")({x})[0], f({x})[0]));
  // A compiled function is saved as what is inside.
  auto compiled = compile([](const Args& a) { return Args{exp(a[0]) + a[0]}; });
  compiled({x});
  export_function(folder / "compiled", ArgsFunction(compiled), {x});
  CHECK(kinds_in(folder / "compiled") == std::set<std::string>{"Add", "Exp"});
}

TEST_CASE("export: ops that cannot be saved are named") {
  TemporaryFolder folder;
  std::string message = message_of([&] {
    export_function(folder / "f", ArgsFunction([](const Args& x) {
                      return Args{array(x[0].shape(), x[0].dtype(),
                                        std::make_shared<Own>(default_stream(Device::cpu)), x)};
                    }),
                    {ones({2})});
  });
  CHECK(contains(message, "Own cannot be saved"));
  CHECK(contains(message, "pass it as an argument"));
  CHECK(!std::filesystem::exists(folder / "f"));
  CHECK_THROWS_AS(exporter(folder / "f", ArgsFunction{}), std::invalid_argument);
  CHECK_THROWS_AS(exporter(ExportCallback{}, ArgsFunction([](const Args& x) { return x; })),
                  std::invalid_argument);
  CHECK_THROWS_AS(export_function(folder / "no/such/folder",
                                  ArgsFunction([](const Args& x) { return x; }), {ones({2})}),
                  std::runtime_error);
}

TEST_CASE("export: a file appears whole, and replaces the old one at once") {
  TemporaryFolder folder;
  ArgsFunction one = [](const Args& x) { return Args{x[0] + array(1.0f)}; };
  ArgsFunction two = [](const Args& x) { return Args{x[0] + array(2.0f)}; };
  array x(1.0f);
  export_function(folder / "f", one, {x});
  {
    FunctionExporter save = exporter(folder / "f", two);
    save({x});
    check_values<float>(import_function(folder / "f")({x})[0], {}, {2});
  }
  check_values<float>(import_function(folder / "f")({x})[0], {}, {3});
  {
    FunctionExporter nothing = exporter(folder / "none", two);
  }
  CHECK(!std::filesystem::exists(folder / "none"));
  exporter(folder / "none", two).close();
  CHECK(contains(message_of([&] { import_function(folder / "none")({x}); }), "the file has none"));
}

TEST_CASE("export: streams") {
  TemporaryFolder folder;
  Stream known = new_stream(Device::cpu);
  array x({1.0f, 2.0f});
  ArgsFunction f = [&](const Args& a) { return Args{exp(a[0], known), log(a[0])}; };
  export_function(folder / "f", f, {x});
  ImportedFunction g = import_function(folder / "f");
  Args got = g({x});
  CHECK(got[0].primitive().stream() == known);
  CHECK(got[1].primitive().stream() == default_stream(default_device()));
  std::thread([&] {
    Args here = g({x});
    CHECK(here[0].primitive().stream() == known);
    CHECK(here[1].primitive().stream() == default_stream(default_device()));
    eval(here);
  }).join();
  // Another process may have had more of them.
  SavedFunction saved = read_function(reader_of(bytes_of_file(folder / "f")));
  saved.traces[0].calls[0].stream = 1000000;
  {
    io::FileWriter writer(folder / "g");
    write_function(writer, saved);
  }
  got = import_function(folder / "g")({x});
  Stream made = got[0].primitive().stream();
  CHECK(made != known);
  CHECK(made != default_stream(default_device()));
  CHECK(has_same_bits(got[0], exp(x)));
}

TEST_CASE("export: a callback is told what a file would hold") {
  std::vector<ExportCallbackInput> told;
  std::function<Args(const Args&, const Kwargs&)> f = [](const Args& x, const Kwargs& k) {
    return Args{sum(x[0] * array(2.0f) + k.at("y"), 1, false)};
  };
  array x = ones({2, 3});
  export_function([&](const ExportCallbackInput& part) { told.push_back(part); }, f, {x},
                  {{"y", x}});
  REQUIRE(told.size() == 7);
  auto name = [&](size_t i, const char* key) { return std::get<std::string>(told[i].at(key)); };
  using Values = std::vector<std::tuple<std::string, Shape, Dtype>>;
  auto values = [&](size_t i, const char* key) { return std::get<Values>(told[i].at(key)); };
  CHECK(name(0, "type") == "inputs");
  CHECK((values(0, "inputs") == Values{{"A", {2, 3}, float32}, {"B", {2, 3}, float32}}));
  CHECK(name(1, "type") == "keyword_inputs");
  using Keywords = std::vector<std::pair<std::string, std::string>>;
  CHECK((std::get<Keywords>(told[1].at("keywords")) == Keywords{{"y", "B"}}));
  CHECK((values(2, "outputs") == Values{{"C", {2}, float32}}));
  CHECK(name(3, "type") == "constants");
  CHECK(std::get<std::vector<std::pair<std::string, array>>>(told[3].at("constants"))[0].first ==
        "D");
  CHECK(name(4, "name") == "Multiply");
  CHECK((values(4, "outputs") == Values{{"E", {2, 3}, float32}}));
  CHECK((values(5, "inputs") == Values{{"E", {2, 3}, float32}, {"B", {2, 3}, float32}}));
  CHECK(name(6, "name") == "Reduce");
  CHECK((values(6, "outputs") == Values{{"C", {2}, float32}}));
  auto arguments = std::get<std::vector<StateT>>(told[6].at("arguments"));
  CHECK(std::get<std::vector<int>>(arguments[1]) == std::vector<int>{1});
}
