#include "kernels/cpu/fused.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/layout.h"

namespace holdfast::cpu {
namespace {

constexpr int16_t astype_code = static_cast<int16_t>(ElementwiseOp::count);
constexpr int64_t task_elements = 32768;
// What the blocks of a pass should fit into: the first-level cache, less what the kernels need.
constexpr size_t cache_bytes = 24 * 1024;
constexpr uint16_t no_slot = 0xffff;
// When memory is the limit: how far ahead of the block inputs are fetched, in elements.
constexpr int64_t fetch_ahead = 768;

// Where the elements of an operand come from.
struct Input {
  enum class Kind : uint8_t { dense, scalar, strided };
  Kind kind;
  uint8_t item_size;
  uint8_t lane_bytes;
  uint16_t slot = no_slot;       // where it is loaded to; none: used in place
  ConvertKernel load = nullptr;  // widens a half type
  const char* address;
  const CollapsedLayout* layout = nullptr;  // strided only; owned by the program
};

struct Step {
  BlockKernel kernel = nullptr;
  ConvertKernel convert = nullptr;  // astype: instead of `kernel`
  ConvertKernel round = nullptr;    // half types: after the kernel
  uint8_t arity;
  uint8_t lane_bytes;       // of the result
  uint16_t operands[3];     // input i, or inputs + step k
  uint16_t slot = no_slot;  // where the result goes; none: straight to `output`
  // An output: stored from the slot after the whole block, or written in place when there is no
  // slot.
  char* output = nullptr;
  uint8_t item_size = 0;
  ConvertKernel store = nullptr;
};

struct Program {
  int64_t size;
  int64_t block;
  uint16_t slots;
  uint8_t slot_item_bytes;  // of the widest type that is kept in a slot
  bool stream;              // outputs larger than the cache: write past it
  bool prefetch;  // inputs larger than the cache: fetch the next block while this one is computed
  SmallVector<Input, 3> inputs;
  SmallVector<Step, 2> steps;
  std::vector<CollapsedLayout> layouts;

  void operator()(int64_t first_task, int64_t last_task) const;

 private:
  // The share of step k of fetching the dense inputs' elements [start, start + n): a little with
  // each step, so that memory is read all the time and not only by the first step of a block.
  void prefetch_part(int64_t start, int64_t n, size_t k) const {
    if (n <= 0) return;
    for (const Input& input : inputs) {
      if (input.kind != Input::Kind::dense) continue;
      int64_t bytes = n * input.item_size;
      int64_t share = (bytes / static_cast<int64_t>(steps.size()) + 63) & ~int64_t{63};
      int64_t from = static_cast<int64_t>(k) * share, to = std::min(bytes, from + share);
      const char* address = input.address + start * input.item_size;
      for (int64_t i = from; i < to; i += 64) __builtin_prefetch(address + i);
    }
  }
};

// Block memory of the calling thread: `slots` blocks of 8-byte elements, and one for conversions.
char* scratch(size_t bytes) {
  struct Memory {
    char* bytes = nullptr;
    size_t size = 0;
    // Destructors that run later on this thread may evaluate: they start afresh.
    ~Memory() {
      std::free(bytes);
      bytes = nullptr;
      size = 0;
    }
  };
  static thread_local Memory memory;
  if (memory.size < bytes) {
    std::free(memory.bytes);
    memory.size = 0;
    memory.bytes = static_cast<char*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
    if (!memory.bytes) throw std::bad_alloc();
    memory.size = bytes;
  }
  return memory.bytes;
}

void Program::operator()(int64_t first_task, int64_t last_task) const {
  int64_t begin = first_task * task_elements;
  int64_t end = std::min(size, last_task * task_elements);
  int64_t longest = std::min(block, end - begin);
  // A line more than a block: blocks of a power of two would share their cache sets.
  size_t slot_bytes = ((static_cast<size_t>(longest) * slot_item_bytes + 63) & ~size_t{63}) + 64;
  char* memory = scratch(slot_bytes * (slots + 1u));
  char* spare = memory + slot_bytes * slots;
  auto slot_address = [&](uint16_t slot) { return memory + slot_bytes * slot; };

  const void* operands[48];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    if (input.kind != Input::Kind::scalar) continue;
    char* target = slot_address(input.slot);
    alignas(8) char value[8];
    std::memcpy(value, input.address, input.item_size);
    if (input.load) input.load(value, input.address, 1);
    fill_block(target, value, input.lane_bytes, longest);
    operands[i] = target;
  }

  for (int64_t start = begin; start < end; start += block) {
    int64_t n = std::min(block, end - start);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      switch (input.kind) {
        case Input::Kind::scalar:
          break;
        case Input::Kind::dense: {
          const char* source = input.address + start * input.item_size;
          if (input.load) {
            input.load(slot_address(input.slot), source, n);
            source = slot_address(input.slot);
          }
          operands[i] = source;
          break;
        }
        case Input::Kind::strided: {
          char* target = slot_address(input.slot);
          gather_range(input.address, *input.layout, input.item_size, start, start + n,
                       input.load ? spare : target);
          if (input.load) input.load(target, spare, n);
          operands[i] = target;
          break;
        }
      }
    }
    for (size_t k = 0; k < steps.size(); ++k) {
      const Step& step = steps[k];
      void* result =
          step.slot != no_slot ? slot_address(step.slot) : step.output + start * step.item_size;
      const void* in[3];
      for (int i = 0; i < step.arity; ++i) in[i] = operands[step.operands[i]];
      if (step.kernel) {
        step.kernel(result, in, n);
      } else if (step.convert) {
        step.convert(result, in[0], n);
      } else if (result != in[0]) {
        std::memcpy(result, in[0], static_cast<size_t>(n) * step.lane_bytes);
      }
      if (step.round) step.round(result, result, n);
      operands[inputs.size() + k] = result;
      if (prefetch) {
        int64_t ahead = start + fetch_ahead;
        prefetch_part(ahead, std::min(n, end - ahead), k);
      }
    }
    for (const Step& step : steps) {
      if (!step.output || step.slot == no_slot) continue;
      char* target = step.output + start * step.item_size;
      const char* source = slot_address(step.slot);
      if (step.store) {
        step.store(stream ? spare : target, source, n);
        source = spare;
      }
      if (stream) {
        stream_block(target, source, static_cast<size_t>(n) * step.item_size);
      } else if (!step.store) {
        std::memcpy(target, source, static_cast<size_t>(n) * step.item_size);
      }
    }
  }
  if (stream) end_stream();
}

// --- planning ---

bool is_scalar(const array& a) { return a.size() == 1 || a.data_size() == 1; }

bool same_strides(const Shape& shape, const Strides& a, const Strides& b) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

// The layout that the pass walks memory in. Usually row-major; when all inputs share another
// gapless layout (a transpose, say), that one, and the outputs get it too.
struct Walk {
  const array* like = nullptr;  // an input whose strides the outputs take; null: row-major
};

Walk choose_walk(const FusedGroup& group) {
  const array* like = nullptr;
  for (const array& input : group.inputs) {
    if (is_scalar(input)) continue;
    if (!input.flags().contiguous || input.shape() != *group.shape ||
        input.data_size() != input.size()) {
      return {};
    }
    if (!like)
      like = &input;
    else if (!same_strides(*group.shape, like->strides(), input.strides()))
      return {};
  }
  return {like && !like->flags().row_contiguous ? like : nullptr};
}

SmallVector<int64_t> broadcast_strides(const array& a, const Shape& shape) {
  SmallVector<int64_t> strides(shape.size(), 0);
  size_t lead = shape.size() - a.ndim();
  for (size_t i = 0; i < a.ndim(); ++i) {
    if (a.shape()[i] > 1) strides[lead + i] = a.strides()[i];
  }
  return strides;
}

class Planner {
 public:
  Planner(Encoder& encoder, const FusedGroup& group) : encoder_(encoder), group_(group) {}

  void encode() {
    size_t size = 1;
    for (ShapeElem dim : *group_.shape) size *= static_cast<size_t>(dim);
    walk_ = choose_walk(group_);
    find_last_uses();
    allocate_outputs();
    if (size == 0) return;
    Program program;
    program.size = static_cast<int64_t>(size);
    plan_inputs(program);
    plan_steps(program);
    program.slots = slot_count_;
    program.slot_item_bytes = 1;
    for (const Input& input : program.inputs) {
      program.slot_item_bytes = std::max(program.slot_item_bytes, input.lane_bytes);
    }
    for (const Step& step : program.steps) {
      program.slot_item_bytes = std::max(program.slot_item_bytes, step.lane_bytes);
    }
    int64_t work = 0;
    size_t largest_output = 0;
    for (const array& input : group_.inputs) {
      encoder_.input(input);
      work += is_scalar(input) ? 0 : static_cast<int64_t>(input.itemsize() * size);
    }
    for (FusedStep& step : group_.steps) {
      work += static_cast<int64_t>(size) * 4;
      if (!step.output) continue;
      encoder_.output(*step.output);
      work += static_cast<int64_t>(step.output->nbytes());
      largest_output = std::max(largest_output, step.output->nbytes());
    }
    program.stream = largest_output > stream_threshold();
    program.prefetch = work > static_cast<int64_t>(stream_threshold());
    if (program.stream) stream_outputs(program);
    program.block = block_size(program);
    int64_t tasks = (program.size + task_elements - 1) / task_elements;
    encoder_.native(group_.name, tasks, work, std::move(program));
  }

 private:
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
      if (!output) continue;
      for (size_t i = 0; i < group_.inputs.size() && donor_[k] < 0; ++i) {
        if ((donatable >> i & 1) && can_take_over(group_.inputs[i], *output))
          donor_[k] = static_cast<int>(i);
      }
      if (donor_[k] >= 0) {
        const array& donor = group_.inputs[static_cast<size_t>(donor_[k])];
        donatable &= ~(1u << donor_[k]);
        output->copy_shared_buffer(donor);
      } else if (walk_.like) {
        output->set_data(encoder_.allocate(output->nbytes()), output->size(), walk_.like->strides(),
                         walk_.like->flags());
      } else {
        encoder_.allocate(*output);
      }
    }
  }

  bool can_take_over(const array& input, const array& output) const {
    return input.itemsize() == output.itemsize() && input.shape() == output.shape() &&
           input.data_size() == input.size() &&
           (walk_.like ? !is_scalar(input) : input.flags().row_contiguous);
  }

  uint16_t take_slot() {
    if (free_slots_.empty()) return slot_count_++;
    uint16_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  void plan_inputs(Program& program) {
    program.layouts.reserve(group_.inputs.size());  // the inputs point into it
    for (const array& a : group_.inputs) {
      Input input{};
      input.slot = no_slot;
      input.address = a.data<char>();
      input.item_size = static_cast<uint8_t>(a.itemsize());
      input.lane_bytes = static_cast<uint8_t>(lane_size(lane_of(a.dtype())));
      input.load = load_kernel(a.dtype());
      if (is_scalar(a)) {
        input.kind = Input::Kind::scalar;
      } else if (walk_.like || (a.flags().row_contiguous && a.shape() == *group_.shape)) {
        input.kind = Input::Kind::dense;
      } else {
        input.kind = Input::Kind::strided;
        SmallVector<int64_t> strides = broadcast_strides(a, *group_.shape);
        program.layouts.push_back(collapse(std::span(group_.shape->data(), group_.shape->size()),
                                           std::span(strides.data(), strides.size())));
        input.layout = &program.layouts.back();
      }
      if (input.kind != Input::Kind::dense || input.load) input.slot = take_slot();
      program.inputs.push_back(input);
    }
  }

  void plan_steps(Program& program) {
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      const FusedStep& from = group_.steps[k];
      Step step{};
      step.slot = no_slot;
      step.arity = from.arity;
      step.lane_bytes = static_cast<uint8_t>(lane_size(lane_of(from.dtype)));
      for (int i = 0; i < from.arity; ++i) {
        uint16_t value = from.values[i];
        step.operands[i] =
            value >= FusedStep::result
                ? static_cast<uint16_t>(group_.inputs.size() + value - FusedStep::result)
                : value;
      }
      choose_kernels(from, step);
      if (divides_by_scalar(from, program)) step.kernel = divide_by_scalar_kernel();
      if (from.output) {
        step.output = from.output->data<char>();
        step.item_size = static_cast<uint8_t>(from.output->itemsize());
        step.store = store_kernel(from.dtype);
      }
      // Straight to memory, unless it must be narrowed or would overwrite an input still needed.
      bool overwrites = donor_[k] >= 0 && last_input_use_[static_cast<size_t>(donor_[k])] > k;
      bool direct = from.output && !step.store && !overwrites;
      free_dying_slots(program, k);
      if (!direct) step.slot = take_slot();
      for (uint16_t slot : free_after_) free_slots_.push_back(slot);
      free_after_.clear();
      program.steps.push_back(step);
      // An output's slot is read again at the end of the block, and is never freed.
    }
  }

  // Slots of operands that no later step reads: the result may take one, since kernels work in
  // place. Scalars are filled once a task and keep theirs.
  void free_dying_slots(const Program& program, size_t k) {
    const FusedStep& step = group_.steps[k];
    for (int i = 0; i < step.arity; ++i) {
      uint16_t value = step.values[i];
      bool repeated = false;
      for (int j = 0; j < i; ++j) repeated |= step.values[j] == value;
      if (repeated) continue;
      if (value >= FusedStep::result) {
        size_t producer = value - FusedStep::result;
        const Step& made = program.steps[producer];
        if (last_step_use_[producer] == k && made.slot != no_slot && !made.output) {
          give_slot(made.slot, made.lane_bytes, k);
        }
      } else {
        const Input& input = program.inputs[value];
        if (last_input_use_[value] == k && input.slot != no_slot &&
            input.kind != Input::Kind::scalar) {
          give_slot(input.slot, input.lane_bytes, k);
        }
      }
    }
  }

  // In place needs equal sizes; other slots become free for the step after this one.
  void give_slot(uint16_t slot, uint8_t lane_bytes, size_t k) {
    bool in_place = lane_bytes == lane_size(lane_of(group_.steps[k].dtype));
    (in_place ? free_slots_ : free_after_).push_back(slot);
  }

  void choose_kernels(const FusedStep& from, Step& step) {
    Lane operand = lane_of(from.operand_dtype);
    Lane result = lane_of(from.dtype);
    if (from.op != astype_code) {
      auto op = static_cast<ElementwiseOp>(from.op);
      step.kernel = elementwise_kernel(op, operand);
      if (!step.kernel) {
        throw std::invalid_argument(std::string("[") + elementwise_name(op) + "] does not take " +
                                    dtype_name(from.operand_dtype));
      }
      step.round = round_kernel(from.dtype);
      return;
    }
    // Half types to float32 need nothing: the value is exact.
    if (operand != result) step.convert = lane_convert_kernel(operand, result);
    step.round = round_kernel(from.dtype);
  }

  static bool divides_by_scalar(const FusedStep& step, const Program& program) {
    return step.op == static_cast<int16_t>(ElementwiseOp::Divide) &&
           lane_of(step.operand_dtype) == Lane::f32 && step.values[1] < FusedStep::result &&
           program.inputs[step.values[1]].kind == Input::Kind::scalar;
  }

  // Large outputs are made in a slot and written past the cache.
  void stream_outputs(Program& program) {
    for (Step& step : program.steps) {
      if (step.output && step.slot == no_slot) step.slot = slot_count_++;
    }
    program.slots = slot_count_;
  }

  static int64_t block_size(const Program& program) {
    if (program.slots == 0) return task_elements;
    // Small when memory is the limit: the stores of a block then overlap the loads of the next one.
    if (program.stream) return program.steps.size() == 1 ? 192 : 384;
    size_t elements = cache_bytes / (size_t{program.slot_item_bytes} * program.slots);
    return std::clamp<int64_t>(static_cast<int64_t>(elements & ~size_t{63}), 256, 1024);
  }

  Encoder& encoder_;
  const FusedGroup& group_;
  Walk walk_;
  SmallVector<uint16_t, 4> last_input_use_, last_step_use_;
  SmallVector<int, 4> donor_;
  SmallVector<uint16_t, 8> free_slots_, free_after_;
  uint16_t slot_count_ = 0;
};

}  // namespace

void encode_fused(Encoder& encoder, const FusedGroup& group) { Planner(encoder, group).encode(); }

}  // namespace holdfast::cpu
