// A large product against OpenBLAS. The serial OpenBLAS computes tiles on as many threads as the
// library uses: calling it is how one gets all cores without its own threads.
#include <holdfast/holdfast.h>

#if HOLDFAST_BENCH_OPENBLAS
#include <cblas.h>
#endif

#include <cstring>

#include "benchmarks/bench.h"
#include "benchmarks/roofline.h"

namespace holdfast::bench {

#if !HOLDFAST_BENCH_OPENBLAS

void run_matmul(Report& report, const Options&) {
  report.say(
      "no OpenBLAS to compare with: apt-get install libopenblas-serial-dev, and build again");
}

#else

namespace {

constexpr int side = 2048;
constexpr int tile_rows = 512, tile_columns = 1024;

void blas_tiles(Team& team, const float* a, const float* b, float* c) {
  constexpr int across = side / tile_columns;
  team.run((side / tile_rows) * across, [&](int64_t task) {
    int row = static_cast<int>(task) / across * tile_rows;
    int column = static_cast<int>(task) % across * tile_columns;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tile_rows, tile_columns, side, 1.0f,
                a + static_cast<size_t>(row) * side, side, b + column, side, 0.0f,
                c + static_cast<size_t>(row) * side + column, side);
  });
}

}  // namespace

void run_matmul(Report& report, const Options& options) {
  openblas_set_num_threads(1);  // the system may load a threaded build: the threads are ours
  Team& team = Roofline::get().team();
  array a = random::normal({side, side}, random::key(4));
  array b = random::normal({side, side}, random::key(5));
  eval(a, b);
  size_t count = size_t{side} * side;
  HugeBuffer c(count), alone(count);
  const float* pa = a.data<float>();
  const float* pb = b.data<float>();

  // OpenBLAS is not ours: see that several threads in it disturb nothing before timing it.
  Team single(1);
  blas_tiles(single, pa, pb, alone.data());
  blas_tiles(team, pa, pb, c.data());
  if (std::memcmp(c.data(), alone.data(), count * sizeof(float)) != 0) {
    report.say("OpenBLAS gave another result on several threads; its time is not a reference");
    return;
  }
  array product = matmul(a, b);
  if (!allclose(product, array(c.data(), {side, side}), 1e-3, 1e-3).item<bool>()) {
    throw std::runtime_error("[bench matmul] the product differs from OpenBLAS's");
  }

  // A product takes a tenth of a second: more time, for enough pairs.
  Pairs pairs = interleave(
      4 * options.seconds(), [&] { eval(matmul(a, b)); },
      [&] { blas_tiles(team, pa, pb, c.data()); });
  double work = 2.0 * side * side * static_cast<double>(side) / 1e9;
  report.add({.name = "2048³ float32",
              .value = work / median(pairs.a),
              .unit = "GFLOP/s",
              .reference = "OpenBLAS sgemm, same threads",
              .reference_value = work / median(pairs.b),
              .ratio = 1 / pairs.ratio(),
              .bar = ratio_at_least(0.95),
              .note = describe(pairs, true)});
}

#endif

}  // namespace holdfast::bench
