// Promise P1: everything that a command list refers to lives until the list has completed.
//
// Each case gives something up while a command that refers to it is in flight (a gate holds the
// stream), lets the command run and looks at the result. Run as it is, each must be right. Run with
// retaining switched off, each must be reported by the device, every time: otherwise the case would
// prove nothing.

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int count = 48;

struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws unless x is the counting array times `factor` plus `summand`.
void expect(array x, int32_t factor, int32_t summand) {
  std::vector<int32_t> found = values(x);
  if (found.size() != count) throw WrongValue("wrong number of elements");
  for (int32_t i = 0; i < count; ++i) {
    int32_t expected = i * factor + summand;
    if (found[static_cast<size_t>(i)] != expected) {
      throw WrongValue("element " + std::to_string(i) + " is " +
                       std::to_string(found[static_cast<size_t>(i)]) + ", expected " +
                       std::to_string(expected));
    }
  }
}

void give_up(std::optional<array>& a) { a.reset(); }

// --- the cases ---

void input_dropped_in_flight(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  array y = affine(*x, 3, 1, s);
  async_eval(y);
  give_up(x);
  gate.open();
  expect(y, 3, 1);
}

void output_dropped_in_flight(Stream s) {
  Gate gate(s);
  array x = counting(count);
  std::optional<array> y = affine(x, 3, 1, s);
  async_eval(*y);
  give_up(y);
  gate.open();
  synchronize(s);
}

void input_and_output_dropped_in_flight(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  std::optional<array> y = affine(*x, 3, 1, s);
  async_eval(*y);
  give_up(x);
  give_up(y);
  gate.open();
  synchronize(s);
}

void input_dropped_before_evaluation(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  array y = affine(*x, 3, 1, s);
  give_up(x);
  async_eval(y);
  gate.open();
  expect(y, 3, 1);
}

// The op after the one that reads x drops it, while the list is still open.
void input_dropped_between_encoding_and_commit(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  array y = affine(*x, 3, 1, s);
  array z = with_encode_hook(y, [&x] { give_up(x); }, s);
  async_eval(z);
  CHECK(!x);
  gate.open();
  expect(z, 3, 2);
}

void output_dropped_between_encoding_and_commit(Stream s) {
  Gate gate(s);
  array x = counting(count);
  std::optional<array> y = affine(x, 3, 1, s);
  array z = with_encode_hook(x, [&y] { give_up(y); }, s);
  async_eval(*y, z);
  CHECK(!y);
  gate.open();
  synchronize(s);
  expect(z, 1, 1);
}

void intermediates_of_a_chain(Stream s) {
  Gate gate(s);
  array x = counting(count);
  for (int i = 0; i < 6; ++i) x = affine(x, 1, 1, s);
  async_eval(x);
  gate.open();
  expect(x, 1, 6);
}

void donated_output_dropped_in_flight(Stream s) {
  Gate gate(s);
  std::optional<array> x = affine(counting(count), 1, 0, s);
  for (int i = 0; i < 3; ++i) x = affine_in_place(*x, 1, 1, s);
  async_eval(*x);
  give_up(x);
  gate.open();
  synchronize(s);
}

// y takes over the memory of an evaluated x; a reader of y is what is left.
void reader_of_a_donated_output(Stream s) {
  std::optional<array> x = affine(counting(count), 1, 0, s);
  x->eval();
  Gate gate(s);
  std::optional<array> y = affine_in_place(*x, 2, 0, s);
  const void* address = x->buffer().raw_ptr();
  give_up(x);
  async_eval(*y);
  CHECK(y->buffer().raw_ptr() == address);
  array z = affine(*y, 1, 5, s);
  async_eval(z);
  give_up(y);
  gate.open();
  expect(z, 2, 5);
}

void temporary_of_an_op(Stream s) {
  Gate gate(s);
  array y = through_temporary(counting(count), s);
  async_eval(y);
  gate.open();
  expect(y, 2, 1);
}

void raw_input_freed_in_flight(Stream s) {
  Gate gate(s);
  allocator::Buffer raw = allocator::malloc(count * sizeof(int32_t));
  auto* elements = static_cast<int32_t*>(raw.raw_ptr());
  for (int32_t i = 0; i < count; ++i) elements[i] = i;
  array y = make_op("ReadsRaw", s, {}, {count},
                    [raw, elements](Encoder& encoder, const auto&, std::vector<array>& out) {
                      encoder.allocate(out[0]);
                      encoder.raw_input(raw, 0, count * sizeof(int32_t));
                      encoder.output(out[0]);
                      add_affine(encoder, elements, out[0].data<int32_t>(), count, 1, 9);
                    });
  async_eval(y);
  allocator::free(raw);
  gate.open();
  expect(y, 1, 9);
}

void raw_output_freed_in_flight(Stream s) {
  Gate gate(s);
  allocator::Buffer raw = allocator::malloc(count * sizeof(int32_t));
  auto* elements = static_cast<int32_t*>(raw.raw_ptr());
  array x = counting(count);
  array y = make_op(
      "WritesRaw", s, {x}, {count},
      [raw, elements](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        encoder.input(in[0]);
        encoder.raw_output(raw, 0, count * sizeof(int32_t));
        add_affine(encoder, in[0].data<int32_t>(), elements, count, 2, 0);
        encoder.raw_input(raw, 0, count * sizeof(int32_t));
        encoder.output(out[0]);
        add_affine(encoder, elements, out[0].data<int32_t>(), count, 1, 1);
      });
  async_eval(y);
  allocator::free(raw);
  gate.open();
  expect(y, 2, 1);
}

void view_dropped_in_flight(Stream s) {
  Gate gate(s);
  std::optional<array> base = counting(count + 2);
  std::optional<array> view = slice(*base, {1}, {count + 1}, {1}, s);
  give_up(base);
  array y = affine(*view, 2, -2, s);
  async_eval(y);
  give_up(view);
  gate.open();
  expect(y, 2, 0);
}

void source_of_a_copy(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  array y = make_op("Copies", s, {*x}, {count},
                    [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                      encoder.allocate(out[0]);
                      encoder.copy(in[0], out[0]);
                    });
  async_eval(y);
  give_up(x);
  gate.open();
  expect(y, 1, 0);
}

void target_of_a_fill(Stream s) {
  Gate gate(s);
  std::optional<array> y =
      make_op("Fills", s, {}, {count}, [](Encoder& encoder, const auto&, std::vector<array>& out) {
        encoder.allocate(out[0]);
        int32_t seven = 7;
        encoder.fill(out[0], &seven);
      });
  async_eval(*y);
  give_up(y);
  gate.open();
  synchronize(s);
}

// The op binds, encodes and throws; what was encoded before it in the same list still runs.
void list_of_an_op_that_throws(Stream s) {
  Gate gate(s);
  std::optional<array> x = counting(count);
  array y = affine(*x, 3, 1, s);
  auto failures = std::make_shared<int>(1);
  array z = throwing_half_way(y, failures, s);
  CHECK_THROWS_WITH(async_eval(z), "[ThrowingHalfWay] half-way");
  give_up(x);
  gate.open();
  expect(y, 3, 1);
  expect(z, 9, 3);
}

// The one that throws would have taken over the memory of its input.
void donation_of_an_op_that_throws(Stream s) {
  Gate gate(s);
  auto failures = std::make_shared<int>(2);
  array z = throwing_half_way(affine(counting(count), 3, 1, s), failures, s);
  CHECK_THROWS_WITH(async_eval(z), "[ThrowingHalfWay] half-way");
  CHECK_THROWS_WITH(async_eval(z), "[ThrowingHalfWay] half-way");
  async_eval(z);
  gate.open();
  expect(z, 9, 3);
}

void siblings_dropped_in_flight(Stream s) {
  Gate gate(s);
  std::vector<array> sums = three_sums(counting(count), s);
  array middle = sums[1];
  std::optional<array> last = sums[2];
  sums.clear();
  async_eval(middle);
  give_up(last);
  gate.open();
  synchronize(s);
  expect(middle, 1, 2);
}

void input_of_another_stream(Stream s) {
  Stream other = new_stream(s.device);
  {
    Gate gate(s);
    std::optional<array> x = affine(counting(count), 1, 1, s);
    array y = affine(*x, 2, 0, other);
    async_eval(y);
    give_up(x);
    gate.open();
    expect(y, 2, 2);
  }
  exec::Runtime::get().give_back(queue_of(other));
}

void built_in_ops(Stream s) {
  Gate gate(s);
  std::optional<array> x = astype(counting(count), float32, s);
  std::optional<array> column = reshape(*x, {count, 1}, s);
  array twice = matmul(*column, full({1, 2}, 1.0f, s), s);
  array y = concatenate({astype(sum(twice, 1, false, s), int32, s), counting(1)}, 0, s);
  array z = slice(y, {0}, {count}, s);
  z = contiguous(z, false, s);
  async_eval(z);
  give_up(x);
  give_up(column);
  gate.open();
  expect(z, 2, 0);
}

struct Case {
  const char* name;
  void (*run)(Stream);
};

constexpr Case cases[] = {
    {"an input, dropped in flight", input_dropped_in_flight},
    {"an output, dropped in flight", output_dropped_in_flight},
    {"an input and an output, dropped in flight", input_and_output_dropped_in_flight},
    {"an input, dropped before evaluation", input_dropped_before_evaluation},
    {"an input, dropped between encoding and commit", input_dropped_between_encoding_and_commit},
    {"an output, dropped between encoding and commit", output_dropped_between_encoding_and_commit},
    {"intermediate results of a chain", intermediates_of_a_chain},
    {"a donated output, dropped in flight", donated_output_dropped_in_flight},
    {"a donated output that is read", reader_of_a_donated_output},
    {"a temporary of an op", temporary_of_an_op},
    {"a raw input, freed in flight", raw_input_freed_in_flight},
    {"a raw output, freed in flight", raw_output_freed_in_flight},
    {"a view, dropped in flight", view_dropped_in_flight},
    {"the source of a copy", source_of_a_copy},
    {"the target of a fill", target_of_a_fill},
    {"the list of an op that throws half-way", list_of_an_op_that_throws},
    {"the donated input of an op that throws half-way", donation_of_an_op_that_throws},
    {"siblings, dropped in flight", siblings_dropped_in_flight},
    {"an input that another stream computes", input_of_another_stream},
    {"intermediate results of built-in ops", built_in_ops},
};

// The message with which the case fails; empty when it does not.
std::string failure_of(const Case& c, Stream stream) {
  try {
    c.run(stream);
    synchronize(stream);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what a command list refers to lives until the list has completed") {
  Stream stream = default_stream(Device::cpu);
  for (const Case& c : cases) {
    INFO(std::string(c.name));
    controlled::for_each_schedule(12, [&](const controlled::Schedule&) {
      INFO(controlled::describe());
      LeakCheck leaks;
      CHECK(failure_of(c, stream) == "");
      leaks.check();
    });
  }
}

#if HOLDFAST_CHECKS

TEST_CASE("without retaining each of these cases is reported, every time") {
  Stream stream = default_stream(Device::cpu);
  for (const Case& c : cases) {
    INFO(std::string(c.name));
    controlled::for_each_schedule(6, [&](const controlled::Schedule&) {
      INFO(controlled::describe());
      LeakCheck leaks;
      {
        WithoutRetaining ablation(stream);
        std::string failure = failure_of(c, stream);
        CHECK_MESSAGE(failure.find("was released before the command that refers to it ran") !=
                          std::string::npos,
                      failure);
        CHECK(failure.starts_with("["));
      }
      leaks.check();
    });
  }
}

#endif
