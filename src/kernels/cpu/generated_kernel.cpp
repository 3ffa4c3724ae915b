#include "kernels/cpu/generated_kernel.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/environment.h"
#include "exec/background.h"
#include "kernels/cpu/chain.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/plan/elementwise.h"
#include "kernels/plan/layout.h"
#include "kernels/views.h"

namespace holdfast::kernels::cpu {
namespace {

using environment::CompileKernels;

// Measured (ARCHITECTURE.md, Transforms): what a kernel saves on an element by a step that the
// block engine has in a chain, 0.012 ns, and by one that goes through a block, three times that.
// Compiling takes 60 ms.
constexpr int64_t chained_weight = 1, block_weight = 3;
constexpr int64_t worth_compiling = int64_t{1} << 32;
// What a call saves whatever its size, in the same unit.
constexpr int64_t call_weight = 1 << 14;
// Groups of fewer steps gain too little.
constexpr int64_t least_weight = 4;
// Threadgroups at the end of a row run with masks unless they are whole simdgroups.
constexpr int64_t simdgroup = 32, many_columns = 2048;
// Long chains of few operands: elements that take turns in a thread fit into the registers.
constexpr size_t long_chain = 12, few_operands = 4;
constexpr int turns = 4;
constexpr int64_t most_elements = (int64_t{1} << 31) - 1;
constexpr uint32_t threadgroup = 256;
constexpr size_t most_variants = 8;

// What an input is to the outputs; sets the number of columns, or compares with those of others.
std::optional<InputAccess> access_of(const array& input, const Shape& shape, int64_t& columns) {
  if (input.size() == 1 || input.data_size() == 1) return InputAccess::scalar;
  if (input.flags().row_contiguous && input.shape() == shape) return InputAccess::element;
  Strides strides = broadcast_strides(input.shape(), input.strides(), shape);
  CollapsedLayout layout = collapse(span_of(shape), span_of(strides));
  if (layout.is_dense()) return InputAccess::element;
  if (layout.dimensions() != 2) return std::nullopt;
  bool is_row = layout.strides[0] == 0 && layout.strides[1] == 1;
  bool is_column = layout.strides[0] == 1 && layout.strides[1] == 0;
  if (!is_row && !is_column) return std::nullopt;
  if (columns != 0 && columns != layout.shape[1]) return std::nullopt;
  columns = layout.shape[1];
  return is_row ? InputAccess::column : InputAccess::row;
}

bool is_forced() { return environment::settings().compile_kernels == CompileKernels::at_once; }

bool can_become(const array& input, InputAccess access, const array& output) {
  return access == InputAccess::element && input.itemsize() == output.itemsize() &&
         input.flags().row_contiguous && input.data_size() == input.size() &&
         input.shape() == output.shape();
}

const array& last_output(const FusedGroup& group) {
  return *std::find_if(group.steps.rbegin(), group.steps.rend(), [](const FusedStep& step) {
            return step.output != nullptr;
          })->output;
}

}  // namespace

GeneratedKernels::GeneratedKernels(exec::Target& target, std::span<const FusedStep> steps)
    : target_(target) {
  Steps own{{steps.begin(), steps.end()}, {}};
  for (FusedStep& step : own.list) {
    own.is_output.push_back(step.output != nullptr);
    outputs_ += step.output != nullptr;
    step.output = nullptr;
  }
  const simd::ChainKernels& chains = simd::chain_kernels();
  for (const FusedStep& step : steps) {
    bool is_chained = step.dtype == float32 && step.operand_dtype == float32 &&
                      step.op != conversion_code && chains.ops[step.op];
    weight_ += is_chained ? chained_weight : block_weight;
  }
  steps_ = std::make_shared<const Steps>(std::move(own));
}

bool GeneratedKernels::find_walk(const FusedGroup& group, Walk& walk) const {
  const Shape& shape = *group.shape;
  auto size = static_cast<int64_t>(last_output(group).size());
  if (size == 0 || size > most_elements) return false;
  int64_t columns = 0;
  size_t operands = outputs_;
  for (const array& input : group.inputs) {
    std::optional<InputAccess> access = access_of(input, shape, columns);
    if (!access) return false;
    walk.inputs.push_back({input.dtype(), *access});
    operands += *access != InputAccess::scalar;
  }
  if (columns % simdgroup != 0 && columns < many_columns && !is_forced()) return false;
  walk.columns = static_cast<uint32_t>(columns == 0 ? size : columns);
  walk.rows = static_cast<uint32_t>(size / walk.columns);
  uint32_t& divided = columns == 0 ? walk.columns : walk.rows;
  if (steps_->list.size() >= long_chain && operands <= few_operands && divided % turns == 0) {
    walk.per_thread = turns;
    divided /= turns;
  }
  return true;
}

std::shared_ptr<GeneratedKernels::Variant> GeneratedKernels::variant_for(const Walk& walk) {
  std::lock_guard guard(mutex_);
  for (const std::shared_ptr<Variant>& variant : variants_) {
    if (variant->inputs == walk.inputs && variant->per_thread == walk.per_thread) return variant;
  }
  if (variants_.size() == most_variants) return nullptr;
  auto variant = std::make_shared<Variant>();
  variant->inputs = walk.inputs;
  variant->per_thread = walk.per_thread;
  variants_.push_back(variant);
  return variant;
}

void GeneratedKernels::make(exec::Target& target, const Steps& steps, Variant& variant) noexcept {
  using State = Variant::State;
  try {
    std::optional<std::string> text =
        generated_source(steps.list, steps.is_output, variant.inputs, variant.per_thread,
                         instruction_set() != InstructionSet::baseline);
    if (!text) {
      variant.state.store(State::impossible);
      return;
    }
    msl::KernelSource source;
    source.kernel = source.entry = "compiled";
    source.text = std::move(*text);
    variant.request =
        make_ref<exec::KernelRequest>(std::move(source), exec::KernelOptions{}, target);
    exec::KernelLibrary::get().get(variant.request);
    variant.state.store(State::ready, std::memory_order_release);
  } catch (const std::exception&) {
    // No compiler, or no memory: the block engine does as well.
    variant.state.store(State::impossible);
  }
}

// The kernel, if it is there. If not, it is wanted from now on.
Ref<exec::Pipeline> GeneratedKernels::pipeline_of(const std::shared_ptr<Variant>& variant) const {
  using State = Variant::State;
  State expected = State::not_wanted;
  if (variant->state.load(std::memory_order_relaxed) == State::not_wanted &&
      variant->state.compare_exchange_strong(expected, State::wanted)) {
    if (is_forced())
      make(target_, *steps_, *variant);
    else
      exec::run_in_background(
          [&target = target_, steps = steps_, variant] { make(target, *steps, *variant); });
  }
  if (variant->state.load(std::memory_order_acquire) != State::ready) return nullptr;
  try {
    return exec::KernelLibrary::get().get(variant->request);
  } catch (const std::exception&) {
    variant->state.store(State::impossible);
    return nullptr;
  }
}

struct GeneratedKernels::PreparedKernel final : Prepared {
  Walk walk;
  Ref<exec::Pipeline> pipeline;
};

std::unique_ptr<const Prepared> GeneratedKernels::prepare(const FusedGroup& group) {
  if (environment::settings().compile_kernels == CompileKernels::never) return nullptr;
  if (!is_forced()) {
    // Kernels do not write past the cache, as the block engine does with what is larger.
    if (weight_ < least_weight || last_output(group).nbytes() > stream_threshold()) return nullptr;
    int64_t work = work_.load(std::memory_order_relaxed);
    if (work < worth_compiling) {
      work += static_cast<int64_t>(last_output(group).size()) * weight_ + call_weight;
      work_.store(work, std::memory_order_relaxed);
      return nullptr;
    }
  }
  auto prepared = std::make_unique<PreparedKernel>();
  if (!find_walk(group, prepared->walk)) return nullptr;
  if (std::shared_ptr<Variant> variant = variant_for(prepared->walk))
    prepared->pipeline = pipeline_of(variant);
  if (!prepared->pipeline) return nullptr;
  return prepared;
}

void GeneratedKernels::encode(Encoder& encoder, const FusedGroup& group) {
  const auto& prepared = *static_cast<const PreparedKernel*>(group.prepared);
  const Walk& walk = prepared.walk;
  SmallVector<KernelBinding, 16> bindings;
  for (const array& input : group.inputs) bindings.push_back(KernelBinding::input(input));
  uint32_t donatable = group.donatable;
  for (FusedStep& step : group.steps) {
    if (!step.output) continue;
    array& output = *step.output;
    bool is_in_place = false;
    for (size_t i = 0; i < group.inputs.size() && !is_in_place; ++i) {
      if ((donatable >> i & 1) == 0) continue;
      if (!can_become(group.inputs[i], walk.inputs[i].access, output)) continue;
      output.copy_shared_buffer(group.inputs[i]);
      donatable &= ~(1u << i);
      is_in_place = true;
    }
    if (!is_in_place) encoder.allocate(output);
    bindings.push_back(KernelBinding::output(output));
  }
  encoder.dispatch(*prepared.pipeline, {bindings.data(), bindings.size()},
                   {walk.columns, walk.rows, 1}, {threadgroup, 1, 1});
}

}  // namespace holdfast::kernels::cpu
