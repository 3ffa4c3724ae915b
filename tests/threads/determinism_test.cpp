// The same graph gives the same bits under every size of command list, split over streams, cache
// limit and number of threads, fused or not.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include <holdfast/holdfast.h>

#include "base/environment.h"
#include "exec/layers/chaos/chaos.h"
#include "support/child.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr int graphs = scaled(10, 4, 2);
// Large enough for several threads to share a command.
constexpr int rows = scaled(160, 96, 24);
constexpr int columns = scaled(1700, 700, 40);

struct Variation {
  int streams = 1;
  bool fuse = true;
  int max_ops = 256;
  size_t max_bytes = size_t{256} << 20;
  bool recycle = true;
  bool clears_cache = false;
  uint64_t seed = 0;  // of the choices that must not matter
};

// A random graph; `seed` alone decides what it computes.
class Graph {
 public:
  Graph(uint64_t seed, const Variation& variation, const std::vector<Stream>& streams)
      : structure_(seed), choices_(variation.seed + 1), variation_(variation), streams_(streams) {
    for (int i = 0; i < 3; ++i) pool_.push_back(leaf(i));
    for (int i = 0; i < 26; ++i) pool_.push_back(node());
  }

  std::string digest() {
    FusionScope fusion(variation_.fuse);
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = pool_.size() - 6; i < pool_.size(); ++i) {
      array x = contiguous(pool_[i], false, s());
      if (choices_.below(2) == 0) async_eval(pool_[structure_free(pool_.size())]);
      x.eval();
      REQUIRE(x.flags().row_contiguous);
      const unsigned char* bytes = x.data<unsigned char>();
      for (size_t k = 0; k < x.nbytes(); ++k) hash = (hash ^ bytes[k]) * 0x100000001b3ull;
    }
    return std::to_string(hash);
  }

 private:
  Stream s() { return streams_[choices_.below(static_cast<uint32_t>(streams_.size()))]; }
  size_t structure_free(size_t size) { return choices_.below(static_cast<uint32_t>(size)); }
  const array& pick() { return pool_[structure_.below(static_cast<uint32_t>(pool_.size()))]; }

  array leaf(int index) {
    std::vector<float> elements;
    Random values(static_cast<uint64_t>(index) + 77);
    for (int i = 0; i < rows * columns; ++i) {
      elements.push_back(static_cast<float>(values.below(20001)) / 10000.0f - 1.0f);
    }
    return array(elements.begin(), Shape{rows, columns}, float32);
  }

  array node() {
    uint32_t kind = structure_.below(20);
    array a = pick(), b = pick();
    switch (kind) {
      case 0:
        return sin(a, s());
      case 1:
        return tanh(a, s());
      case 2:
        return exp(negative(abs(a, s()), s()), s());
      case 3:
        return sqrt(abs(a, s()), s());
      case 4:
        return log1p(abs(a, s()), s());
      case 5:
        return sigmoid(a, s());
      case 6:
      case 7:
        return add(a, b, s());
      case 8:
        return multiply(a, b, s());
      case 9:
        return subtract(a, multiply(b, array(0.25f), s()), s());
      case 10:
        return divide(a, add(abs(b, s()), array(1.0f), s()), s());
      case 11:
        return maximum(a, b, s());
      case 12:
        return softmax(a, 1, false, s());
      case 13:
        return subtract(a, mean(a, 1, true, s()), s());
      case 14:
        return add(a, multiply(sum(b, 0, true, s()), array(0.01f), s()), s());
      case 15:
        return add(a, multiply(sum(b, s()), array(1e-4f), s()), s());
      case 16: {
        array square = matmul(a, transpose(b, s()), s());
        return tanh(matmul(multiply(square, array(1e-3f), s()), a, s()), s());
      }
      case 17: {
        int at = 1 + static_cast<int>(structure_.below(rows - 1));
        return concatenate(
            {slice(a, {at, 0}, {rows, columns}, s()), slice(b, {0, 0}, {at, columns}, s())}, 0,
            s());
      }
      case 18:
        return astype(astype(a, structure_.below(2) == 0 ? float16 : bfloat16, s()), float32, s());
      default:
        return transpose(contiguous(transpose(reshape(a, {rows, columns}, s()), s()), false, s()),
                         s());
    }
  }

  Random structure_, choices_;
  const Variation& variation_;
  const std::vector<Stream>& streams_;
  std::vector<array> pool_;
};

std::string digest(uint64_t seed, const Variation& variation) {
  environment::Settings& settings = environment::settings_for_tests();
  environment::Settings before = settings;
  exec::Runtime::get().drain();
  settings.max_ops_per_buffer = variation.max_ops;
  settings.max_bytes_per_buffer = variation.max_bytes;
  settings.recycle = variation.recycle;
  size_t cache_limit = variation.clears_cache ? set_cache_limit(0) : 0;
  std::vector<Stream> streams{default_stream(Device::cpu)};
  for (int i = 1; i < variation.streams; ++i) streams.push_back(new_stream(Device::cpu));
  std::string result = Graph(seed, variation, streams).digest();
  exec::Runtime::get().drain();
  for (size_t i = 1; i < streams.size(); ++i) exec::Runtime::get().give_back(queue_of(streams[i]));
  if (variation.clears_cache) set_cache_limit(cache_limit);
  settings = before;
  return result;
}

std::vector<Variation> variations() {
  return {
      {.fuse = false},
      {.max_ops = 1},
      {.max_ops = 3},
      {.max_bytes = 1},
      {.recycle = false},
      {.clears_cache = true},
      {.streams = 2, .seed = 5},
      {.streams = 5, .max_ops = 2, .seed = 6},
      {.streams = 3, .fuse = false, .max_ops = 7, .clears_cache = true, .seed = 7},
      {.streams = 4, .fuse = true, .max_bytes = size_t{1} << 20, .recycle = false, .seed = 8},
  };
}

std::string all_digests() {
  std::string result;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(graphs); ++seed) {
    result += digest(seed, {}) + " ";
  }
  return result;
}

}  // namespace

TEST_CASE("the same bits for every list size, split over streams, cache limit, fused or not") {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(graphs); ++seed) {
    std::string reference = digest(seed, {});
    CHECK(digest(seed, {}) == reference);
    size_t index = 0;
    for (const Variation& variation : variations()) {
      INFO("graph ", seed, ", variation ", index++);
      CHECK(digest(seed, variation) == reference);
    }
  }
}

// A command that does not bind what it touches has no edges to those that touch it, too.
TEST_CASE("the same bits in every order of commands that their edges allow") {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(graphs); ++seed) {
    std::string expected = digest(seed, {});
    for (uint64_t order = 1; order <= 3; ++order) {
      INFO("graph ", seed, ", order ", order);
      exec::chaos::Scope chaos({order, exec::chaos::order});
      CHECK(digest(seed, {}) == expected);
      CHECK(digest(seed, {.fuse = false}) == expected);
    }
  }
}

TEST_CASE("the same bits when several threads evaluate at once") {
  std::vector<std::string> expected;
  for (uint64_t seed = 1; seed <= 4; ++seed) expected.push_back(digest(seed, {}));
  on_threads(4, [&](int index) {
    std::vector<Stream> streams{default_stream(Device::cpu)};
    Variation variation;
    variation.seed = static_cast<uint64_t>(index);
    std::string found = Graph(static_cast<uint64_t>(index) + 1, variation, streams).digest();
    if (found != expected[static_cast<size_t>(index)]) throw std::runtime_error("other bits");
  });
}

TEST_CASE("child: digests") {
  if (!is_child("child: digests")) return;
  report(all_digests());
}

TEST_CASE("the same bits for every number of threads") {
  std::string expected = all_digests() + "\n";
  for (int threads : {1, 2, 3, 7}) {
    ChildResult child =
        run_child("child: digests", {"HOLDFAST_THREADS=" + std::to_string(threads)});
    CHECK_MESSAGE(child.exit_code == 0, child.output);
    CHECK(reported(child) == expected);
  }
}
