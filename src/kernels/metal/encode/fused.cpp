// Groups of element-wise ops: by a kernel of their own, where there is one (generated_kernels.h),
// or as programs that the kernels of elementwise.metal interpret.
//
// The steps of a program are cut into pieces, one dispatch each, where a kernel's family of lanes,
// its arguments or its slots do not suffice; mostly there is one. What a later piece needs of an
// earlier one goes through memory.
#include <algorithm>

#include "kernels/elementwise/lowered_steps.h"
#include "kernels/fused_layout.h"
#include "kernels/metal/generated_kernels.h"
#include "kernels/metal/launch.h"
#include "kernels/metal/metal_backend.h"
#include "kernels/staging.h"
#include "kernels/views.h"

namespace holdfast::kernels::metal {
namespace {

// As in elementwise.metal.
struct Program {
  uint64_t size;
  uint32_t instructions;
  bool is_large;
};
constexpr int64_t per_thread = 4;
constexpr uint32_t group_size = 128;
constexpr size_t most_inputs = 16, most_outputs = 8, few_inputs = 4;
constexpr uint8_t most_slots = 8;
constexpr size_t most_bytes = 32;   // of a thread's elements of one value
constexpr size_t most_arrays = 28;  // of a kernel that is generated

// As in support/generated.h.
struct GeneratedAccess {
  bool aligned, inside;
  uint16_t first_extent;
};

enum class Family : uint8_t { any, narrow, wide_integer, complex };

Family family_of(const LoweredStep& step) {
  const bool moves_only = step.op == FusedOp::Copy || step.op == FusedOp::Select ||
                          step.op == FusedOp::Zero || step.op == FusedOp::One;
  const Lane lane = step.lane, wider = std::max(step.lane, step.result);
  if (lane == Lane::c64 || step.result == Lane::c64) return Family::complex;
  if (wider >= Lane::i64) return Family::wide_integer;
  return moves_only ? Family::any : Family::narrow;
}

// Steps [first, last) as one dispatch.
struct Piece {
  Piece(size_t first, size_t last) : first(first), last(last) {}

  size_t first, last;
  Family family = Family::any;
  SmallVector<uint16_t, 4> inputs;  // values from outside
  std::vector<FusedInstruction> instructions;
  SmallVector<uint16_t, 2> outputs;  // values
  uint8_t slots = 0;
};

class FusedEncoder {
 public:
  explicit FusedEncoder(const FusedGroup& group)
      : group_(group),
        walk_(group),
        lowered_(lower(group.steps, group.inputs.size())),
        input_count_(group.inputs.size()) {
    for (const FusedStep& step : group.steps) {
      if (step.dtype == float64 || step.operand_dtype == float64) throw exec::NoKernel();
    }
    find_uses();
    for (ShapeElem dim : *group_.shape) size_ *= dim;
    find_sources();
  }

  void make_kernel(exec::Device& device) const {
    if (is_kernel_possible()) make_generated(device, kernel_group());
  }

  void encode(Encoder& encoder) {
    if (size_ == 0) return allocate_outputs(encoder);
    if (is_kernel_possible()) {
      GeneratedGroup group = kernel_group();
      if (auto kernel = find_generated(encoder.queue().device(), group, size_))
        return dispatch(encoder, *kernel, group);
    }
    std::vector<Piece> pieces = cut();
    allocate_outputs(encoder);
    copy_inputs(encoder);
    for (Piece& piece : pieces) dispatch(encoder, piece);
  }

 private:
  // An input of a dispatch.
  struct Source {
    const array* memory = nullptr;
    FusedInput input{};
    CollapsedLayout layout;  // strided
    bool is_copied = false;  // into order, first
  };

  size_t value_count() const { return input_count_ + lowered_.steps.size(); }

  void find_uses() {
    last_use_.assign(value_count(), 0);
    output_of_.assign(value_count(), nullptr);
    for (size_t k = 0; k < lowered_.steps.size(); ++k) {
      const LoweredStep& step = lowered_.steps[k];
      for (int i = 0; i < step.arity; ++i) last_use_[step.operands[i]] = k;
    }
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      if (group_.steps[k].output) output_of_[lowered_.results[k]] = group_.steps[k].output;
    }
  }

  std::vector<Piece> cut() const {
    std::vector<Piece> pieces;
    for (size_t first = 0; first < lowered_.steps.size(); first = pieces.back().last) {
      pieces.push_back(piece_of(first, first + 1));
      for (size_t last = first + 2; last <= lowered_.steps.size(); ++last) {
        Piece longer = piece_of(first, last);
        if (!is_possible(longer)) break;
        pieces.back() = std::move(longer);
      }
    }
    return pieces;
  }

  static bool is_possible(const Piece& piece) {
    return piece.last > piece.first && piece.inputs.size() <= most_inputs &&
           piece.outputs.size() <= most_outputs && piece.slots <= most_slots;
  }

  // Impossible ones have last == first.
  Piece piece_of(size_t first, size_t last) const {
    Piece piece(first, last);
    for (size_t k = first; k < last; ++k) {
      const Family family = family_of(lowered_.steps[k]);
      if (family == Family::any) continue;
      if (piece.family != Family::any && piece.family != family) return Piece(first, first);
      piece.family = family;
    }
    std::vector<uint8_t> slot_of(last - first, nowhere);
    SmallVector<uint8_t, 8> free;
    for (size_t k = first; k < last; ++k) {
      piece.instructions.push_back(instruction(piece, k, slot_of));
      const LoweredStep& step = lowered_.steps[k];
      for (int i = 0; i < step.arity; ++i) release(step.operands[i], k, first, slot_of, free);
      FusedInstruction& made = piece.instructions.back();
      const auto value = static_cast<uint16_t>(input_count_ + k);
      if (is_read_later(value, k + 1, last)) {
        if (free.empty()) {
          slot_of[k - first] = piece.slots++;
        } else {
          slot_of[k - first] = free.back();
          free.pop_back();
        }
        made.slot = slot_of[k - first];
      }
      if (output_of_[value] || last_use_[value] >= last) {
        made.output = static_cast<uint8_t>(piece.outputs.size());
        piece.outputs.push_back(value);
      }
    }
    return piece;
  }

  // By a step of the piece that is not the one right after it.
  bool is_read_later(uint16_t value, size_t next, size_t last) const {
    for (size_t k = next + 1; k < last; ++k) {
      const LoweredStep& step = lowered_.steps[k];
      if (std::find(step.operands, step.operands + step.arity, value) != step.operands + step.arity)
        return true;
    }
    return false;
  }

  FusedInstruction instruction(Piece& piece, size_t k, std::span<const uint8_t> slot_of) const {
    const LoweredStep& step = lowered_.steps[k];
    FusedInstruction made{step.op,
                          step.lane,
                          step.finish,
                          {nowhere, nowhere, nowhere},
                          nowhere,
                          nowhere,
                          element_type_of(step.dtype),
                          false};
    for (int i = 0; i < step.arity; ++i) {
      const uint16_t value = step.operands[i];
      if (value == input_count_ + k - 1 && k > piece.first) {
        made.operands[i] = previous_result;
      } else if (value >= input_count_ + piece.first) {
        made.operands[i] =
            static_cast<uint8_t>(first_slot + slot_of[value - input_count_ - piece.first]);
      } else {
        auto found = std::find(piece.inputs.begin(), piece.inputs.end(), value);
        made.operands[i] = static_cast<uint8_t>(found - piece.inputs.begin());
        if (found == piece.inputs.end()) piece.inputs.push_back(value);
      }
    }
    return made;
  }

  // Step k was the last one to read it.
  void release(uint16_t value, size_t k, size_t first, std::vector<uint8_t>& slot_of,
               SmallVector<uint8_t, 8>& free) const {
    if (value < input_count_ + first || last_use_[value] != k) return;
    uint8_t& slot = slot_of[value - input_count_ - first];
    if (slot != nowhere) free.push_back(slot);
    slot = nowhere;
  }

  // An input's memory goes to an output that is written when the input has been read for the last
  // time: each thread reads and writes the same elements.
  void allocate_outputs(Encoder& encoder) {
    uint32_t donatable = group_.donatable;
    for (size_t k = 0; k < group_.steps.size(); ++k) {
      if (!group_.steps[k].output) continue;
      const size_t step = lowered_.results[k] - input_count_;
      walk_.allocate(encoder, group_, *group_.steps[k].output, donatable,
                     [&](size_t input) { return last_use_[input] <= step; });
    }
  }

  void find_sources() {
    sources_.resize(value_count());
    copies_.reserve(value_count());  // sources_ points into it
    for (size_t i = 0; i < input_count_; ++i) {
      const array& a = group_.inputs[i];
      Source& source = sources_[i];
      source.memory = &a;
      source.input.type = element_type_of(a.dtype());
      if (is_scalar(a)) {
        source.input.access = FusedAccess::scalar;
      } else if (!walk_.is_in_order(a, *group_.shape)) {
        Strides strides = broadcast_strides(a.shape(), a.strides(), *group_.shape);
        source.layout = collapse(span_of(*group_.shape), span_of(strides));
        source.is_copied = is_read_across(a, source.layout);
        if (!source.is_copied && !source.layout.is_dense())
          source.input.access = FusedAccess::strided;
      }
    }
  }

  void copy_inputs(Encoder& encoder) {
    for (size_t i = 0; i < input_count_; ++i) {
      Source& source = sources_[i];
      if (source.is_copied) {
        copies_.push_back(make_dense(encoder, group_.inputs[i]));
        source.memory = &copies_.back();
      }
      if (source.input.access != FusedAccess::scalar)
        source.input.aligned =
            begins_blocks(source, per_thread, block_bytes(*source.memory, per_thread));
    }
  }

  // What threads of so many elements load at once.
  static size_t block_bytes(const array& a, int64_t elements) {
    return std::min<size_t>(16, static_cast<size_t>(elements) * a.itemsize());
  }

  // Do blocks of so many elements begin at multiples of `bytes`, and lie in one row?
  static bool begins_blocks(const Source& source, int64_t elements, size_t bytes) {
    const array& a = *source.memory;
    if (!is_aligned(a, bytes)) return false;
    if (source.input.access == FusedAccess::dense) return true;
    const CollapsedLayout& layout = source.layout;
    auto is_multiple = [&](int64_t stride) {
      return stride * static_cast<int64_t>(a.itemsize()) % static_cast<int64_t>(bytes) == 0;
    };
    return layout.strides.back() == 1 && layout.shape.back() % elements == 0 &&
           std::all_of(layout.strides.begin(), layout.strides.end() - 1, is_multiple);
  }

  // What a later piece reads.
  array& memory_of(Encoder& encoder, uint16_t value) {
    if (output_of_[value]) return *output_of_[value];
    Source& source = sources_[value];
    if (!source.memory) {
      const Dtype::Val dtype = lowered_.steps[value - input_count_].dtype;
      copies_.push_back(make_temporary(encoder, item_size(dtype) * static_cast<size_t>(size_)));
    }
    return const_cast<array&>(source.memory ? *source.memory : copies_.back());
  }

  void dispatch(Encoder& encoder, Piece& piece) {
    Extents extents;
    std::vector<FusedInput> inputs;
    for (uint16_t value : piece.inputs) {
      FusedInput input = sources_[value].input;
      if (input.access == FusedAccess::strided) {
        input.dimensions = static_cast<uint16_t>(sources_[value].layout.dimensions());
        input.first_extent = append(extents, sources_[value].layout);
      }
      inputs.push_back(input);
    }
    const bool is_small = piece.inputs.size() <= few_inputs && piece.outputs.size() == 1 &&
                          (piece.family == Family::any || piece.family == Family::narrow);
    const Program program{fit(size_), fit(piece.instructions.size()), size_ > most_small_elements};
    for (FusedInstruction& made : piece.instructions) {
      if (made.output == nowhere) continue;
      const uint16_t value = piece.outputs[made.output];
      array& out = memory_of(encoder, value);
      Source& source = sources_[value];
      source.memory = &out;
      source.input.type = made.type;
      const size_t item = item_size(lowered_.steps[value - input_count_].dtype);
      made.aligned = source.input.aligned =
          is_aligned(out, std::min<size_t>(16, per_thread * item));
    }
    Launch launch(encoder, "elementwise", entry(piece.family, is_small));
    launch.with(program, piece.instructions, inputs, extents);
    for (uint16_t value : piece.inputs) launch.input(*sources_[value].memory);
    launch.nothing((is_small ? few_inputs : most_inputs) - piece.inputs.size());
    for (uint16_t value : piece.outputs) launch.output(memory_of(encoder, value));
    launch.nothing((is_small ? 1 : most_outputs) - piece.outputs.size());
    const size_t bytes =
        piece.family == Family::any || piece.family == Family::narrow ? most_bytes / 2 : most_bytes;
    launch.threadgroup_memory(
        static_cast<uint32_t>(std::max<size_t>(1, piece.slots) * bytes * group_size));
    launch.over(divide_up(size_, per_thread), group_size);
  }

  static uint16_t append(Extents& extents, const CollapsedLayout& layout) {
    const auto first = static_cast<uint16_t>(extents.size());
    for (const Extent& extent : extents_of(layout)) extents.push_back(extent);
    return first;
  }

  // --- A kernel of the group's own. ---

  bool is_kernel_possible() const {
    return size_ > 0 && input_count_ + output_values().size() <= most_arrays;
  }

  std::vector<uint16_t> output_values() const {
    std::vector<uint16_t> values;
    for (size_t value = input_count_; value < value_count(); ++value) {
      if (output_of_[value]) values.push_back(static_cast<uint16_t>(value));
    }
    return values;
  }

  GeneratedGroup kernel_group() const {
    GeneratedGroup group{lowered_.steps, {}, output_values(), size_ > most_small_elements};
    for (size_t i = 0; i < input_count_; ++i) {
      const Source& source = sources_[i];
      const bool is_strided = source.input.access == FusedAccess::strided;
      group.inputs.push_back({group_.inputs[i].dtype(), source.input.access,
                              static_cast<uint8_t>(is_strided ? source.layout.dimensions() : 0)});
    }
    return group;
  }

  void dispatch(Encoder& encoder, const exec::Pipeline& kernel, const GeneratedGroup& group) {
    allocate_outputs(encoder);
    copy_inputs(encoder);
    const int64_t elements = elements_per_thread(group);
    Extents extents;
    std::vector<GeneratedAccess> accesses;
    for (size_t i = 0; i < input_count_; ++i) {
      const Source& source = sources_[i];
      const bool is_strided = source.input.access == FusedAccess::strided;
      const bool has_blocks = static_cast<size_t>(elements) * source.memory->itemsize() >= 16;
      accesses.push_back({source.input.access != FusedAccess::scalar && has_blocks &&
                              begins_blocks(source, elements, 16),
                          is_strided && source.layout.shape.back() % elements == 0,
                          is_strided ? append(extents, source.layout) : uint16_t{0}});
    }
    for (uint16_t value : group.outputs) {
      const array& out = *output_of_[value];
      accesses.push_back(
          {static_cast<size_t>(elements) * out.itemsize() >= 16 && is_aligned(out, 16), false, 0});
    }
    Launch launch(encoder, kernel);
    launch.with(static_cast<uint64_t>(size_), accesses, extents);
    for (size_t i = 0; i < input_count_; ++i) launch.input(*sources_[i].memory);
    for (uint16_t value : group.outputs) launch.output(*output_of_[value]);
    launch.over(divide_up(size_, elements));
  }

  static const char* entry(Family family, bool is_small) {
    if (family == Family::complex) return "fused_complex";
    if (family == Family::wide_integer) return "fused_long";
    return is_small ? "fused_small_narrow" : "fused_narrow";
  }

  const FusedGroup& group_;
  FusedWalk walk_;
  LoweredGroup lowered_;
  size_t input_count_;
  int64_t size_ = 1;
  std::vector<size_t> last_use_;   // of a value: the step; 0 where there is none
  std::vector<array*> output_of_;  // of a value, or null
  std::vector<Source> sources_;    // of a value that a piece reads from memory
  std::vector<array> copies_;      // of inputs, and temporaries
};

}  // namespace

void MetalBackend::fused(Encoder& encoder, const FusedGroup& group) {
  FusedEncoder(group).encode(encoder);
}

std::unique_ptr<const Prepared> MetalBackend::prepare_fused(exec::Device& device,
                                                            const FusedGroup& group) {
  FusedEncoder(group).make_kernel(device);
  return nullptr;
}

}  // namespace holdfast::kernels::metal
