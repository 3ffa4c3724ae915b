#include "benchmarks/roofline.h"

#include <sys/mman.h>

#include <new>

#include "base/machine.h"
#include "benchmarks/bench.h"
#include "benchmarks/roofline_loops.h"

namespace holdfast::bench {

// --- buffers ----------------------------------------------------------------------------

HugeBuffer::HugeBuffer(size_t count) : count_(count) {
  constexpr size_t huge_page = size_t{2} << 20;
  bytes_ = (count * sizeof(float) + huge_page - 1) / huge_page * huge_page + huge_page;
  base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base_ == MAP_FAILED) throw std::bad_alloc();
  madvise(base_, bytes_, MADV_HUGEPAGE);
  auto address = reinterpret_cast<uintptr_t>(base_);
  data_ = reinterpret_cast<float*>((address + huge_page - 1) & ~(huge_page - 1));
  for (size_t i = 0; i < count; ++i) data_[i] = 1.0f / static_cast<float>(1 + i % 1024);
}

HugeBuffer::~HugeBuffer() { munmap(base_, bytes_); }

// --- roofline ---------------------------------------------------------------------------

namespace {

// Small enough to share evenly, large enough for the prefetcher.
constexpr size_t piece = size_t{256} << 10;

int64_t pieces_of(size_t count) { return static_cast<int64_t>((count + piece - 1) / piece); }
size_t piece_size(size_t count, int64_t task) {
  return std::min(piece, count - static_cast<size_t>(task) * piece);
}

// Tries each in turn, several rounds, and returns the index of the one with the best time.
template <class Run>
size_t fastest(size_t candidates, Run&& run) {
  std::vector<double> best(candidates, std::numeric_limits<double>::infinity());
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < candidates; ++i) {
      best[i] = std::min(best[i], seconds_of([&] { run(i); }));
    }
  }
  return static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
}

constexpr size_t elements = size_t{16} << 20;

}  // namespace

Roofline& Roofline::get() {
  static Roofline roofline;
  return roofline;
}

Roofline::Roofline() : team_(machine::threads()) {
  std::vector<Loops> all, reading, computing;
  for (const Loops& loops : all_loops()) {
    if (!loops.is_supported) continue;
    all.push_back(loops);
    if (loops.read) reading.push_back(loops);
    if (loops.multiply_add) computing.push_back(loops);
  }
  HugeBuffer a(elements), b(elements), c(elements);
  size_t i = fastest(all.size(), [&](size_t k) {
    copy_loop_ = all[k].copy;
    copy(a.data(), c.data(), elements);
  });
  copy_loop_ = all[i].copy;
  copy_name_ = all[i].name;
  i = fastest(all.size(), [&](size_t k) {
    add_loop_ = all[k].add;
    add(a.data(), b.data(), c.data(), elements);
  });
  add_loop_ = all[i].add;
  add_name_ = all[i].name;
  i = fastest(reading.size(), [&](size_t k) {
    read_loop_ = reading[k].read;
    read(a.data(), elements);
  });
  read_loop_ = reading[i].read;
  read_name_ = reading[i].name;
  std::vector<double> rates(computing.size());
  for (size_t k = 0; k < computing.size(); ++k) {
    multiply_add_loop_ = computing[k].multiply_add;
    double seconds = seconds_of([&] { rates[k] = multiply_add(); });
    rates[k] /= seconds;
  }
  i = static_cast<size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin());
  multiply_add_loop_ = computing[i].multiply_add;
  multiply_add_name_ = computing[i].name;
}

void Roofline::copy(const float* from, float* to, size_t count) {
  team_.run(pieces_of(count), [&](int64_t task) {
    size_t start = static_cast<size_t>(task) * piece;
    copy_loop_(from + start, to + start, piece_size(count, task));
  });
}

float Roofline::read(std::span<const std::span<const float>> ranges) {
  std::vector<std::span<const float>> pieces;
  for (std::span<const float> range : ranges) {
    for (; !range.empty(); range = range.subspan(pieces.back().size()))
      pieces.push_back(range.first(std::min(piece, range.size())));
  }
  std::vector<float> sums(pieces.size());
  team_.run(static_cast<int64_t>(pieces.size()), [&](int64_t task) {
    auto index = static_cast<size_t>(task);
    sums[index] = read_loop_(pieces[index].data(), pieces[index].size());
  });
  float sum = 0;
  for (float s : sums) sum += s;
  return sum;
}

float Roofline::read(const float* from, size_t count) {
  std::span<const float> range(from, count);
  return read({&range, 1});
}

void Roofline::add(const float* a, const float* b, float* to, size_t count) {
  team_.run(pieces_of(count), [&](int64_t task) {
    size_t start = static_cast<size_t>(task) * piece;
    add_loop_(a + start, b + start, to + start, piece_size(count, task));
  });
}

double Roofline::multiply_add() {
  std::atomic<double> operations{0};
  // Several tasks a thread, so that the last one does not decide.
  team_.run(int64_t{4} * team_.size(), [&](int64_t) {
    double done = multiply_add_loop_();
    double before = operations.load();
    while (!operations.compare_exchange_weak(before, before + done)) {
    }
  });
  return operations.load();
}

// --- suite ------------------------------------------------------------------------------

namespace {

std::string on_threads(const std::string& variant) {
  return variant + ", " + std::to_string(Roofline::get().team().size()) + " threads, best of run";
}

}  // namespace

void run_roofline(Report& report, const Options& options) {
  Roofline& roofline = Roofline::get();
  HugeBuffer a(elements), b(elements), c(elements);
  double budget = options.seconds() / 2;
  double bytes = static_cast<double>(elements) * sizeof(float);
  auto bandwidth = [&](const char* name, double moved, const std::string& variant, auto&& work) {
    Samples samples = sample(budget, work);
    report.add({.name = name,
                .value = moved / samples.best() / 1e9,
                .unit = "GB/s",
                .note = on_threads(variant)});
  };
  bandwidth("copy (read + write), 64 MiB", 2 * bytes, roofline.copy_variant(),
            [&] { roofline.copy(a.data(), c.data(), elements); });
  bandwidth("read (sum), 64 MiB", bytes, roofline.read_variant(), [&] {
    volatile float sum = roofline.read(a.data(), elements);
    (void)sum;
  });
  bandwidth("add (2 reads + write), 64 MiB", 3 * bytes, roofline.add_variant(),
            [&] { roofline.add(a.data(), b.data(), c.data(), elements); });
  double operations = 0;
  Samples peak = sample(budget, [&] { operations = roofline.multiply_add(); });
  report.add({.name = "float32 multiply-add peak",
              .value = operations / peak.best() / 1e9,
              .unit = "GFLOP/s",
              .note = on_threads(roofline.multiply_add_variant())});
}

}  // namespace holdfast::bench
