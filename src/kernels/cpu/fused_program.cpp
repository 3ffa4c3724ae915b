#include "kernels/cpu/fused_program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/of_this_thread.h"
#include "kernels/cpu/copy.h"

namespace holdfast::kernels::cpu {
namespace {

// How far ahead of a block of single ops inputs are fetched, in elements.
constexpr int64_t fetch_ahead = 768;
constexpr size_t max_stages = 192;

using Place = Location::Place;

// Slots of the calling thread.
char* scratch(size_t bytes) {
  struct Memory {
    char* bytes = nullptr;
    size_t size = 0;
    Memory() = default;
    ~Memory() { std::free(bytes); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
  };
  Memory& memory = of_this_thread<Memory>();
  if (memory.size < bytes) {
    std::free(memory.bytes);
    memory.size = 0;
    memory.bytes = static_cast<char*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
    if (!memory.bytes) throw std::bad_alloc();
    memory.size = bytes;
  }
  return memory.bytes;
}

// The code of a stage where the memory that it may store to does not begin at a line of the cache.
StageCode unaligned(const simd::ChainKernels& chains, StageCode code) {
  for (const simd::ChainEncoding* encoding : {&chains.float32, &chains.bfloat16, &chains.float16}) {
    if (code.tile == encoding->store_past_cache.tile) return encoding->store;
  }
  return code;
}

// A program while one thread runs a range of it.
class Run {
 public:
  Run(const FusedProgram& program, const NativeContext& context, int64_t begin, int64_t end)
      : program_(program), context_(context), end_(end) {
    int64_t longest = std::min(program.block, end - begin);
    if (program.block_slots != 0) {
      // A line more than a block: blocks of a power of two would share their cache sets.
      slot_bytes_ =
          ((static_cast<size_t>(longest) * program.slot_item_bytes + 63) & ~size_t{63}) + 64;
    }
    tile_bytes_ = static_cast<size_t>(program.chains->tile) * sizeof(float);
    // Behind the slots of blocks one for conversions, then the slots of tiles.
    slots_ = scratch(slot_bytes_ * (program.block_slots + 1u) + tile_bytes_ * program.tile_slots);
    spare_ = slots_ + slot_bytes_ * program.block_slots;
    tiles_ = spare_ + slot_bytes_;
    fill_scalars(longest);
    for (int64_t start = begin; start < end; start += program.block) {
      run_block(start, std::min(program.block, end - start));
    }
    if (program.stream) end_stream();
  }

 private:
  char* slot_address(const Location& value) const {
    return value.place == Place::tile ? tiles_ + tile_bytes_ * value.slot
                                      : slots_ + slot_bytes_ * value.slot;
  }
  // Of the block's first element.
  char* address_of(const Location& value, int64_t start) const {
    return value.place == Place::memory ? context_.data(value.memory) + start * value.item_size
                                        : slot_address(value);
  }

  void fill_scalars(int64_t longest) {
    for (size_t i = 0; i < program_.loads.size(); ++i) {
      const FusedProgram::Load& load = program_.loads[i];
      if (load.kind != FusedProgram::Load::Kind::scalar) continue;
      const Location& value = program_.values[i];
      alignas(8) char element[8];
      const char* from = context_.data(load.memory);
      std::memcpy(element, from, load.item_size);
      if (load.convert) load.convert(element, from, 1);
      // No more than a tile for chains, which read it again and again.
      int64_t count =
          value.place == Place::tile ? std::min(longest, program_.chains->tile) : longest;
      fill_block(slot_address(value), element, value.item_size, count);
    }
  }

  void run_block(int64_t start, int64_t n) {
    for (size_t i = 0; i < program_.loads.size(); ++i) {
      load(program_.loads[i], program_.values[i], start, n);
    }
    for (const FusedProgram::Pass& pass : program_.passes) {
      if (pass.is_chain) {
        run_chain(pass, start, n);
        continue;
      }
      for (size_t k = pass.first; k < pass.last; ++k) {
        run_step(program_.steps[k], start, n);
        fetch_part(start + fetch_ahead, std::min(n, end_ - start - fetch_ahead), k);
      }
    }
    for (const FusedProgram::Store& to : program_.stores) store(to, start, n);
  }

  void load(const FusedProgram::Load& load, const Location& value, int64_t start, int64_t n) {
    using Kind = FusedProgram::Load::Kind;
    if (load.kind == Kind::none || load.kind == Kind::scalar) return;
    char* target = slot_address(value);
    const char* from = context_.data(load.memory);
    if (load.kind == Kind::convert) {
      load.convert(target, from + start * load.item_size, n);
      return;
    }
    gather_range(from, program_.layouts[load.layout], load.item_size, start, start + n,
                 load.convert ? spare_ : target);
    if (load.convert) load.convert(target, spare_, n);
  }

  void run_step(const FusedProgram::Step& step, int64_t start, int64_t n) {
    void* result = address_of(program_.values[step.result], start);
    const void* in[3];
    for (int i = 0; i < step.arity; ++i)
      in[i] = address_of(program_.values[step.operands[i]], start);
    if (step.kernel) {
      step.kernel(result, in, n);
    } else if (step.convert) {
      step.convert(result, in[0], n);
    } else if (result != in[0]) {
      std::memcpy(result, in[0], static_cast<size_t>(n) * step.lane_bytes);
    }
    if (step.round) step.round(result, result, n);
  }

  void run_chain(const FusedProgram::Pass& pass, int64_t start, int64_t n) {
    ChainStage stages[max_stages];
    size_t count = 0;
    for (size_t k = pass.first; k < pass.last; ++k) {
      const FusedProgram::Stage& stage = program_.stages[k];
      const Location& operand = stage.operand;
      bool repeats = operand.repeats || operand.place == Place::tile;
      int64_t step = repeats ? 0 : operand.item_size;
      StageCode code = stage.code;
      char* address = address_of(operand, 0);
      // Stages count from the first element of the array, slots of blocks from that of the block.
      if (operand.place == Place::block) {
        address = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(address) -
                                          static_cast<uintptr_t>(start * step));
      } else if (program_.stream && reinterpret_cast<uintptr_t>(address) % 64 != 0) {
        code = unaligned(*program_.chains, code);
      }
      stages[count++] = {code, address, step};
    }
    stages[count] = {program_.chains->end, nullptr, 0};
    program_.chains->run(stages, start, start + n);
  }

  // The share of step k of fetching elements [start, start + n) of the inputs: a little with each
  // step, so that memory is read all the time and not only by the first step of a block.
  void fetch_part(int64_t start, int64_t n, size_t k) const {
    if (n <= 0) return;
    for (const FusedProgram::Load& input : program_.loads) {
      if (!input.fetches) continue;
      int64_t bytes = n * input.item_size;
      int64_t share = (bytes / static_cast<int64_t>(program_.steps.size()) + 63) & ~int64_t{63};
      int64_t from = static_cast<int64_t>(k) * share, to = std::min(bytes, from + share);
      const char* address = context_.data(input.memory) + start * input.item_size;
      for (int64_t i = from; i < to; i += 64) __builtin_prefetch(address + i);
    }
  }

  void store(const FusedProgram::Store& to, int64_t start, int64_t n) {
    char* target = context_.data(to.memory) + start * to.item_size;
    const char* source = slot_address(program_.values[to.value]);
    size_t bytes = static_cast<size_t>(n) * to.item_size;
    if (to.convert) {
      to.convert(program_.stream ? spare_ : target, source, n);
      if (program_.stream) stream_block(target, spare_, bytes);
    } else if (program_.stream) {
      stream_block(target, source, bytes);
    } else {
      std::memcpy(target, source, bytes);
    }
  }

  const FusedProgram& program_;
  const NativeContext& context_;
  int64_t end_;
  size_t slot_bytes_ = 0, tile_bytes_ = 0;
  char* slots_ = nullptr;
  char* spare_ = nullptr;
  char* tiles_ = nullptr;
};

}  // namespace

void FusedProgram::operator()(const NativeContext& context, int64_t first_task,
                              int64_t last_task) const {
  Run(*this, context, first_task * task_elements, std::min(size, last_task * task_elements));
}

}  // namespace holdfast::kernels::cpu
