// Primitives that programs write, as they are really written: what they leave out or get wrong is
// an exception that names them, never a value.

#include <doctest/doctest.h>

#include <sstream>

#include <holdfast/holdfast.h>

#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 8;
constexpr array::Flags no_order{false, false, false};
constexpr array::Flags row_major{true, true, false};

std::string error_of(array x) {
  try {
    x.eval();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// An op of two rows and four columns whose outputs `fill` fills; it encodes nothing.
array filled_by(std::function<void(std::vector<array>&)> fill,
                const std::vector<array>& inputs = {}, Shape shape = {2, 4}) {
  return make_op("Filled", default_stream(Device::cpu), inputs, std::move(shape),
                 [fill](Encoder&, const std::vector<array>&, auto& outputs) { fill(outputs); });
}

allocator::Buffer bytes(size_t n) { return allocator::malloc(n); }

}  // namespace

TEST_CASE("a function that throws fails the outputs, although its command bound none") {
  Stream s = default_stream(Device::cpu);
  LeakCheck leaks;
  {
    Gate gate(s);
    std::vector<array> outputs = make_multi_op(
        "BindsNothing", s, {counting(count)}, {count}, 2,
        [](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
          for (array& output : out) output.set_data(allocator::malloc(output.nbytes()));
          encoder.host_callback("throws", [] { throw std::runtime_error("no luck"); });
          encoder.host_callback("is fine", [] {});
        });
    array dependent = affine(outputs[1], 1, 1, s);
    array independent = affine(counting(count), 1, 1, s);
    async_eval(dependent, outputs[0], independent);
    gate.open();
    for (const array& x : {outputs[0], outputs[1], dependent}) {
      CHECK(error_of(x) == "[BindsNothing] no luck");
      CHECK(error_of(x) == "[BindsNothing] no luck");
      CHECK_THROWS_AS(std::ostringstream() << x, ExecutionError);
    }
    CHECK(values(independent)[1] == 2);
  }
  leaks.check();
  CHECK_NOTHROW(synchronize(s));
}

TEST_CASE("a function whose command did not bind its input is skipped when that has failed") {
  Stream s = default_stream(Device::cpu), other = new_stream(Device::cpu);
  for (Stream of_input : {s, other}) {
    bool has_run = false;
    array x = make_op("BindsNothing", s, {failing_on_device(counting(count), of_input)}, {count},
                      [&](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
                        out[0].set_data(allocator::malloc(out[0].nbytes()));
                        encoder.host_callback("runs", [&] { has_run = true; });
                      });
    CHECK(error_of(x) == "[FailingOnDevice] no luck");
    CHECK(!has_run);
  }
  CHECK_NOTHROW(synchronize(other));
  exec::Runtime::get().give_back(queue_of(other));
}

TEST_CASE("what a primitive did not bind lives until its command has run") {
  Stream s = default_stream(Device::cpu);
  Gate gate(s);
  auto input = std::make_unique<array>(counting(1 << 12, 1));
  eval(*input);
  array x = make_op("BindsNothing", s, {*input}, {1 << 12},
                    [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                      out[0].set_data(allocator::malloc(out[0].nbytes()));
                      encoder.host_callback("copies", [source = in[0].data<int32_t>(),
                                                       target = out[0].data<int32_t>()] {
                        std::copy(source, source + (1 << 12), target);
                      });
                    });
  async_eval(x);
  input.reset();
  std::vector<array> others;  // in its memory, if that were free
  for (int i = 0; i < 8; ++i) others.push_back(counting(1 << 12, -5000));
  gate.open();
  CHECK(values(x)[0] == 1);
  CHECK(values(x)[4095] == 4096);
}

TEST_CASE("a primitive may do what it likes to its list of outputs") {
  default_stream(default_device());  // the arrays that it makes are of this stream
  struct Change {
    const char* expected;
    std::function<void(std::vector<array>&)> change;
  };
  std::vector<array> taken;
  const Change changes[] = {
      {"expected its list of 1 outputs to be filled, got one of 0", [](auto& o) { o.clear(); }},
      {"expected its list of 1 outputs to be filled, got one of 2",
       [](auto& o) {
         o[0].set_data(bytes(32));
         o.push_back(counting(1));
       }},
      {"expected output 0 to be filled, got another array",
       [](auto& o) { o[0] = zeros({2, 4}, int32); }},
      {"expected output 0 to be filled, got another array",
       [&](auto& o) { taken.push_back(std::move(o[0])); }},
  };
  for (const Change& row : changes) {
    CAPTURE(row.expected);
    array x = filled_by(row.change);
    for (int again = 0; again < 2; ++again) {
      CHECK_THROWS_WITH_AS(x.eval(), doctest::Contains(row.expected), std::logic_error);
      CHECK(error_of(x).starts_with("[Filled] "));
      CHECK_THROWS_AS(std::ostringstream() << x, std::logic_error);
    }
  }
}

TEST_CASE("an output's memory is large enough for its strides, offset and flags") {
  struct Given {
    const char* expected;  // "": fine
    std::function<void(std::vector<array>&)> give;
    Shape shape = {2, 4};
  };
  const array source = counting(8);
  const Given rows[] = {
      {"expected bytes 0 to 400000 of memory for output 0, (100000) of int32 with strides (1) at "
       "byte 0, got 4 bytes",
       [](auto& o) { o[0].set_data(bytes(4)); },
       {100000}},
      {"did not give its output any data (set_data, copy_shared_buffer): output 0", [](auto&) {}},
      {"expected bytes 0 to 32 of memory",
       [](auto& o) { o[0].set_data(allocator::Buffer(nullptr)); }},
      {"expected bytes 0 to 32 of memory",
       [](auto& o) { o[0].set_data(bytes(16), 8, {4, 1}, row_major); }},
      // The flags promise less than the strides need.
      {"expected bytes 0 to 32 of memory",
       [](auto& o) { o[0].set_data(bytes(16), 4, {4, 1}, {true, false, false}); }},
      {"expected bytes 8 to 40 of memory",
       [](auto& o) { o[0].set_data(bytes(32), 8, {4, 1}, row_major, 8); }},
      {"expected bytes -12 to 20 of memory",
       [](auto& o) { o[0].set_data(bytes(32), 8, {4, -1}, no_order); }},
      {"expected more bytes than there are of memory",
       [](auto& o) { o[0].set_data(bytes(32), 8, {int64_t{1} << 62, 1}, no_order); }},
      {"expected bytes 0 to 64 of memory",
       [](auto& o) { o[0].set_data(bytes(32), 16, {0, 0}, {true, false, false}); }},
      {"expected 2 strides for output 0, got 1",
       [](auto& o) { o[0].set_data(bytes(32), 8, {1}, row_major); }},
      {"expected 8 elements in row-major order for output 0, (2,4) of int32, whose flags say "
       "row_contiguous, got 8 with strides (1,2)",
       [](auto& o) { o[0].set_data(bytes(32), 8, {1, 2}, row_major); }},
      {"expected 8 elements in row-major order",
       [](auto& o) { o[0].set_data(bytes(32), 1, {4, 1}, row_major); }},
      {"expected 8 elements in column-major order",
       [](auto& o) { o[0].set_data(bytes(32), 8, {4, 1}, {true, false, true}); }},
      {"", [](auto& o) { o[0].set_data(bytes(32)); }},
      {"", [](auto& o) { o[0].set_data(bytes(4096)); }},
      {"", [](auto& o) { o[0].set_data(bytes(64), 8, {4, 1}, row_major, 32); }},
      {"", [](auto& o) { o[0].set_data(bytes(32), 8, {4, -1}, no_order, 12); }},
      {"", [](auto& o) { o[0].set_data(bytes(4), 1, {0, 0}, {true, false, false}); }},
      {"", [](auto& o) { o[0].set_data(bytes(0)); }, {0, 4}},
      {"", [](auto& o) { o[0].set_data(allocator::Buffer(nullptr)); }, {3, 0}},
      {"", [&](auto& o) { o[0].copy_shared_buffer(source, {4, 1}, row_major, 8); }},
      {"expected bytes 16 to 48 of memory",
       [&](auto& o) { o[0].copy_shared_buffer(source, {4, 1}, row_major, 8, 4); }},
  };
  for (const Given& row : rows) {
    CAPTURE(row.expected);
    array x = filled_by(row.give, {source}, row.shape);
    if (*row.expected) {
      CHECK_THROWS_WITH_AS(x.eval(), doctest::Contains(row.expected), std::logic_error);
      CHECK(error_of(x).starts_with("[Filled] "));
    } else {
      CHECK(error_of(x) == "");
    }
  }
}

TEST_CASE("of several outputs one is wrong: none has a value, and the op can be tried again") {
  Stream s = default_stream(Device::cpu);
  bool is_wrong = true, has_run = false;
  LeakCheck leaks;
  {
    std::vector<array> outputs =
        make_multi_op("ThreeOutputs", s, {}, {count}, 3,
                      [&](Encoder& encoder, const std::vector<array>&, std::vector<array>& out) {
                        for (size_t i = 0; i < 3; ++i) {
                          out[i].set_data(bytes(is_wrong && i == 1 ? 4 : out[i].nbytes()));
                          std::fill_n(out[i].data<int32_t>(), is_wrong ? 1 : count, 7);
                        }
                        encoder.host_callback("runs", [&] { has_run = true; });
                      });
    for (const array& output : outputs) {
      CHECK(
          error_of(output).starts_with("[ThreeOutputs] expected bytes 0 to 32 of memory for "
                                       "output 1, (8) of int32 with strides (1) at byte 0, got 4"));
    }
    synchronize(s);
    CHECK(!has_run);
    is_wrong = false;
    CHECK(values(outputs[2])[7] == 7);
    CHECK(values(outputs[0])[7] == 7);
    CHECK(has_run);
  }
  leaks.check();
}

TEST_CASE("a primitive that changes the nodes of its outputs") {
  array unscheduled = filled_by([](auto& o) {
    o[0].set_data(bytes(32));
    std::fill_n(o[0].template data<int32_t>(), 8, 3);
    o[0].set_status(array::unscheduled);
  });
  CHECK(values(unscheduled)[7] == 3);
  CHECK(unscheduled.status() == array::available);
  // Its primitive, which runs, has no other owner.
  array detached = filled_by([](auto& o) {
    o[0].set_data(bytes(32));
    std::fill_n(o[0].template data<int32_t>(), 8, 4);
    o[0].detach();
  });
  CHECK(values(detached)[7] == 4);
}

TEST_CASE("an array that has failed gives its elements to nobody") {
  Stream s = default_stream(Device::cpu);
  array x = failing_on_device(counting(1), s);
  async_eval(x);
  REQUIRE(eventually([&] { return x.event().is_signaled(); }));
  const array& y = x;
  CHECK_THROWS_AS(x.data<int32_t>(), ExecutionError);
  CHECK_THROWS_AS(y.data<int32_t>(), ExecutionError);
  CHECK_THROWS_AS(x.item<int32_t>(), ExecutionError);
  CHECK_THROWS_AS(y.item<int32_t>(), ExecutionError);
  CHECK_THROWS_AS(x.wait(), ExecutionError);
  CHECK_THROWS_AS(x.wait_for(std::chrono::seconds(1)), ExecutionError);
  CHECK_THROWS_AS(x.eval(), ExecutionError);
  CHECK_THROWS_AS(std::ostringstream() << x, ExecutionError);
  CHECK_THROWS_AS(array::unsafe_weak_copy(x).data<int32_t>(), ExecutionError);
  CHECK_THROWS_AS(values(slice(x, {0}, {1}, s)), ExecutionError);
}
