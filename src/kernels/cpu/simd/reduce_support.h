// The loops that all reductions share, over a policy:
//
//   using Element, Compute, State, Output;       // Element converts to Compute in blocks
//   static constexpr bool has_index;             // argmin, argmax
//   static State identity();
//   static void block(State&, const Compute*, int64_t count, int64_t first_index);
//   static void columns(State*, const Compute* const* rows, int row_count, int64_t count, int64_t
//   first_index); static void combine(State& into, const State& from); static void finish(const
//   State&, Output&);
#pragma once

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/reduce_kernels.h"

namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET {

inline constexpr int64_t reduce_block = 4096;   // elements a policy's block() sees at once
inline constexpr int64_t convert_block = 1024;  // the same, when they are converted into a buffer
inline constexpr int64_t column_block = 4096;  // columns whose states stay in the first-level cache
inline constexpr int64_t convert_columns = 512;
inline constexpr int rows_at_once = 16;
inline constexpr int64_t folded_columns = 128;

template <typename P>
struct ReduceLoops {
  using Element = typename P::Element;
  using Compute = typename P::Compute;
  using State = typename P::State;
  using Output = typename P::Output;
  static constexpr bool converts = !is_same<Element, Compute>;

  static void initialise(void* states, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<State*>(states)[i] = P::identity();
  }

  static inline void row(const Element* input, int64_t length, int64_t first_index, State& state) {
    if constexpr (requires { P::row(input, length, first_index, state); }) {
      P::row(input, length, first_index, state);
      return;
    }
    constexpr int64_t step = converts ? convert_block : reduce_block;
    Compute buffer[converts ? convert_block : 1];
    for (int64_t i = 0; i < length; i += step) {
      int64_t count = length - i < step ? length - i : step;
      P::block(state, as_compute(input + i, count, buffer), count, first_index + i);
    }
  }

  static void rows(const void* input, int64_t count, int64_t stride, int64_t length,
                   int64_t first_index, void* states) {
    for (int64_t i = 0; i < count; ++i) {
      row(static_cast<const Element*>(input) + i * stride, length, first_index,
          static_cast<State*>(states)[i]);
    }
  }

  static void rows_to_one(const void* input, int64_t count, int64_t stride, int64_t length,
                          int64_t first_index, void* state) {
    for (int64_t i = 0; i < count; ++i) {
      row(static_cast<const Element*>(input) + i * stride, length, first_index + i * length,
          *static_cast<State*>(state));
    }
  }

  static void wide_columns(const Element* input, int64_t rows, int64_t stride, int64_t columns,
                           State* states) {
    if constexpr (requires { P::many_rows(states, input, rows, stride, columns); }) {
      P::many_rows(states, input, rows, stride, columns);
      return;
    }
    constexpr int64_t step = converts ? convert_columns : column_block;
    Compute buffer[rows_at_once][converts ? convert_columns : 1];
    const Compute* pointers[rows_at_once];
    for (int64_t c = 0; c < columns; c += step) {
      int64_t count = columns - c < step ? columns - c : step;
      for (int64_t r = 0; r < rows; r += rows_at_once) {
        int row_count = rows - r < rows_at_once ? static_cast<int>(rows - r) : rows_at_once;
        for (int i = 0; i < row_count; ++i) {
          pointers[i] = as_compute(input + (r + i) * stride + c, count, buffer[i]);
        }
        P::columns(states + c, pointers, row_count, count);
      }
    }
  }

  static void columns(const void* input, int64_t rows, int64_t stride, int64_t columns,
                      [[maybe_unused]] int64_t first_index, void* states) {
    const auto* from = static_cast<const Element*>(input);
    auto* to = static_cast<State*>(states);
    if constexpr (!P::has_index) {
      // A narrow dense matrix: several rows side by side make one wide row, folded at the end.
      if (stride == columns && columns <= folded_columns / 4 && rows >= 64) {
        int64_t side_by_side = folded_columns / columns;
        int64_t width = side_by_side * columns;
        int64_t wide_rows = rows / side_by_side;
        State folded[folded_columns];
        initialise(folded, width);
        wide_columns(from, wide_rows, width, width, folded);
        for (int64_t i = 0; i < width; ++i) P::combine(to[i % columns], folded[i]);
        from += wide_rows * width;
        rows -= wide_rows * side_by_side;
      }
    }
    if constexpr (P::has_index) {
      P::all_columns(from, rows, stride, columns, first_index, to);
    } else {
      wide_columns(from, rows, stride, columns, to);
    }
  }

  static void combine(const void* from, int64_t count, void* into) {
    for (int64_t i = 0; i < count; ++i) {
      P::combine(static_cast<State*>(into)[i], static_cast<const State*>(from)[i]);
    }
  }

  static void finish(const void* states, int64_t count, void* output) {
    for (int64_t i = 0; i < count; ++i) {
      P::finish(static_cast<const State*>(states)[i], static_cast<Output*>(output)[i]);
    }
  }

  static constexpr simd::ReduceKernel kernel{sizeof(State), initialise, rows,  rows_to_one,
                                             columns,       combine,    finish};
};

}  // namespace holdfast::kernels::cpu::HOLDFAST_SIMD_TARGET
