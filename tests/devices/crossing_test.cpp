// Arrays cross between devices at random: ops of both, views, writes of the host between uses of
// the GPU, adopted memory, drops at any moment. What is read is always what was computed.
#include <atomic>
#include <numeric>
#include <random>

#include "base/fault.h"
#include "devices/gpu.h"
#include "ops/array_testing.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Values = std::vector<uint32_t>;

// An array beside what it must hold.
struct Pair {
  array a;
  Values values;
};

class Program {
 public:
  // Adopted memory that was not ended yet is counted.
  Program(uint64_t seed, std::atomic<int>& adopted) : random_(seed), adopted_(adopted) {}

  void run(int steps) {
    for (int i = 0; i < 3; ++i) pairs_.push_back(leaf());
    for (int i = 0; i < steps; ++i) step();
    for (Pair& pair : pairs_) check(pair);
  }

 private:
  uint32_t below(size_t bound) { return static_cast<uint32_t>(random_() % bound); }
  Stream stream() {
    const uint32_t which = below(4);
    if (which == 0) return default_stream(Device::cpu);
    static thread_local Stream other = new_stream(Device::gpu);
    return which == 1 ? other : default_stream(Device::gpu);
  }
  Pair& any() { return pairs_[below(pairs_.size())]; }

  Pair leaf() {
    Values values(1 + below(40));
    for (uint32_t& v : values) v = static_cast<uint32_t>(random_());
    Shape shape{static_cast<ShapeElem>(values.size())};
    if (below(3) == 0) {
      auto* own = new Values(values);
      ++adopted_;
      auto end = [own, &count = adopted_](void*) {
        --count;
        delete own;
      };
      return {array(own->data(), shape, uint32, end), values};
    }
    return {array(values.data(), shape, uint32), values};
  }

  static void check(Pair& pair) {
    pair.a.eval();
    const array& a = pair.a;
    REQUIRE(a.size() == pair.values.size());
    Values found;
    const uint32_t* data = a.data<uint32_t>();
    for (size_t i = 0; i < a.size(); ++i)
      found.push_back(data[static_cast<int64_t>(i) * a.strides()[0]]);
    CHECK(found == pair.values);
  }

  void step() {
    Pair& x = any();
    const Stream s = stream();
    switch (below(12)) {
      case 0:
      case 1: {
        uint32_t factor = below(1000);
        Values values = x.values;
        for (uint32_t& v : values) v = v * factor + 7;
        add({holdfast::add(multiply(x.a, array(factor), s), array(7u), s), values});
        break;
      }
      case 2: {
        Pair& y = any();
        const size_t n = std::min(x.values.size(), y.values.size());
        auto first = [&](const array& a) { return slice(a, {0}, {static_cast<ShapeElem>(n)}, s); };
        Values values(n);
        for (size_t i = 0; i < n; ++i) values[i] = x.values[i] - y.values[i];
        add({subtract(first(x.a), first(y.a), s), values});
        break;
      }
      case 3: {  // a view, from the back
        Values values;
        for (size_t i = x.values.size(); i > 0; i -= std::min<size_t>(i, 2))
          values.push_back(x.values[i - 1]);
        const auto n = static_cast<ShapeElem>(x.values.size());
        add({slice(x.a, {n - 1}, {-n - 1}, {-2}, s), values});
        break;
      }
      case 4: {
        Values values = x.values;
        uint32_t sum = 0;
        for (uint32_t& v : values) v = sum += v;
        add({cumsum(x.a, 0, false, true, s), values});
        break;
      }
      case 5: {
        Pair& y = any();
        if (x.values.size() + y.values.size() > 200) break;
        Values values = x.values;
        values.insert(values.end(), y.values.begin(), y.values.end());
        add({concatenate({x.a, y.a}, 0, s), values});
        break;
      }
      case 6: {  // in place where it may be
        Values values = x.values;
        const auto at = below(values.size());
        values[at] = 99;
        const auto i = static_cast<ShapeElem>(at);
        array updated = slice_update(x.a, array({99u}), {i}, {i + 1}, s);
        if (below(2) == 0) drop(x);
        add({updated, values});
        break;
      }
      case 7:
        write(s);
        break;
      case 8:
        drop(x);
        break;
      case 9:
        check(x);
        break;
      case 10:
        below(2) == 0 ? eval(x.a) : async_eval(x.a);
        break;
      default:
        CHECK(sum(x.a, s).item<uint32_t>() ==
              std::accumulate(x.values.begin(), x.values.end(), 0u));
    }
  }

  void add(Pair pair) {
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > 12) pairs_.erase(pairs_.begin() + below(pairs_.size()));
  }
  void drop(Pair& pair) {
    if (pairs_.size() > 2) pairs_.erase(pairs_.begin() + (&pair - pairs_.data()));
  }

  // The host writes between two uses.
  void write(const Stream& s) {
    Pair own = leaf();
    auto use = [&] {
      Pair result{holdfast::add(own.a, array(1u), s), own.values};
      for (uint32_t& v : result.values) ++v;
      eval(result.a);
      check(result);
    };
    if (below(2) == 0) {  // of memory of the device
      own.a = holdfast::add(own.a, array(0u), s);
      eval(own.a);
    }
    for (int i = 0; i < 3; ++i) {
      use();
      const uint32_t at = below(own.values.size()), value = below(100);
      own.a.data<uint32_t>()[at] = own.values[at] = value;
    }
    use();
    add(std::move(own));
  }

  std::mt19937_64 random_;
  std::atomic<int>& adopted_;
  std::vector<Pair> pairs_;
};

int programs() { return scaled(150, 30, 10); }

}  // namespace

TEST_CASE("arrays that cross between devices hold what was computed") {
  install_gpu();
  LeakCheck leaks;
  static std::atomic<int> adopted{0};
  for (int seed = 1; seed <= programs(); ++seed) {
    CAPTURE(seed);
    Program(static_cast<uint64_t>(seed), adopted).run(60);
  }
  leaks.check();
  CHECK(adopted == 0);
}

TEST_CASE("threads share arrays that are on one device and wanted on both") {
  install_gpu();
  for (int round = 0; round < scaled(40, 10, 3); ++round) {
    array on_host(Values(1000, 5).begin(), {1000}, uint32);
    array on_gpu = add(on_host, array(2u), Device::gpu);
    eval(on_gpu);
    on_threads(4, [&](int i) {
      const Stream s = default_stream(i % 2 == 0 ? Device::cpu : Device::gpu);
      for (int k = 0; k < 5; ++k) {
        array x = multiply(on_gpu, on_host, s);
        CHECK(sum(x, s).item<uint32_t>() == 35000);
        const array& shared = on_gpu;
        CHECK(shared.data<uint32_t>()[i] == 7);
      }
    });
  }
}

TEST_CASE("the k-th allocation, command, wait or migration of a program on two devices fails") {
  install_gpu();
  for (fault::Point point : {fault::Point::allocation, fault::Point::dispatch, fault::Point::event,
                             fault::Point::migration}) {
    int failures = 0;
    for (uint64_t k = 1;; ++k) {
      REQUIRE(k < 200);
      CAPTURE(k);
      LeakCheck leaks;
      bool is_hit;
      {
        array x(Values(100, 3).begin(), {100}, uint32);
        auto compute = [&] {
          array y = cumsum(add(x, array(1u), Device::gpu), 0, false, true, Device::gpu);
          array z = multiply(y, x, Device::cpu);
          const array both = concatenate({z, y}, 0, Device::gpu);
          const auto total = sum(both, Device::gpu).item<uint32_t>();
          CHECK(both.data<uint32_t>()[100] == 4);
          return total;
        };
        const uint32_t expected = 4 * 4 * 5050;
        fault::arm(point, k);
        std::string what;
        try {
          CHECK(compute() == expected);
        } catch (const std::exception& error) {
          what = error.what();
          ++failures;
        }
        is_hit = fault::visits(point) >= k;
        fault::disarm();
        CHECK_MESSAGE((what.empty() || what.starts_with("[") || what.find("injected") != what.npos),
                      what);
        exec::Runtime::get().drain();
        for (const Stream& stream : get_streams()) queue_of(stream).forget_failures();
        CHECK(compute() == expected);
      }
      leaks.check();
      if (!is_hit) break;
    }
    // What is there in time needs no wait.
    if (point != fault::Point::event) CHECK(failures > 0);
  }
}
