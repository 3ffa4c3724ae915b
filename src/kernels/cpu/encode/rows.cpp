// Rows of matrices: a group's ops as one program, which takes a block of rows through all of them
// while they are in the cache.
#include <algorithm>
#include <vector>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/row_program.h"
#include "kernels/plan/backend_cache.h"
#include "kernels/plan/elementwise.h"
#include "kernels/plan/rows.h"
#include "kernels/staging.h"

namespace holdfast::kernels::cpu {
namespace {

// What the slots of a block should fit into: part of the second-level cache.
constexpr int64_t row_block_bytes = 128 * 1024;
// An op is at most three stages: load, op, store.
constexpr size_t max_chain_ops = RowProgram::max_chain_stages / 3;

// Makes the program of a group.
class RowPlanner {
  using Width = RowWidth;
  using Step = RowProgram::Step;

 public:
  explicit RowPlanner(const RowGroup& group) : group_(group), chains_(simd::chain_kernels()) {
    program_.rows = group.rows;
    program_.length = group.length;
  }

  RowProgram make() {
    for (const RowValue& value : group_.values) add_value(value);
    for (uint16_t i = 0; i < group_.inputs(); ++i) program_.values[i].memory = next_memory_++;
    for (const RowStep& step : group_.steps) add_op(step);
    for (uint16_t output : group_.outputs) {
      program_.values[output].memory = next_memory_++;
      is_output_[output] = true;
    }
    find_registers();
    choose_stream();
    for (size_t k = 0; k < ops_.size(); ++k) plan(k);
    give_slots();
    choose_block();
    spread_scalars();
    return std::move(program_);
  }

 private:
  // One step, over indices of values.
  struct Op {
    Step::Kind kind;
    int16_t code;  // of the element-wise table
    std::vector<uint16_t> operands;
    uint16_t result;
    ReduceOp reduction;
    bool is_chained = false;
    bool continues_chain = false;
    int in_register = -1;  // the operand that the op before has left there
  };

  void add_value(const RowValue& from) {
    RowProgram::Value value;
    value.width = from.width;
    value.item_size = static_cast<uint8_t>(from.dtype.size());
    program_.values.push_back(value);
    dtypes_.push_back(from.dtype);
    is_stored_.push_back(false);
    is_output_.push_back(false);
  }

  void add_op(const RowStep& step) {
    auto result = static_cast<uint16_t>(group_.inputs() + ops_.size());
    bool is_full = group_.values[result].width == Width::full;
    Step::Kind kind = step.op == RowStep::reduces ? Step::Kind::reduce
                      : is_full                   ? Step::Kind::full_op
                                                  : Step::Kind::single_op;
    Op op{kind, step.op, {step.operands, step.operands + step.arity}, result, step.reduction};
    op.is_chained = is_chained(op);
    ops_.push_back(std::move(op));
  }

  bool is_chained(const Op& op) const {
    if (op.kind != Step::Kind::full_op || op.code == conversion_code || op.operands.size() > 2 ||
        !chains_.ops[op.code] || dtypes_[op.result] != float32) {
      return false;
    }
    return std::all_of(op.operands.begin(), op.operands.end(),
                       [&](uint16_t operand) { return dtypes_[operand] == float32; });
  }

  // Which operands are forwarded in registers, and what must be stored for others.
  void find_registers() {
    size_t in_chain = 0;
    for (size_t k = 0; k < ops_.size(); ++k) {
      Op& op = ops_[k];
      op.continues_chain =
          k > 0 && op.is_chained && ops_[k - 1].is_chained && in_chain < max_chain_ops;
      in_chain = op.continues_chain ? in_chain + 1 : 1;
      if (op.continues_chain) {
        uint16_t before = ops_[k - 1].result;
        if (op.operands[0] == before)
          op.in_register = 0;
        else if (op.operands.size() == 2 && op.operands[1] == before &&
                 chains_.exchanged_ops[op.code])
          op.in_register = 1;
      }
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (static_cast<int>(i) != op.in_register) is_stored_[op.operands[i]] = true;
      }
      if (!op.is_chained) is_stored_[op.result] = true;
    }
  }

  void choose_stream() {
    int64_t largest = 0;
    for (size_t i = 0; i < program_.values.size(); ++i) {
      if (is_output_[i] && program_.values[i].width == Width::full)
        largest = program_.rows * program_.length * program_.values[i].item_size;
    }
    // A row begins at a line of the cache.
    program_.stream = largest > static_cast<int64_t>(stream_threshold()) &&
                      program_.length * int64_t{sizeof(float)} % 64 == 0;
  }

  void plan(size_t k) {
    const Op& op = ops_[k];
    if (op.is_chained) {
      plan_chained(k);
      return;
    }
    Step step{op.kind};
    step.arity = static_cast<uint8_t>(op.operands.size());
    std::copy(op.operands.begin(), op.operands.end(), step.operands);
    step.result = op.result;
    Lane lane = lane_of(dtypes_[op.operands.back()]);
    if (op.kind == Step::Kind::reduce) {
      step.reduction = &reduce_kernel(op.reduction, dtypes_[op.operands[0]], dtypes_[op.result]);
    } else if (op.code == conversion_code) {
      step.convert = convert_kernel(dtypes_[op.operands[0]], dtypes_[op.result]);
    } else {
      step.kernel = elementwise_kernel(static_cast<ElementwiseOp>(op.code), lane);
    }
    for (uint16_t operand : op.operands) {
      if (op.kind == Step::Kind::full_op) want_spread(operand, program_.length);
      if (op.kind == Step::Kind::single_op) want_spread(operand, RowProgram::max_block_rows);
    }
    program_.steps.push_back(step);
    note_use(op);
  }

  void plan_chained(size_t k) {
    const Op& op = ops_[k];
    if (!op.continues_chain) {
      Step step{Step::Kind::chain};
      step.first = static_cast<uint16_t>(program_.stages.size());
      program_.steps.push_back(step);
    }
    auto stage = [&](StageCode code, int value) {
      program_.stages.push_back({code, value});
      if (value >= 0) want_spread(static_cast<uint16_t>(value), chains_.tile);
    };
    if (op.in_register < 0) stage(chains_.float32.load, op.operands[0]);
    if (op.operands.size() == 1)
      stage(chains_.ops[op.code], -1);
    else if (op.in_register == 1)
      stage(chains_.exchanged_ops[op.code], op.operands[0]);
    else
      stage(chains_.ops[op.code], op.operands[1]);
    bool is_output = is_output_[op.result], is_read = is_stored_[op.result];
    if (is_output || is_read) {
      bool past_cache = is_output && !is_read && program_.stream;
      stage(past_cache ? chains_.float32.store_past_cache : chains_.float32.store, op.result);
    }
    program_.steps.back().last = static_cast<uint16_t>(program_.stages.size());
    note_use(op);
  }

  void want_spread(uint16_t index, int64_t count) {
    RowProgram::Value& value = program_.values[index];
    if (value.width == Width::single || value.width == Width::scalar)
      value.spread = std::max(value.spread, count);
  }

  // The step that reads or writes a value last.
  void note_use(const Op& op) {
    last_use_.resize(program_.values.size(), 0);
    size_t step = program_.steps.size() - 1;
    for (uint16_t operand : op.operands) last_use_[operand] = step;
    last_use_[op.result] = step;
    made_in_.resize(program_.values.size(), 0);
    made_in_[op.result] = step;
  }

  // Values that live in slots get one that nothing needs any more.
  void give_slots() {
    std::vector<int16_t> free_full, free_single;
    for (size_t step = 0; step < program_.steps.size(); ++step) {
      for_each_slotted([&](size_t i, RowProgram::Value& value) {
        if (made_in_[i] != step) return;
        bool is_full = value.width == Width::full;
        std::vector<int16_t>& free = is_full ? free_full : free_single;
        uint16_t& count = is_full ? program_.full_slots : program_.single_slots;
        if (free.empty()) free.push_back(static_cast<int16_t>(count++));
        value.slot = free.back();
        free.pop_back();
        if (is_full) program_.slot_item_bytes = std::max(program_.slot_item_bytes, value.item_size);
      });
      for_each_slotted([&](size_t i, RowProgram::Value& value) {
        if (last_use_[i] == step)
          (value.width == Width::full ? free_full : free_single).push_back(value.slot);
      });
    }
  }

  template <class Use>
  void for_each_slotted(Use&& use) {
    for (size_t i = 0; i < program_.values.size(); ++i) {
      if (program_.values[i].memory < 0 && is_stored_[i]) use(i, program_.values[i]);
    }
  }

  void choose_block() {
    int64_t row_bytes =
        program_.length * program_.slot_item_bytes * std::max<int64_t>(1, program_.full_slots);
    // Enough blocks to share between threads, whatever their size.
    int64_t most = std::clamp<int64_t>(program_.rows / 16, 1, RowProgram::max_block_rows);
    program_.block_rows = std::clamp<int64_t>(row_block_bytes / row_bytes, 1, most);
  }

  // Elements are repeated as often as the longest reader wants.
  void spread_scalars() {
    for (RowProgram::Value& value : program_.values) {
      if (value.spread > 0) value.spread = std::max(value.spread, chains_.tile);
    }
  }

  const RowGroup& group_;
  const simd::ChainKernels& chains_;
  RowProgram program_;
  // By value of the program.
  std::vector<Dtype> dtypes_;
  std::vector<bool> is_stored_, is_output_;
  std::vector<size_t> last_use_, made_in_;
  std::vector<Op> ops_;
  int16_t next_memory_ = 0;
};

}  // namespace

void CpuBackend::rows(Encoder& encoder, const RowGroup& group, const std::vector<array>& inputs,
                      std::vector<array>& outputs) {
  const auto& program = group.cache->get(
      [&] { return std::make_shared<const RowProgram>(RowPlanner(group).make()); });
  std::vector<array> dense;
  for (const array& input : inputs) dense.push_back(make_dense(encoder, input));
  for (array& output : outputs) encoder.allocate(output);
  SmallVector<Bound, 12> memory;
  int64_t work = program->rows * program->length * 4 * static_cast<int64_t>(program->steps.size());
  for (const array& input : dense) {
    memory.push_back(encoder.input(input));
    work += static_cast<int64_t>(input.nbytes());
  }
  for (array& output : outputs) {
    memory.push_back(encoder.output(output));
    work += static_cast<int64_t>(output.nbytes());
  }
  encoder.native(encoder.op(), program->tasks(), work,
                 [program, memory = std::move(memory)](const NativeContext& context, int64_t begin,
                                                       int64_t end) {
                   SmallVector<char*, 12> addresses;
                   for (Bound bound : memory) addresses.push_back(context.data(bound));
                   program->run(begin, end, addresses.data());
                 });
}

}  // namespace holdfast::kernels::cpu
