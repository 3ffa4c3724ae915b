// The k-th time something can fail it does, for k = 1, 2, … until a run is clean. Each run gives
// the right values or an exception that names an op; afterwards nothing is left behind, and the
// same graph can be evaluated, or keeps its error.

#include <doctest/doctest.h>

#include <cstring>
#include <optional>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "faults/failing_new.h"
#include "faults/workloads.h"
#include "support/child.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

#if HOLDFAST_CHECKS

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int too_many = 5000;

bool names_an_op(const std::string& message) {
  return message.starts_with("[") && message.find("] ") != std::string::npos &&
         message.find("] ") > 1;
}

std::vector<array> arrays_of(const std::vector<Workload::Output>& outputs) {
  std::vector<array> arrays;
  for (const auto& output : outputs) arrays.push_back(output.value);
  return arrays;
}

// What `action` throws, without allocating; "" when it does not.
template <class Action>
const char* thrown_by(Action action) {
  static char message[4096];
  try {
    action();
    return "";
  } catch (const std::exception& error) {
    std::strncpy(message, error.what(), sizeof(message) - 1);
    return message;
  }
}

void check_error(const std::string& message) {
  if (!message.empty()) CHECK_MESSAGE(names_an_op(message), message);
}

void forget_errors() {
  for (const Stream& stream : get_streams()) queue_of(stream).forget_failures();
}

// After the fault is gone: an output that failed on the device keeps its error, every other one is
// right. Looked at by another thread: a claim that was left behind would keep it waiting.
void check_afterwards(const std::vector<Workload::Output>& outputs, bool may_keep_error) {
  on_threads(1, [&](int) {
    for (const auto& output : outputs) {
      std::string wrong;
      try {
        wrong = mismatch({output});
      } catch (const ExecutionError& error) {
        CHECK(may_keep_error);
        CHECK_MESSAGE(names_an_op(error.what()), error.what());
      }
      CHECK(wrong == "");
    }
  });
}

// Runs one workload with the k-th visit failing. False when nothing failed any more.
template <class Arm, class Disarm>
bool run_with_fault(const Workload& workload, bool may_keep_error, Arm arm, Disarm disarm) {
  LeakCheck leaks;
  bool failed = false;
  {
    std::vector<Workload::Output> outputs = workload.build();
    std::vector<array> arrays = arrays_of(outputs);
    arm();
    const char* message = thrown_by([&] { eval(std::move(arrays)); });
    failed = disarm();
    check_error(message);
    if (*message == '\0') CHECK(mismatch(outputs) == "");
    check_afterwards(outputs, may_keep_error);
  }
  forget_errors();
  leaks.check();
  return failed;
}

struct Fault {
  fault::Point point;
  const char* name;
  bool may_keep_error;  // it happens after submission
  bool is_reached_by_all;
};

// With `persistent` everything from the k-th visit on fails.
void run_fault_loop(const Fault& fault, bool persistent) {
  for (const Workload& workload : workloads()) {
    INFO(std::string(workload.name), ", ", std::string(fault.name), persistent ? ", for good" : "");
    workload.build();  // the streams it uses exist from now on
    uint64_t k = 1;
    for (;; ++k) {
      INFO("k = ", k);
      REQUIRE(k < too_many);
      bool failed = run_with_fault(
          workload, fault.may_keep_error, [&] { fault::arm(fault.point, k, persistent); },
          [&] {
            bool hit = fault::visits(fault.point) >= k;
            fault::disarm();
            return hit;
          });
      if (!failed) break;
    }
    if (fault.is_reached_by_all) CHECK(k > 1);
  }
}

void run_fault_loops(const Fault& fault, int schedules) {
  controlled::for_each_schedule(
      schedules,
      [&](const controlled::Schedule&) {
        run_fault_loop(fault, false);
        run_fault_loop(fault, true);
      },
      2);
}

}  // namespace

TEST_CASE("the k-th buffer allocation fails") {
  run_fault_loops({fault::Point::allocation, "allocation", false, true}, 5);
}

TEST_CASE("the k-th dispatch fails") {
  run_fault_loops({fault::Point::dispatch, "dispatch", true, true}, 5);
}

TEST_CASE("the k-th event fails") {
  run_fault_loops({fault::Point::event, "event", false, false}, 20);
}

TEST_CASE("operator new fails at the k-th call of the evaluating thread") {
  for (const Workload& workload : workloads()) {
    INFO(std::string(workload.name));
    eval(arrays_of(workload.build()));
    for (uint64_t k = 1;; ++k) {
      INFO("k = ", k);
      REQUIRE(k < too_many);
      // What runs on this thread includes commands, whose failure sticks.
      bool failed = run_with_fault(
          workload, true, [&] { failing_new::arm(k); }, [&] { return failing_new::disarm(); });
      if (!failed) break;
    }
  }
}

TEST_CASE("operator new fails from the k-th call on, while an op is encoded") {
  Stream s = default_stream(Device::cpu);
  for (uint64_t k = 1;; ++k) {
    INFO("k = ", k);
    REQUIRE(k < too_many);
    LeakCheck leaks;
    bool failed = false;
    {
      bool is_armed = true;
      array x =
          make_op("Encodes", s, {counting(8)}, {8},
                  [&](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                    struct Disarm {
                      ~Disarm() { failing_new::pause(); }
                    } at_end;
                    if (is_armed) failing_new::arm(k, /*persistent=*/true);
                    encoder.allocate(out[0]);
                    encoder.input(in[0]);
                    encoder.output(out[0]);
                    add_affine(encoder, in[0].data<int32_t>(), out[0].data<int32_t>(), 8, 1, 1);
                  });
      try {
        x.eval();
      } catch (const OutOfMemory& error) {
        CHECK_MESSAGE(std::string(error.what()).starts_with("[Encodes] "), error.what());
      }
      failed = failing_new::disarm();
      is_armed = false;
      CHECK(values(x)[1] == 2);
    }
    leaks.check();
    if (!failed && k > 1) break;
  }
}

TEST_CASE("operator new fails at the k-th call while a command is committed and runs") {
  for (const Workload& workload : workloads()) {
    INFO(std::string(workload.name));
    for (uint64_t k = 1;; ++k) {
      INFO("k = ", k);
      REQUIRE(k < too_many);
      bool failed = false;
      LeakCheck leaks;
      {
        std::vector<Workload::Output> outputs = workload.build();
        async_eval(arrays_of(outputs));
        failing_new::arm(k);
        const char* message = thrown_by([&] {
          for (const auto& output : outputs) array(output.value).wait();
        });
        failed = failing_new::disarm();
        check_error(message);
        check_afterwards(outputs, true);
      }
      forget_errors();
      leaks.check();
      if (!failed) break;
    }
  }
}

TEST_CASE("a constructor that throws leaves nothing behind") {
  LeakCheck leaks;
  CHECK_THROWS_AS(array({1, 2, 3}, Shape{2, 2}), std::invalid_argument);
  // Elements that cannot be read.
  struct Broken {
    using iterator_category = std::input_iterator_tag;
    using value_type = int;
    using difference_type = int;
    using pointer = int*;
    using reference = int;
    int operator*() const { throw std::runtime_error("broken"); }
    Broken& operator++() { return *this; }
    Broken operator++(int) { return *this; }
    bool operator==(const Broken&) const { return false; }
  };
  CHECK_THROWS_AS(array(Broken{}, Shape{4}, int32), std::runtime_error);
  int32_t memory[8] = {};
  for (uint64_t k = 1;; ++k) {
    REQUIRE(k < too_many);
    failing_new::arm(k);
    try {
      array x(memory, Shape{8}, int32, [](void*) {});
    } catch (const std::bad_alloc&) {
    }
    if (!failing_new::disarm()) break;
  }
  leaks.check();
}

TEST_CASE("operator new fails while memory with a deleter is let go") {
  LeakCheck leaks;
  int deletions = 0;
  {
    allocator::Buffer buffer = allocator::malloc(32);
    std::optional<array> x(std::in_place, buffer, Shape{8}, int32, [&](allocator::Buffer memory) {
      ++deletions;
      allocator::free(memory);
    });
    failing_new::arm(1, /*persistent=*/true);
    x.reset();
    failing_new::disarm();
  }
  CHECK(deletions == 1);
  leaks.check();
}

// The first failure of the process, when there is no memory for its message.
TEST_CASE("child: no memory to say why") {
  if (!is_child("child: no memory to say why")) return;
  Stream s = default_stream(Device::cpu);
  array failed = with_callback(
      counting(1),
      [] {
        failing_new::arm(1, /*persistent=*/true);
        throw std::bad_alloc();
      },
      s);
  array next = with_callback(counting(1), [] { failing_new::disarm(); }, s);
  async_eval(failed, next);
  CHECK(eventually([&] { return next.is_available(); }));  // run by the one worker, not here
  CHECK_THROWS_WITH_AS(failed.wait(),
                       "[holdfast] a command failed, and there was no memory to say why",
                       ExecutionError);
  next.wait();
}

TEST_CASE("a failure that there is no memory to describe is still an error") {
  ChildResult child = run_child("child: no memory to say why", {"HOLDFAST_THREADS=1"});
  CHECK_MESSAGE(child.exit_code == 0, child.output);
}

#endif
