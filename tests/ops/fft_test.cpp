// Fourier transforms against the definition.
#include <holdfast/fft.h>

#include "ops/numeric_testing.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

using Numbers = std::vector<std::complex<double>>;

Numbers plain(const Numbers& x, bool inverse) {
  Numbers out;
  auto n = static_cast<double>(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    std::complex<double> sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      double angle = 2 * M_PI * static_cast<double>(j * k % x.size()) / n;
      sum += x[j] * std::polar(1.0, inverse ? angle : -angle);
    }
    out.push_back(inverse ? sum / n : sum);
  }
  return out;
}

void check_numbers(const array& got, const Numbers& expected) {
  Numbers values = complexes_of(got);
  REQUIRE(values.size() == expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, std::abs(values[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  CHECK(worst <= 2e-6 * (1e-3 + largest));
}

}  // namespace

TEST_CASE("transforms of every small length, and of some large ones") {
  RandomArrays random(71);
  std::vector<int> lengths;
  for (int n = 1; n <= 70; ++n) lengths.push_back(n);
  for (int n : {97, 128, 210, 243, 256, 343, 500, 509, 1001, 1024}) lengths.push_back(n);
  for (int n : lengths) {
    CAPTURE(n);
    array x = random.strided({n}, complex64), r = random.strided({n}, float32);
    check_numbers(fft::fft(x), plain(complexes_of(x), false));
    check_numbers(fft::ifft(x), plain(complexes_of(x), true));
    Numbers half = plain(complexes_of(r), false);
    half.resize(size_t(n / 2 + 1));
    array forward = fft::rfft(r);
    check_numbers(forward, half);
    array back = fft::irfft(forward, n, -1);
    CHECK(back.dtype() == float32);
    check_numbers(back, complexes_of(r));
  }
}

TEST_CASE("real rows, side by side, cut, padded and beside a word's boundary") {
  RandomArrays random(74);
  for (int n : {1, 2, 3, 6, 8, 15, 34, 64, 100}) {
    for (int rows : {2, 8, 17}) {
      for (int given : {n, n + 1, n + 2, (n + 1) / 2}) {
        CAPTURE(n);
        CAPTURE(rows);
        CAPTURE(given);
        array all = random.dense({rows * given + 1}, float32);
        array x = reshape(slice(all, {0}, {rows * given}), {rows, given});
        array shifted = reshape(slice(all, {1}, {rows * given + 1}), {rows, given});
        int half = n / 2 + 1;
        for (const array& a : {x, shifted}) {
          array whole = fft::fft(astype(a, complex64), n, 1);
          check_numbers(fft::rfft(a, n, 1), complexes_of(slice(whole, {0, 0}, {rows, half})));
        }
        // Imaginary parts at the ends do not count.
        array spectrum = random.dense({rows, given}, complex64);
        Numbers values = complexes_of(spectrum), expected;
        for (int r = 0; r < rows; ++r) {
          Numbers line(size_t(n), 0.0);
          for (int k = 0; k < std::min(half, given); ++k) {
            std::complex<double> value = values[size_t(r * given + k)];
            if (k == 0 || 2 * k == n) value = value.real();
            line[size_t(k)] = value;
            line[size_t((n - k) % n)] = std::conj(value);
          }
          for (std::complex<double> value : plain(line, true)) expected.push_back(value);
        }
        check_numbers(fft::irfft(spectrum, n, 1), expected);
      }
    }
  }
}

TEST_CASE("axes, lengths and norms") {
  RandomArrays random(72);
  array x = random.strided({3, 4, 5}, complex64);
  CHECK(fft::fftn(x).shape() == Shape{3, 4, 5});
  check_numbers(fft::ifftn(fft::fftn(x)), complexes_of(x));
  check_numbers(fft::fft2(x), complexes_of(fft::fft(fft::fft(x, 1), 2)));
  check_numbers(fft::ifft2(x, {0, 1}), complexes_of(fft::ifft(fft::ifft(x, 0), 1)));
  check_numbers(fft::fft(x, 3, 1), complexes_of(fft::fft(slice(x, {0, 0, 0}, {3, 3, 5}), 1)));
  array padded = concatenate({x, zeros({3, 2, 5}, complex64)}, 1);
  check_numbers(fft::fft(x, 6, 1), complexes_of(fft::fft(padded, 1)));
  array r = random.strided({4, 6, 3}, float32);
  CHECK(fft::rfftn(r).shape() == Shape{4, 6, 2});
  CHECK(fft::rfft2(r, {0, 1}).shape() == Shape{4, 4, 3});
  check_numbers(fft::irfft2(fft::rfft2(r, {0, 1}), {0, 1}), complexes_of(r));
  check_numbers(fft::irfftn(fft::rfftn(r), {4, 6, 3}, {0, 1, 2}), complexes_of(r));
  check_numbers(fft::fft(x, -1, fft::FFTNorm::Ortho),
                complexes_of(fft::fft(x) * array(1 / std::sqrt(5.0f))));
  check_numbers(fft::ifft(fft::fft(x, -1, fft::FFTNorm::Forward), -1, fft::FFTNorm::Forward),
                complexes_of(x));
  CHECK(fft::fft(zeros({0, 4})).shape() == Shape{0, 4});
  check_error<std::invalid_argument>("fftn", [&] { fft::fft(zeros({4, 0})); });
  check_error<std::invalid_argument>("rfftn", [&] { fft::rfft(x); });
  check_error<std::invalid_argument>("fftn", [&] { fft::fftn(x, {1, 2}, {0}); });
  check_error<std::invalid_argument>("fftn", [&] { fft::fftn(x, std::vector<int>{0, 0}); });
  check_error<std::out_of_range>("fftn", [&] { fft::fft(x, 3); });
}

TEST_CASE("frequencies and shifts") {
  check_values<float>(fft::fftfreq(5, 0.2), {5}, {0, 1, 2, -2, -1});
  check_values<float>(fft::fftfreq(4, 0.25), {4}, {0, 1, -2, -1});
  check_values<float>(fft::rfftfreq(4, 0.25), {3}, {0, 1, 2});
  check_values<int>(fft::fftshift(arange(5)), {5}, {3, 4, 0, 1, 2});
  check_values<int>(fft::ifftshift(fft::fftshift(arange(5))), {5}, {0, 1, 2, 3, 4});
  array m = reshape(arange(6), {2, 3});
  check_values<int>(fft::fftshift(m), {2, 3}, {5, 3, 4, 2, 0, 1});
  check_values<int>(fft::fftshift(m, {1}), {2, 3}, {2, 0, 1, 5, 3, 4});
}

// More lengths than plans are kept, from several threads: each gets the plan of its own length.
TEST_CASE("fft: plans that are shared between calls and threads") {
  auto transform = [](int n) { return fft::fft(astype(arange(n), complex64)); };
  std::vector<array> expected;
  for (int n = 1; n <= 40; ++n) expected.push_back(transform(n));
  eval(expected);
  on_threads(4, [&](int thread) {
    for (int round = 0; round < 3; ++round) {
      for (int n = 1; n <= 40; ++n) {
        int length = (n * (thread + 3)) % 41;
        if (length == 0) continue;
        array same = array_equal(transform(length), expected[static_cast<size_t>(length - 1)]);
        CHECK(same.item<bool>());
      }
    }
  });
}
