#include "kernels/plan/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>

#include "base/sync.h"
#include "kernels/cpu/threefry.h"

namespace holdfast::kernels {
namespace {

// --- codebook ---

// Lloyd's iterations over a grid of the density; sums over ranges of the grid are differences of
// running sums, so that an iteration costs a search for each boundary.
std::vector<float> lloyd_max(int dims, int levels) {
  constexpr int points = 32768, iterations = 100;
  std::vector<double> weights(points + 1, 0), moments(points + 1, 0);
  auto place = [](int i) { return (2.0 * i + 1) / points - 1; };
  for (int i = 0; i < points; ++i) {
    const double t = place(i);
    const double density = std::exp(0.5 * (dims - 3) * std::log1p(-t * t));
    const auto at = static_cast<size_t>(i);
    weights[at + 1] = weights[at] + density;
    moments[at + 1] = moments[at] + density * t;
  }
  std::vector<double> centres(static_cast<size_t>(levels));
  const auto count = static_cast<size_t>(levels);
  auto before = [&](double t) {  // points of the grid that are not beyond t
    return static_cast<size_t>(
        std::clamp(std::floor((t + 1) * points / 2 + 0.5), 0.0, 1.0 * points));
  };
  // From the centres of parts of equal weight.
  for (size_t k = 0; k < count; ++k) {
    const double share = weights.back() * (2 * static_cast<double>(k) + 1) / (2.0 * levels);
    const auto at = std::lower_bound(weights.begin(), weights.end(), share) - weights.begin();
    centres[k] = place(static_cast<int>(at) - 1);
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    size_t first = 0;
    for (size_t k = 0; k < count; ++k) {
      const size_t last =
          k + 1 < count ? before((centres[k] + centres[k + 1]) / 2) : size_t{points};
      const double weight = weights[last] - weights[first];
      if (weight > 0) centres[k] = (moments[last] - moments[first]) / weight;
      first = last;
    }
  }
  // The density is even; the grid's running sums are so up to rounding.
  std::vector<float> codebook(count);
  for (size_t k = 0; k < count; ++k) {
    codebook[k] = static_cast<float>((centres[k] - centres[count - 1 - k]) / 2);
  }
  return codebook;
}

// --- rotation ---

std::vector<uint32_t> bits_of(uint64_t seed, int64_t count) {
  std::vector<uint32_t> words(static_cast<size_t>(count));
  cpu::random_words({static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)}, count, 0,
                    count, words.data());
  return words;
}

// +1 where random::uniform of key(seed) exceeds one half.
std::vector<float> random_signs(int dims, uint64_t seed) {
  std::vector<float> signs;
  for (uint32_t word : bits_of(seed, dims)) {
    signs.push_back(static_cast<float>(word) / 4294967296.0f > 0.5f ? 1.0f : -1.0f);
  }
  return signs;
}

// x with erf(x) = y, by Newton's method from a formula that is right to a few percent.
double inverse_error_function(double y) {
  const double logarithm = std::log1p(-y * y), a = 0.147, pi = 3.14159265358979323846;
  const double b = 2 / (pi * a) + logarithm / 2;
  double x = std::copysign(std::sqrt(std::sqrt(b * b - logarithm / a) - b), y);
  for (int i = 0; i < 4; ++i) {
    x -= (std::erf(x) - y) * std::sqrt(pi) / 2 * std::exp(x * x);
  }
  return x;
}

// The orthogonal factor of a matrix of normal numbers, each column with the sign of its diagonal
// element in the triangular factor: uniform among rotations. By Gram and Schmidt, twice.
std::vector<float> random_rotation(int dims, uint64_t seed) {
  const auto n = static_cast<size_t>(dims);
  std::vector<double> columns(n * n);  // column by column
  const std::vector<uint32_t> words = bits_of(seed, int64_t{dims} * dims);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const double uniform = (static_cast<double>(words[i * n + j]) + 0.5) / 4294967296.0;
      columns[j * n + i] = std::sqrt(2.0) * inverse_error_function(2 * uniform - 1);
    }
  }
  for (size_t j = 0; j < n; ++j) {
    double* column = &columns[j * n];
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t k = 0; k < j; ++k) {
        const double* other = &columns[k * n];
        double product = 0;
        for (size_t i = 0; i < n; ++i) product += column[i] * other[i];
        for (size_t i = 0; i < n; ++i) column[i] -= product * other[i];
      }
    }
    double norm = 0;
    for (size_t i = 0; i < n; ++i) norm += column[i] * column[i];
    norm = std::sqrt(norm);
    for (size_t i = 0; i < n; ++i) column[i] /= norm;
  }
  std::vector<float> matrix(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) matrix[i * n + j] = static_cast<float>(columns[j * n + i]);
  }
  return matrix;
}

TurboTables make_tables(const KvRows& rows) {
  TurboTables tables;
  tables.codebook = lloyd_max(rows.dims, 1 << rows.bits);
  for (size_t k = 0; k + 1 < tables.codebook.size(); ++k) {
    tables.boundaries.push_back((tables.codebook[k] + tables.codebook[k + 1]) / 2);
  }
  if ((rows.dims & (rows.dims - 1)) == 0) {
    tables.signs = random_signs(rows.dims, rows.seed);
  } else {
    tables.matrix = random_rotation(rows.dims, rows.seed);
  }
  return tables;
}

}  // namespace

std::shared_ptr<const TurboTables> turbo_tables(const KvRows& rows) {
  // A program has a few formats. One that has more makes some again.
  constexpr size_t most = 64;
  using Key = std::tuple<int, int, uint64_t>;
  static sync::Mutex mutex;
  static std::map<Key, std::shared_ptr<const TurboTables>> made;  // guarded by mutex
  const Key key{rows.dims, rows.bits, rows.seed};
  {
    std::lock_guard guard(mutex);
    auto found = made.find(key);
    if (found != made.end()) return found->second;
  }
  auto tables = std::make_shared<const TurboTables>(make_tables(rows));
  std::lock_guard guard(mutex);
  if (made.size() >= most) made.clear();
  return made.emplace(key, std::move(tables)).first->second;
}

}  // namespace holdfast::kernels
