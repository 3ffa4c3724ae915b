// Rotary position embedding. A thread turns as many pairs as 16 bytes have elements, in two blocks
// of 16 bytes, of several heads: their angles are the same.
#include "support/indexing.h"
#include "support/turns.h"
#include "support/rope_parameters.h"

// Elements [first, first + size) of a row; what lies beyond `end` is 0.
template <typename T>
inline void load_part(const device T* row, ulong first, ulong end, constant Rope& rope,
                      thread float* to) {
  constexpr int size = Block<T>::size;
  if (rope.aligned && first + size <= end) {
    const Block<T> block = load_block(row + first);
    for (int i = 0; i < size; ++i) to[i] = float(block.values[i]);
  } else {
    for (int i = 0; i < size; ++i)
      to[i] = first + i < end ? float(row[long(first + i) * rope.feature_stride]) : 0.0f;
  }
}

// base^(-pair / pairs): the product of powers[k] = base^(-2^k / pairs) over the bits of `pair`.
inline double rate_of(uint pair, constant double* powers) {
  double rate = 1;
  for (int k = 0; pair >> k != 0; ++k) {
    if ((pair >> k & 1) != 0) rate *= powers[k];
  }
  return rate;
}

// `counts`: of units in a row, positions, and shares of the heads. `heads`: where they lie.
template <typename T>
KERNEL(256)
rope(const device T* in, device T* out, const device long* offsets, const device float* frequencies,
     constant Rope& rope, constant Extent* counts, constant Extent* heads, constant double* powers,
     IN_GRID) {
  constexpr int size = Block<T>::size;
  ulong number = thread_number(position, grid);
  if (number >= rope.threads) return;
  const uint unit = uint(take_last(number, counts[0]));
  const ulong place = take_last(number, counts[1]);
  const ulong first_head = take_last(number, counts[2]) * rope.heads_per_thread;
  const ulong last_head = min(first_head + rope.heads_per_thread, rope.heads);
  const ulong batch = number;

  const bool turns = unit < rope.pair_units;
  float cosines[size], sines[size];
  if (turns) {
    const long offset = rope.has_offsets ? offsets[long(batch) * rope.offset_stride] : rope.offset;
    const double angle = (double(offset) + double(place)) * rope.scale / half_pi;
    double rate = rope.has_frequencies ? double(1) : rate_of(unit * size, powers);
    for (int i = 0; i < size; ++i) {
      double quarters = angle * rate;
      if (rope.has_frequencies) {
        const long pair = min(long(unit) * size + i, long(rope.pairs) - 1);
        quarters = angle / double(frequencies[pair * rope.frequency_stride]);
      }
      const Turn turn = turn_by(quarters);
      cosines[i] = float(turn.cosine);
      sines[i] = float(turn.sine);
      rate *= powers[0];
    }
  }
  // The unit's two blocks, and where rows of such blocks end.
  ulong low = ulong(unit) * (rope.traditional ? 2 * size : size), high = low + size;
  ulong low_end = 2 * rope.pairs, high_end = low_end;
  if (!turns) {
    low = 2 * rope.pairs + ulong(unit - rope.pair_units) * (2 * size);
    high = low + size;
    low_end = high_end = rope.features;
  } else if (!rope.traditional) {
    high = low + rope.pairs;
    low_end = rope.pairs;
  }
  const device T* from = in + long(batch) * rope.batch_stride + long(place) * rope.position_stride;
  for (ulong head = first_head; head < last_head; ++head) {
    const device T* row = from + offset_of(head, heads, rope.head_dimensions);
    float x[2 * size];
    load_part(row, low, low_end, rope, x);
    load_part(row, high, high_end, rope, x + size);
    Block<T> results[2];
    for (int i = 0; i < size; ++i) {
      const float a = rope.traditional ? x[2 * i] : x[i];
      const float b = rope.traditional ? x[2 * i + 1] : x[i + size];
      const float c = fma(a, cosines[i], -(b * sines[i])), d = fma(a, sines[i], b * cosines[i]);
      if (turns && rope.traditional) {
        x[2 * i] = c;
        x[2 * i + 1] = d;
      } else if (turns) {
        x[i] = c;
        x[i + size] = d;
      }
    }
    for (int i = 0; i < 2 * size; ++i) results[i / size].values[i % size] = T(x[i]);
    device T* to = out + ((batch * rope.heads + head) * rope.positions + place) * rope.features;
    store_block(to, low, low_end, rope.aligned, results[0]);
    store_block(to, high, high_end, rope.aligned, results[1]);
  }
}

#define ROPE(name, T) ENTRY("rope_" #name, rope<T>)
FOR_FLOATS(ROPE)
