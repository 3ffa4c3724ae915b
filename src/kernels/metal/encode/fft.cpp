#include <algorithm>
#include <optional>

#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"

namespace holdfast::kernels::metal {
namespace {

#include "kernels/metal/support/fft_parameters.h"
struct FftSource {
  enum : int32_t { complex_row, real_row, half_row, filter, product };
};
struct FftTarget {
  enum : int32_t { complex_result, real_result };
};

constexpr int64_t fft_elements = 2048;         // of a threadgroup
constexpr int64_t fft_radix_of_several = 512;  // a radix with which threadgroups have four columns
constexpr int64_t fft_threadgroups = 264;

using Radices = SmallVector<int64_t, 8>;

// The radices of the passes of a transform of `length` elements. Empty where it has other factors
// than 2, 3, 5 and 7.
Radices radices_of(int64_t length) {
  SmallVector<int64_t, 32> primes;
  int64_t rest = length;
  for (int64_t prime : {7, 5, 3, 2}) {
    for (; rest % prime == 0; rest /= prime) primes.push_back(prime);
  }
  if (rest > 1) return {};
  Radices radices;
  if (length <= fft_elements) {
    radices.push_back(length);
    return radices;
  }
  for (size_t passes = 2;; ++passes) {
    radices.clear();
    for (size_t i = 0; i < passes; ++i) radices.push_back(1);
    for (int64_t prime : primes) *std::min_element(radices.begin(), radices.end()) *= prime;
    if (*std::max_element(radices.begin(), radices.end()) <= fft_radix_of_several) return radices;
  }
}

// Four bits for each factor.
uint32_t factors_of_radix(int64_t radix) {
  uint32_t factors = 0;
  for (int64_t factor : {8, 4, 2, 3, 5, 7}) {
    for (; radix % factor == 0; radix /= factor)
      factors = factors << 4 | static_cast<uint32_t>(factor);
  }
  return factors;
}

// All passes of a transform of `rows` rows, of a length whose radices these are. `filters` is for
// products.
void encode_passes(Encoder& encoder, Fft fft, int64_t rows, const Radices& radices, const array& in,
                   const array& filters, array& out) {
  const size_t bytes = static_cast<size_t>(rows) * fft.length * 8;
  std::optional<array> between[2];
  fft.stride = 1;
  const array* from = &in;
  for (size_t pass = 0; pass < radices.size(); ++pass) {
    const int64_t radix = radices[pass];
    fft.is_first = pass == 0;
    fft.is_last = pass + 1 == radices.size();
    fft.radix = fit(radix);
    fft.factors = factors_of_radix(radix);
    fft.step = fft.length / static_cast<uint64_t>(radix);
    fft.groups = fft.step / fft.stride;
    fft.columns = static_cast<uint64_t>(rows) * fft.step;
    const auto columns = static_cast<int64_t>(fft.columns);
    const int64_t most = fft_elements / radix;
    const int64_t together =
        std::clamp(columns / fft_threadgroups, std::min<int64_t>(8, most), most);
    fft.together = fit(together);
    array* to = &out;
    if (!fft.is_last) {
      std::optional<array>& half = between[pass % 2];
      if (!half) half = make_temporary(encoder, bytes);
      to = &*half;
    }
    const Extent counts[] = {extent_of(static_cast<int64_t>(fft.step), 0),
                             extent_of(static_cast<int64_t>(fft.stride), 0)};
    Launch(encoder, "fft", "fft_pass")
        .with(*from, output(*to), filters, fft, counts)
        .over(grid_length(encoder, divide_up(columns, together), 256), 256);
    from = to;
    fft.stride *= static_cast<uint64_t>(radix);
  }
}

}  // namespace

void MetalBackend::fft(Encoder& encoder, const FftSettings& settings, const array& in, array& out) {
  encoder.allocate(out);
  if (out.size() == 0) return;
  if (in.size() == 0) {
    const uint64_t zero = 0;
    return encoder.fill(out, &zero);
  }
  const array rows_of_input = make_dense(encoder, in);
  const int64_t length = settings.length;
  const int64_t rows = static_cast<int64_t>(out.size()) / out.shape(-1);
  Fft fft{};
  fft.given = fit(in.shape(-1));
  fft.expected =
      static_cast<uint64_t>(settings.kind == FftKind::from_half ? length / 2 + 1 : length);
  fft.kept = fit(out.shape(-1));
  fft.source = settings.kind == FftKind::complex   ? FftSource::complex_row
               : settings.kind == FftKind::to_half ? FftSource::real_row
                                                   : FftSource::half_row;
  fft.target =
      settings.kind == FftKind::from_half ? FftTarget::real_result : FftTarget::complex_result;
  fft.conjugates_input = fft.conjugates_output = settings.inverse;
  fft.scale = settings.scale;
  fft.length = fit(length);
  const Radices radices = radices_of(length);
  if (!radices.empty()) {
    encode_passes(encoder, fft, rows, radices, rows_of_input, rows_of_input, out);
    return;
  }
  // Bluestein: a convolution with a chirp, of a length that is a power of two.
  int64_t wide = 1;
  while (wide < 2 * length - 1) wide *= 2;
  const Radices wide_radices = radices_of(wide);
  const auto row_bytes = static_cast<size_t>(wide) * 8;
  array filters = make_temporary(encoder, row_bytes);
  array spectra = make_temporary(encoder, static_cast<size_t>(rows) * row_bytes);
  Fft half{};
  half.length = half.kept = static_cast<uint64_t>(wide);
  half.source_chirp = fit(length);
  half.source = FftSource::filter;
  half.scale = 1;
  encode_passes(encoder, half, 1, wide_radices, rows_of_input, rows_of_input, filters);
  half.source = fft.source;
  half.given = fft.given;
  half.expected = fft.expected;
  half.conjugates_input = settings.inverse;
  encode_passes(encoder, half, rows, wide_radices, rows_of_input, rows_of_input, spectra);
  half.source = FftSource::product;
  half.source_chirp = 0;
  half.target_chirp = fit(length);
  half.target = fft.target;
  half.kept = fft.kept;
  half.conjugates_output = settings.inverse;
  half.scale = settings.scale / static_cast<float>(wide);
  encode_passes(encoder, half, rows, wide_radices, spectra, filters, out);
}

}  // namespace holdfast::kernels::metal
