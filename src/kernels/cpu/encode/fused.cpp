// The fused block engine: a group of element-wise ops as one pass over cache-sized blocks.
//
// Runs of ops that compute in float32 are chains: a few registers of elements go through all of
// them (chain.h). For the other ops a block at a time is loaded, worked on in its compute type, and
// stored. Operands that lie dense in memory are used where they are. Half types are rounded after
// each op.
#include <algorithm>
#include <stdexcept>

#include "base/text.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fused_program.h"
#include "kernels/cpu/generated_kernel.h"
#include "kernels/fused_layout.h"
#include "kernels/plan/backend_cache.h"
#include "kernels/plan/layout.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

// What the blocks of a pass should fit into: the first-level cache, less what the kernels need.
constexpr size_t cache_bytes = 24 * 1024;

using Place = Location::Place;
using Load = FusedProgram::Load;

class FusedPlanner {
 public:
  FusedPlanner(Encoder& encoder, const FusedGroup& group)
      : encoder_(encoder), group_(group), walk_(group), chains_(simd::chain_kernels()) {}

  void encode() {
    size_t size = 1;
    for (ShapeElem dim : *group_.shape) size *= static_cast<size_t>(dim);
    find_last_uses();
    allocate_outputs();
    if (size == 0) return;
    program_.size = static_cast<int64_t>(size);
    program_.chains = &chains_;
    int64_t work = 0;
    size_t largest_output = 0;
    for (const array& input : group_.inputs) {
      work += is_scalar(input) ? 0 : static_cast<int64_t>(input.itemsize() * size);
    }
    for (FusedStep& step : group_.steps) {
      work += static_cast<int64_t>(size) * 4;
      if (!step.output) continue;
      work += static_cast<int64_t>(step.output->nbytes());
      largest_output = std::max(largest_output, step.output->nbytes());
    }
    program_.stream = largest_output > stream_threshold();
    fetches_ = work > static_cast<int64_t>(stream_threshold());
    program_.values.reserve(group_.inputs.size() + group_.steps.size());
    program_.stages.reserve(group_.steps.size() + 5);  // most steps are one stage
    find_chains();
    put_in_order();
    bind();
    plan_inputs();
    plan_steps();
    program_.block = block_size();
    int64_t tasks = divide_up(program_.size, FusedProgram::task_elements);
    encoder_.native(encoder_.op(), tasks, work, std::move(program_));
  }

 private:
  // How a step takes part in a chain, and who needs its result outside the registers.
  struct ChainRole {
    static constexpr int8_t nothing = -1;
    uint16_t chain = 0;            // consecutive steps of one chain share it; 0: none
    int8_t in_register = nothing;  // the operand that the step before has left in registers
    bool needed_in_chain = false;  // by a later stage of the same chain
    bool needed_outside = false;   // by another pass
  };

  // The last step that reads an input or a result.
  void find_last_uses() {
    last_input_use_.resize(group_.inputs.size(), 0);
    last_step_use_.resize(group_.steps.size(), 0);
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      const FusedStep& step = group_.steps[k];
      for (int i = 0; i < step.arity; ++i) {
        uint16_t value = step.values[i];
        if (value >= FusedStep::result)
          last_step_use_[value - FusedStep::result] = static_cast<uint16_t>(k);
        else
          last_input_use_[value] = static_cast<uint16_t>(k);
      }
    }
  }

  void allocate_outputs() {
    uint32_t donatable = group_.donatable;
    donor_.resize(group_.steps.size(), -1);
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      array* output = group_.steps[k].output;
      if (output)
        donor_[k] =
            walk_.allocate(encoder_, group_, *output, donatable, [](size_t) { return true; });
    }
  }

  // The encoding that a chain reads and writes a dtype with; null where chains do not know it.
  const simd::ChainEncoding* encoding_of(Dtype::Val dtype) const {
    switch (dtype) {
      case Dtype::Val::float32:
        return &chains_.float32;
      case Dtype::Val::bfloat16:
        return &chains_.bfloat16;
      case Dtype::Val::float16:
        return chains_.float16.load ? &chains_.float16 : nullptr;
      default:
        return nullptr;
    }
  }

  bool is_chained(const FusedStep& step) const {
    return encoding_of(step.dtype) && encoding_of(step.operand_dtype) &&
           (step.op == conversion_code || chains_.ops[step.op]);
  }

  void find_chains() {
    roles_.resize(group_.steps.size(), ChainRole{});
    read_alone_.resize(group_.inputs.size(), 0);
    uint16_t chain = 0;
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      const FusedStep& step = group_.steps[k];
      ChainRole& role = roles_[k];
      if (is_chained(step)) {
        bool goes_on = k > 0 && roles_[k - 1].chain != 0;
        role.chain = goes_on ? chain : ++chain;
        if (goes_on) role.in_register = operand_in_register(step, k);
      }
      for (int i = 0; i < step.arity; ++i) {
        uint16_t value = step.values[i];
        if (value < FusedStep::result) {
          read_alone_[value] |= role.chain == 0;
        } else if (role.in_register != i) {
          ChainRole& producer = roles_[value - FusedStep::result];
          bool same_chain = role.chain != 0 && producer.chain == role.chain;
          (same_chain ? producer.needed_in_chain : producer.needed_outside) = true;
        }
      }
    }
  }

  int8_t operand_in_register(const FusedStep& step, size_t k) const {
    auto before = static_cast<uint16_t>(FusedStep::result + k - 1);
    if (step.values[0] == before) return 0;
    bool exchanged = step.arity == 2 && step.values[1] == before && chains_.exchanged_ops[step.op];
    return exchanged ? 1 : ChainRole::nothing;
  }

  Location block_slot(size_t lane_bytes) {
    program_.slot_item_bytes = std::max(program_.slot_item_bytes, static_cast<uint8_t>(lane_bytes));
    Location location{Place::block, static_cast<uint8_t>(lane_bytes)};
    if (free_blocks_.empty()) {
      location.slot = program_.block_slots++;
    } else {
      location.slot = free_blocks_.back();
      free_blocks_.pop_back();
    }
    return location;
  }

  Location tile_slot() {
    Location location{Place::tile, sizeof(float)};
    if (free_tiles_.empty()) {
      location.slot = program_.tile_slots++;
    } else {
      location.slot = free_tiles_.back();
      free_tiles_.pop_back();
    }
    return location;
  }

  // Finds the layouts of inputs that are strided, and copies those that are read across their rows:
  // by commands of their own, so before anything is bound to the pass.
  void put_in_order() {
    for (const array& a : group_.inputs) {
      inputs_.push_back(&a);
      if (is_scalar(a) || walk_.is_in_order(a, *group_.shape)) continue;
      Strides strides = broadcast_strides(a.shape(), a.strides(), *group_.shape);
      CollapsedLayout& layout =
          program_.layouts.emplace_back(collapse(span_of(*group_.shape), span_of(strides)));
      if (!is_read_across(a, layout)) continue;
      layout = {program_.size, {program_.size}, {1}};
      copies_.reserve(group_.inputs.size());  // inputs_ points into it
      copies_.push_back(make_dense(encoder_, a));
      inputs_.back() = &copies_.back();
    }
  }

  void bind() {
    for (const array* input : inputs_) bound_inputs_.push_back(encoder_.input(*input));
    for (FusedStep& step : group_.steps) {
      bound_outputs_.push_back(step.output ? encoder_.output(*step.output) : Bound{});
    }
  }

  void plan_inputs() {
    uint16_t layouts = 0;
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      const array& a = group_.inputs[i];
      size_t lane_bytes = lane_size(lane_of(a.dtype()));
      Load load;
      load.memory = bound_inputs_[i];
      load.item_size = static_cast<uint8_t>(a.itemsize());
      load.convert = load_kernel(a.dtype());
      Location location;
      if (is_scalar(a)) {
        load.kind = Load::Kind::scalar;
        location = read_alone_[i] ? block_slot(lane_bytes) : tile_slot();
        location.repeats = true;
      } else if (walk_.is_in_order(a, *group_.shape)) {
        load.fetches = fetches_;
        if (load.convert && (!encoding_of(a.dtype()) || read_alone_[i])) {
          load.kind = Load::Kind::convert;
          location = block_slot(lane_bytes);
        } else {
          location = memory_of_input(i);
        }
      } else {
        load.kind = Load::Kind::strided;
        location = block_slot(lane_bytes);
        load.layout = layouts++;
      }
      program_.loads.push_back(load);
      program_.values.push_back(location);
    }
  }

  void plan_steps() {
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      program_.values.push_back(Location{});
      if (roles_[k].chain != 0)
        plan_chained(k);
      else
        plan_step(k);
      for (uint16_t slot : free_after_) free_blocks_.push_back(slot);
      free_after_.clear();
    }
  }

  // Writing the result where it belongs at once would overwrite an input that is still needed.
  bool overwrites_input(size_t k) const {
    return donor_[k] >= 0 && last_input_use_[static_cast<size_t>(donor_[k])] > k;
  }

  uint16_t index_of(uint16_t value) const {
    return value >= FusedStep::result
               ? static_cast<uint16_t>(group_.inputs.size() + value - FusedStep::result)
               : value;
  }
  Location& result_of(size_t k) { return program_.values[group_.inputs.size() + k]; }

  Location memory_of_input(size_t i) const {
    return {Place::memory, static_cast<uint8_t>(group_.inputs[i].itemsize()), false, 0,
            bound_inputs_[i]};
  }
  Location memory_of_output(size_t k) const {
    return {Place::memory, static_cast<uint8_t>(group_.steps[k].output->itemsize()), false, 0,
            bound_outputs_[k]};
  }

  void store_after_block(size_t k, ConvertKernel convert) {
    Location memory = memory_of_output(k);
    program_.stores.push_back({static_cast<uint16_t>(group_.inputs.size() + k), memory.item_size,
                               memory.memory, convert});
  }

  // --- a step by itself ---

  void plan_step(size_t k) {
    const FusedStep& from = group_.steps[k];
    FusedProgram::Step step;
    step.arity = from.arity;
    step.lane_bytes = static_cast<uint8_t>(lane_size(lane_of(from.dtype)));
    for (int i = 0; i < from.arity; ++i) step.operands[i] = index_of(from.values[i]);
    step.result = static_cast<uint16_t>(group_.inputs.size() + k);
    choose_kernels(from, step);
    ConvertKernel convert = from.output ? store_kernel(from.dtype) : nullptr;
    // Straight to memory, unless it must be narrowed or has to wait.
    bool direct = from.output && !convert && !overwrites_input(k) && !program_.stream;
    free_dying_slots(k);
    result_of(k) = direct ? memory_of_output(k) : block_slot(step.lane_bytes);
    if (from.output && !direct) store_after_block(k, convert);
    auto at = static_cast<uint16_t>(program_.steps.size());
    program_.steps.push_back(step);
    if (program_.passes.empty() || program_.passes.back().is_chain)
      program_.passes.push_back({false, at, at});
    program_.passes.back().last = static_cast<uint16_t>(at + 1);
  }

  void choose_kernels(const FusedStep& from, FusedProgram::Step& step) {
    Lane operand = lane_of(from.operand_dtype);
    Lane result = lane_of(from.dtype);
    step.round = round_kernel(from.dtype);
    if (from.op != conversion_code) {
      auto op = static_cast<ElementwiseOp>(from.op);
      step.kernel = elementwise_kernel(op, operand);
      if (!step.kernel) {
        throw std::invalid_argument(
            text("[", elementwise_name(op), "] does not take ", dtype_name(from.operand_dtype)));
      }
    } else if (operand != result) {  // half types to float32 need nothing: the value is exact
      step.convert = lane_convert_kernel(operand, result);
    }
  }

  // --- a step of a chain ---

  void add_stage(StageCode code, const Location& operand) {
    program_.stages.push_back({code, operand});
    program_.passes.back().last = static_cast<uint16_t>(program_.stages.size());
  }

  void plan_chained(size_t k) {
    const FusedStep& step = group_.steps[k];
    const ChainRole& role = roles_[k];
    if (k == 0 || roles_[k - 1].chain != role.chain) begin_chain(k);
    auto operand = [&](int i) -> const Location& {
      return program_.values[index_of(step.values[i])];
    };
    if (role.in_register == ChainRole::nothing) load_operand(step.values[0]);
    if (step.op == conversion_code)
      ;  // the value is in registers, and is rounded below
    else if (step.arity == 1)
      add_stage(unary_code(step), Location{});
    else if (role.in_register == 1)
      add_stage(chains_.exchanged_ops[step.op], operand(0));
    else if (divides_by_scalar(step))
      add_stage(chains_.divide_by_scalar, operand(1));
    else
      add_stage(chains_.ops[step.op], operand(1));
    StageCode round = encoding_of(step.dtype)->round;
    if (round && is_read(k)) add_stage(round, Location{});
    free_dying_slots(k);
    store_result(k);
  }

  StageCode unary_code(const FusedStep& step) const {
    bool is_half = encoding_of(step.dtype)->round && step.operand_dtype == step.dtype;
    StageCode half = is_half ? chains_.half_ops[step.op] : StageCode{};
    return half ? half : chains_.ops[step.op];
  }

  // Does another step of the group read the result? Else it is only stored, and rounded with that.
  bool is_read(size_t k) const {
    return roles_[k].needed_in_chain || roles_[k].needed_outside ||
           (k + 1 < roles_.size() && roles_[k + 1].in_register != ChainRole::nothing);
  }

  void load_operand(uint16_t value) {
    const Location& location = program_.values[index_of(value)];
    add_stage(
        is_encoded(value) ? encoding_of(group_.inputs[value].dtype())->load : chains_.float32.load,
        location);
  }

  // Does the value lie in memory as a half type?
  bool is_encoded(uint16_t value) const {
    const Location& location = program_.values[index_of(value)];
    return value < FusedStep::result && location.place == Place::memory &&
           location.item_size != sizeof(float);
  }

  void begin_chain(size_t k) {
    auto at = static_cast<uint16_t>(program_.stages.size());
    program_.passes.push_back({true, at, at});
    for (uint16_t value : decoded_) program_.values[value] = memory_of_input(value);
    decoded_.clear();
    for (uint16_t chain = roles_[k].chain; k < roles_.size() && roles_[k].chain == chain; ++k) {
      const FusedStep& step = group_.steps[k];
      for (int i = 0; i < step.arity; ++i) {
        fetch_in_chain(step.values[i]);
        if (i > 0 || roles_[k].in_register != ChainRole::nothing) decode_in_chain(step.values[i]);
      }
    }
  }

  // The first chain that reads a large input fetches it ahead of time.
  void fetch_in_chain(uint16_t value) {
    if (value >= FusedStep::result || !program_.loads[value].fetches ||
        program_.values[value].place != Place::memory) {
      return;
    }
    add_stage(chains_.fetch, program_.values[value]);
    program_.loads[value].fetches = false;
  }

  // Ops read floats: an input of a half type that is not loaded but read by an op, beside what is
  // in registers, is made floats at the beginning of the chain.
  void decode_in_chain(uint16_t value) {
    if (!is_encoded(value)) return;
    load_operand(value);
    Location floats = tile_slot();
    add_stage(chains_.float32.store, floats);
    program_.values[value] = floats;
    decoded_.push_back(value);
  }

  // Into the slots and the memory where somebody will look for it.
  void store_result(size_t k) {
    const FusedStep& step = group_.steps[k];
    const ChainRole& role = roles_[k];
    const simd::ChainEncoding& encoding = *encoding_of(step.dtype);
    bool waits = step.output && overwrites_input(k);
    bool direct = step.output && !waits;
    bool readable = direct && !program_.stream && step.dtype == Dtype::Val::float32;
    Location& result = result_of(k);
    if (waits || (role.needed_outside && !readable))
      result = block_slot(sizeof(float));
    else if (role.needed_outside)
      result = memory_of_output(k);
    else if (role.needed_in_chain)
      result = tile_slot();
    if (result.place == Place::block || result.place == Place::tile)
      add_stage(chains_.float32.store, result);
    if (waits) store_after_block(k, store_kernel(step.dtype));
    if (!direct) return;
    add_stage(program_.stream ? encoding.store_past_cache : encoding.store, memory_of_output(k));
  }

  bool divides_by_scalar(const FusedStep& step) const {
    return step.op == static_cast<int16_t>(ElementwiseOp::Divide) &&
           program_.values[index_of(step.values[1])].repeats;
  }

  // Slots of operands that no later step reads: the result may take one, since kernels work in
  // place. Scalars are filled once a task and keep theirs, and what is stored after the block has
  // to last until then.
  void free_dying_slots(size_t k) {
    const FusedStep& step = group_.steps[k];
    for (int i = 0; i < step.arity; ++i) {
      uint16_t value = step.values[i];
      bool repeated = false;
      for (int j = 0; j < i; ++j) repeated |= step.values[j] == value;
      if (repeated) continue;
      bool is_result = value >= FusedStep::result;
      size_t producer = value - FusedStep::result;
      size_t last_use = is_result ? last_step_use_[producer] : last_input_use_[value];
      const Location& location = program_.values[index_of(value)];
      if (last_use != k || location.repeats) continue;
      if (location.place == Place::tile) {
        free_tiles_.push_back(location.slot);
      } else if (location.place == Place::block && !(is_result && group_.steps[producer].output)) {
        // In place needs equal sizes; other slots become free for the step after this one.
        bool in_place = location.item_size == lane_size(lane_of(step.dtype));
        (in_place ? free_blocks_ : free_after_).push_back(location.slot);
      }
    }
  }

  int64_t block_size() const {
    if (program_.block_slots == 0) return FusedProgram::task_elements;
    // Small when memory is the limit: the stores of a block then overlap the loads of the next one.
    if (!program_.stores.empty() && program_.stream) return program_.steps.size() == 1 ? 192 : 384;
    size_t elements = cache_bytes / (size_t{program_.slot_item_bytes} * program_.block_slots);
    return std::clamp<int64_t>(static_cast<int64_t>(elements & ~size_t{127}), 256, 1024);
  }

  Encoder& encoder_;
  const FusedGroup& group_;
  FusedWalk walk_;
  const simd::ChainKernels& chains_;
  FusedProgram program_;
  bool fetches_ = false;  // inputs larger than the cache
  SmallVector<uint16_t, 4> last_input_use_, last_step_use_;
  SmallVector<ChainRole, 4> roles_;
  SmallVector<uint8_t, 4> read_alone_;  // is the input read by a step outside chains?
  SmallVector<int, 4> donor_;
  SmallVector<uint16_t, 8> free_blocks_, free_after_, free_tiles_;
  std::vector<array> copies_;            // of inputs, in order
  SmallVector<const array*, 4> inputs_;  // what the program reads: the group's inputs, or copies
  SmallVector<Bound, 4> bound_inputs_, bound_outputs_;  // outputs by step
  SmallVector<uint16_t, 4> decoded_;  // inputs that the current chain has made floats of
};

}  // namespace

std::unique_ptr<const Prepared> CpuBackend::prepare_fused(exec::Device& device,
                                                          const FusedGroup& group) {
  auto& kernels = group.cache->get([&] { return GeneratedKernels(*device.target, group.steps); });
  return kernels.prepare(group);
}

void CpuBackend::fused(Encoder& encoder, const FusedGroup& group) {
  if (group.prepared)
    GeneratedKernels::encode(encoder, group);
  else
    FusedPlanner(encoder, group).encode();
}

}  // namespace holdfast::kernels::cpu
