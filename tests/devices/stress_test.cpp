// Many threads compute on a GPU, share what they made, and drop it while it is still computed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/holdfast.h>

#include "base/sync.h"
#include "devices/gpu.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int side = 40;

// A matrix all of whose elements are to be `expected`.
struct Known {
  array value;
  int32_t expected;
};

Known constant(int32_t value, Stream s) { return {full({side, side}, array(value), s), value}; }

void verify(const Known& known) {
  // Read on a stream of its own: bytes come back from the GPU.
  array a = known.value;
  a.eval();
  for (int i : {0, side + 1, side * side - 1}) {
    const int32_t got = std::as_const(a).data<int32_t>()[i];
    if (got != known.expected) {
      throw std::runtime_error("expected " + std::to_string(known.expected) + ", got " +
                               std::to_string(got));
    }
  }
}

Known combined(const Known& a, const Known& b, uint32_t choice, Stream s) {
  switch (choice % 5) {
    case 0:
      return {add(a.value, b.value, s), a.expected + b.expected};
    case 1:
      return {subtract(a.value, multiply(b.value, array(2), s), s), a.expected - 2 * b.expected};
    case 2:
      return {contiguous(transpose(a.value, s), false, s), a.expected};
    case 3:
      return {concatenate({slice(a.value, {0, 0}, {side / 2, side}, s),
                           slice(add(a.value, array(0), s), {side / 2, 0}, {side, side}, s)},
                          0, s),
              a.expected};
    default:
      return {contiguous(broadcast_to(max(b.value, 1, true, s), {side, side}, s), false, s),
              b.expected};
  }
}

}  // namespace

TEST_CASE("64 threads compute on a gpu, share arrays and drop them [long]") {
  install_gpu();
  const int turns = scaled(40, 10, 4);
  sync::Mutex mutex;
  std::vector<Known> shared;
  for (int i = 0; i < 32; ++i) shared.push_back(constant(i, default_stream(Device::gpu)));
  auto look = [&](uint32_t place) {
    std::lock_guard guard(mutex);
    return shared[place % shared.size()];
  };
  on_threads(64, [&](int thread) {
    std::mt19937 random(static_cast<uint32_t>(thread) + 1);
    const Stream s = default_stream(Device::gpu);
    for (int turn = 0; turn < turns; ++turn) {
      Known a = look(random()), b = look(random());
      // Small numbers stay exact, however long the chain.
      if (std::abs(a.expected) > 1 << 20 || std::abs(b.expected) > 1 << 20)
        a = b = constant(turn, s);
      Known made = combined(a, b, random(), s);
      switch (random() % 4) {
        case 0:
          verify(made);
          break;
        case 1:
          async_eval(made.value);
          break;  // perhaps dropped while it runs
        case 2:
          async_eval(combined(made, b, random(), s).value);
          break;
        default:
          break;  // evaluated by another thread, or by none
      }
      std::lock_guard guard(mutex);  // `made`, the old one now, ends after it
      std::swap(shared[random() % shared.size()], made);
    }
  });
  for (const Known& known : shared) verify(known);
}
