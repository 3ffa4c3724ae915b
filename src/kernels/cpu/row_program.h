// RowProgram: ops that work on the rows of matrices by themselves, a block of rows at a time.
//
// Element-wise ops and reductions along the rows follow each other while the block is in the cache:
// what one hands to the next never gets to memory. Each op runs the code that it has outside, so
// that the bits are the same: chains (chain.h) and block kernels (elementwise.h) over one row,
// reductions over the rows of the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/chain.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd/reduce_kernels.h"
#include "kernels/plan/rows.h"

namespace holdfast::kernels::cpu {

struct RowProgram {
  struct Value {
    RowWidth width = RowWidth::full;
    uint8_t item_size = 0;
    int16_t memory = -1;  // its place among the addresses that `run` gets; -1: in a slot
    int16_t slot = -1;    // of its width; -1: handed on in registers
    int64_t spread = 0;   // single, scalar: how many copies of an element its readers want
  };
  struct Step {
    enum class Kind : uint8_t {
      chain,      // stages [first, last), over one row after the other
      full_op,    // one op, over one row after the other
      single_op,  // one op, over one element a row
      reduce      // a full value to a single one
    };
    Kind kind;
    uint8_t arity = 0;
    uint16_t operands[3] = {};
    uint16_t result = 0;
    uint16_t first = 0, last = 0;
    BlockKernel kernel = nullptr;
    ConvertKernel convert = nullptr;  // instead of `kernel`
    const simd::ReduceKernel* reduction = nullptr;
  };
  struct Stage {
    StageCode code;
    int value = -1;  // that it reads or writes; -1: none
  };
  static constexpr int64_t max_block_rows = 64;
  static constexpr size_t max_chain_stages = 190;

  int64_t rows = 0, length = 0, block_rows = 1;
  bool stream = false;  // results larger than the cache: some stages write past it
  uint16_t full_slots = 0, single_slots = 0;
  uint8_t slot_item_bytes = 1;
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Stage> stages;

  int64_t tasks() const { return (rows + block_rows - 1) / block_rows; }
  // Runs blocks [first_task, last_task). Memory is dense.
  void run(int64_t first_task, int64_t last_task, char* const* addresses) const;
};

}  // namespace holdfast::kernels::cpu
