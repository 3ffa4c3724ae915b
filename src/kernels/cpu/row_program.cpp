#include "kernels/cpu/row_program.h"

#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/task_scratch.h"

namespace holdfast::kernels::cpu {
namespace {

using Width = RowWidth;
using Value = RowProgram::Value;
using Step = RowProgram::Step;

size_t padded(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

// A program while one thread runs some of its blocks.
class Run {
 public:
  Run(const RowProgram& program, char* const* addresses)
      : program_(program),
        chains_(simd::chain_kernels()),
        addresses_(addresses),
        full_bytes_(padded(static_cast<size_t>(program.block_rows * program.length) *
                           program.slot_item_bytes) +
                    64),  // a line more: slots of a power of two would share their cache sets
        single_bytes_(padded(static_cast<size_t>(program.block_rows) * 8)),
        scratch_(scratch_bytes()) {
    auto* at = static_cast<char*>(scratch_.get());
    full_slots_ = at;
    single_slots_ = at + full_bytes_ * program.full_slots;
    at = single_slots_ + single_bytes_ * program.single_slots;
    spreads_.reserve(program.values.size());
    for (const Value& value : program.values) {
      spreads_.push_back(at);
      at += padded(static_cast<size_t>(value.spread) * value.item_size);
      if (value.width == Width::scalar && value.spread > 0)
        fill_block(spreads_.back(), addresses_[value.memory], value.item_size, value.spread);
    }
  }

  void block(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    for (const Step& step : program_.steps) {
      switch (step.kind) {
        case Step::Kind::chain:
          for (int64_t row = 0; row < count; ++row) run_chain(step, row);
          break;
        case Step::Kind::full_op:
          for (int64_t row = 0; row < count; ++row) run_op(step, row, program_.length);
          break;
        case Step::Kind::single_op:
          run_op(step, 0, count);
          break;
        case Step::Kind::reduce:
          reduce(step);
          break;
      }
    }
  }

 private:
  size_t scratch_bytes() const {
    size_t bytes = full_bytes_ * program_.full_slots + single_bytes_ * program_.single_slots;
    for (const Value& value : program_.values)
      bytes += padded(static_cast<size_t>(value.spread) * value.item_size);
    return std::max<size_t>(bytes, 64);
  }

  // Of the value's first element in a row of the block.
  char* address(const Value& value, int64_t row) const {
    int64_t item = value.item_size;
    switch (value.width) {
      case Width::full:
        return value.memory >= 0
                   ? addresses_[value.memory] + (first_ + row) * program_.length * item
                   : full_slots_ + full_bytes_ * static_cast<size_t>(value.slot) +
                         row * program_.length * item;
      case Width::single:
        return value.memory >= 0
                   ? addresses_[value.memory] + (first_ + row) * item
                   : single_slots_ + single_bytes_ * static_cast<size_t>(value.slot) + row * item;
      default:
        return addresses_[value.memory];
    }
  }

  // Elements of a row of the block, where an op of `n` elements reads them.
  char* operand(uint16_t index, int64_t row, int64_t n) const {
    const Value& value = program_.values[index];
    if (value.width == Width::scalar) return spreads_[index];
    if (value.width == Width::single && n != count_over_rows) {
      fill_block(spreads_[index], address(value, row), value.item_size, n);
      return spreads_[index];
    }
    return address(value, row);
  }

  void run_op(const Step& step, int64_t row, int64_t n) const {
    const void* in[3];
    int64_t width = step.kind == Step::Kind::single_op ? count_over_rows : n;
    for (int i = 0; i < step.arity; ++i) in[i] = operand(step.operands[i], row, width);
    char* out = address(program_.values[step.result], row);
    if (step.kernel)
      step.kernel(out, in, n);
    else
      step.convert(out, in[0], n);
  }

  void run_chain(const Step& step, int64_t row) const {
    ChainStage stages[RowProgram::max_chain_stages + 1];
    size_t count = 0;
    for (size_t k = step.first; k < step.last; ++k) {
      const RowProgram::Stage& stage = program_.stages[k];
      if (stage.value < 0) {
        stages[count++] = {stage.code, nullptr, 0};
        continue;
      }
      auto index = static_cast<uint16_t>(stage.value);
      const Value& value = program_.values[index];
      bool repeats = value.width == Width::single || value.width == Width::scalar;
      stages[count++] = {stage.code, operand(index, row, chains_.tile),
                         repeats ? 0 : int64_t{value.item_size}};
    }
    stages[count] = {chains_.end, nullptr, 0};
    chains_.run(stages, 0, program_.length);
  }

  void reduce(const Step& step) const {
    constexpr size_t state_bytes = 16;
    alignas(64) char states[RowProgram::max_block_rows * state_bytes];
    step.reduction->initialise(states, count_);
    step.reduction->rows(address(program_.values[step.operands[0]], 0), count_, program_.length,
                         program_.length, 0, states);
    step.reduction->finish(states, count_, address(program_.values[step.result], 0));
  }

  static constexpr int64_t count_over_rows = -1;

  const RowProgram& program_;
  const simd::ChainKernels& chains_;
  char* const* addresses_;
  size_t full_bytes_, single_bytes_;
  TaskScratch scratch_;
  char* full_slots_ = nullptr;
  char* single_slots_ = nullptr;
  std::vector<char*> spreads_;
  int64_t first_ = 0, count_ = 0;
};

}  // namespace

void RowProgram::run(int64_t first_task, int64_t last_task, char* const* addresses) const {
  Run run(*this, addresses);
  for (int64_t task = first_task; task < last_task; ++task) {
    int64_t first = task * block_rows;
    run.block(first, std::min(rows, first + block_rows) - first);
  }
  if (stream) end_stream();
}

}  // namespace holdfast::kernels::cpu
