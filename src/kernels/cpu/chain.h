// Chains: element-wise ops, computed in float32, that hand their values on in registers.
//
// A chain is an array of stages that ends with `end`. It is run tile by tile: a stage gets a tile
// of some vector registers, works on it together with its operand in memory, and jumps to the next
// stage, so that between two stages nothing is stored. The same code runs whatever chain a stage
// stands in: the result of an element depends on the values of its operands alone.
//
// Stages are data: this header says nothing about vector registers, which are the business of the
// instruction set's own code (simd/chain_stages.h).
#pragma once

#include <cstdint>

namespace holdfast::kernels::cpu {

// The code of a stage, for a tile and for a single register at the end of a range.
struct StageCode {
  void (*tile)();
  void (*rest)();
  explicit operator bool() const { return tile != nullptr; }
};

struct ChainStage {
  StageCode code;
  // Where element i of the operand (load, ops) or of the result (store) is: address + i * step.
  // A step of 0 means that every tile uses the same memory, a whole tile of it: a scalar, filled in
  // before, or a value that one stage stores for another.
  char* address;
  int64_t step;
};

namespace simd {

// How the elements of an array become floats and back.
struct ChainEncoding {
  StageCode load, store;
  // For results that do not fit the caches, aligned to 64 bytes; needs end_stream() after the last
  // one.
  StageCode store_past_cache;
  StageCode round;  // half types: the register as if it had been stored and loaded
};

struct ChainKernels {
  // Of a tile, in elements.
  int64_t tile;
  ChainEncoding float32, bfloat16;
  ChainEncoding float16;  // empty where the processor has no conversion
  // Fetches what `load` will want some tiles later.
  StageCode fetch;
  StageCode divide_by_scalar;  // the bits of Divide
  StageCode end;
  // One a row of elementwise.def: register = op(register) or op(register, operand); none where the
  // op has no form for registers.
  const StageCode* ops;
  // The same for operands and results of half types, less exact than floats need; none where `ops`
  // serves them, too.
  const StageCode* half_ops;
  // register = op(operand, register): the same bits as the op with its operands in that order. Only
  // for some of the binary ops.
  const StageCode* exchanged_ops;
  // Runs the chain over elements [begin, end).
  void (*run)(const ChainStage* stages, int64_t begin, int64_t end);
};

// Of the instruction set in use.
const ChainKernels& chain_kernels();

}  // namespace simd
}  // namespace holdfast::kernels::cpu
