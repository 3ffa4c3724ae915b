// FusedProgram: what one pass of the fused block engine does, as data. Made by encode/fused.cpp,
// run by any number of threads at once.
//
// A block is a range of elements. For each block: load the inputs that cannot be used where they
// are, run the passes one after the other (a chain of float32 ops, or one op of any type), and
// store the outputs that had to wait.
#pragma once

#include <vector>

#include <holdfast/native_context.h>
#include <holdfast/small_vector.h>

#include "kernels/cpu/chain.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/plan/layout.h"

namespace holdfast::kernels::cpu {

// Where the elements of a value are while the block is worked on.
struct Location {
  enum class Place : uint8_t {
    none,    // nowhere: handed on in registers, or not made yet
    memory,  // an input or output array, dense; of half types only for chains
    block,   // a slot of one block
    tile     // a slot of one tile of a chain, which only the stages of that chain see
  };
  Place place = Place::none;
  uint8_t item_size = 0;
  bool repeats = false;  // a scalar: all elements of the slot are the same
  uint16_t slot = 0;
  Bound memory = {};  // memory only
};

struct FusedProgram {
  // What has to be done to an input before it can be read.
  struct Load {
    enum class Kind : uint8_t { none, scalar, strided, convert };
    Kind kind = Kind::none;
    uint8_t item_size = 0;
    bool fetches = false;  // large and dense: its next block is fetched ahead of time
    uint16_t layout = 0;   // strided only: its index
    Bound memory = {};
    ConvertKernel convert = nullptr;  // widens a half type
  };
  // One op, over the whole block.
  struct Step {
    BlockKernel kernel = nullptr;
    ConvertKernel convert = nullptr;  // astype: instead of `kernel`
    ConvertKernel round = nullptr;    // half types: after the kernel
    uint8_t arity = 0;
    uint8_t lane_bytes = 0;     // of the result
    uint16_t operands[3] = {};  // indices of values
    uint16_t result = 0;        // index of a value
  };
  // One that stores past the cache does so where the memory begins at a line of it.
  struct Stage {
    StageCode code;
    Location operand;
  };
  // Steps or stages [first, last).
  struct Pass {
    bool is_chain;
    uint16_t first, last;
  };
  // An output that is made in a slot: it has to be narrowed, would overwrite an input that is still
  // needed, or is written past the cache.
  struct Store {
    uint16_t value;
    uint8_t item_size;
    Bound memory;
    ConvertKernel convert;
  };

  static constexpr int64_t task_elements = 32768;

  int64_t size = 0;
  int64_t block = 0;
  uint16_t block_slots = 0, tile_slots = 0;
  uint8_t slot_item_bytes = 1;  // of the widest type that is kept in a slot of a block
  bool stream = false;          // outputs larger than the cache: write past it
  const simd::ChainKernels* chains = nullptr;
  SmallVector<Location, 4> values;  // the inputs, then the results
  SmallVector<Load, 3> loads;       // one an input
  SmallVector<Step, 1> steps;
  SmallVector<Stage, 6> stages;
  SmallVector<Pass, 1> passes;
  SmallVector<Store, 1> stores;
  std::vector<CollapsedLayout> layouts;

  // Runs tasks [first_task, last_task), each of task_elements.
  void operator()(const NativeContext& context, int64_t first_task, int64_t last_task) const;
};

}  // namespace holdfast::kernels::cpu
