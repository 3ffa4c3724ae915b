// compile for bindings, whose functions have an identity of their own and return more than arrays,
// and the primitive that it makes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/device.h>
#include <holdfast/op.h>

namespace holdfast::detail {

class CompiledSteps;

// What a function returns beside arrays: that of the call that was traced comes back from every
// call.
using ArraysAndExtra = std::pair<std::vector<array>, std::shared_ptr<void>>;
using ArrayFnWithExtra = std::function<ArraysAndExtra(const std::vector<array>&)>;

// The traces of all functions of the process, of which the last used ones are kept. Any thread may
// use it.
class CompileCache;
using CompileCacheWeakPtr = std::weak_ptr<CompileCache>;
CompileCacheWeakPtr compile_cache();

// Functions with one `fun_id` share their traces, for equal `constants`; with 0 each has its own.
std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::function<std::vector<array>(const std::vector<array>&)> fun, std::uintptr_t fun_id,
    bool shapeless = false, std::vector<uint64_t> constants = {});
ArrayFnWithExtra compile(ArrayFnWithExtra fun, std::uintptr_t fun_id, bool shapeless,
                         std::vector<uint64_t> constants);

// Drops the traces of one function, or of all: the next call traces anew. To be called before a
// `fun_id` is used for another function.
void compile_erase(CompileCacheWeakPtr cache, std::uintptr_t fun_id);
void compile_clear_cache(CompileCacheWeakPtr cache);
inline void compile_erase(std::uintptr_t fun_id) { compile_erase(compile_cache(), fun_id); }
inline void compile_clear_cache() { compile_clear_cache(compile_cache()); }

// The steps of compile one by one, for who wants to look at a trace or to change it in between.
//
// Who uses an array: for each of its uses the array that was computed, and as which input.
using ParentsMap = std::unordered_map<std::uintptr_t, std::vector<std::pair<array, int>>>;

// Tracers like `inputs`, what `fun` returned for them, and what it returned beside arrays.
std::tuple<std::vector<array>, std::vector<array>, std::shared_ptr<void>> compile_trace(
    const ArrayFnWithExtra& fun, const std::vector<array>& inputs, bool shapeless);
// The tape: what `outputs` were computed by from `inputs` (tracers), one output of each call,
// inputs first. std::invalid_argument when one of `original_inputs`, the arrays that the tracers
// stand for, is among what was used: the function has captured what it should take as an argument.
std::pair<std::vector<array>, ParentsMap> compile_dfs(const std::vector<array>& inputs,
                                                      std::vector<array>& outputs,
                                                      const std::vector<array>& original_inputs);
// Equal calls and equal scalars made one: another graph of the same tracers. Once is enough; with
// `passes` 0 nothing happens.
void compile_simplify(std::vector<array>& tape, ParentsMap& parents_map,
                      std::vector<array>& outputs, int passes);
// The outputs of a trace for other inputs.
std::vector<array> compile_replace(const std::vector<array>& tape,
                                   const std::vector<array>& trace_inputs,
                                   const std::vector<array>& trace_outputs,
                                   const std::vector<array>& inputs, bool shapeless);
// std::invalid_argument that names the op when the shape of a result does not follow from its
// inputs.
void compile_validate_shapeless(const std::vector<array>& tape);

// Compiled functions run wherever arrays do.
bool compile_available_for_device(const Device& device);

}  // namespace holdfast::detail

namespace holdfast {

// Element-wise ops that `compile` has made one node.
class Compiled final : public detail::PreparedOp {
 public:
  Compiled(Stream stream, std::unique_ptr<detail::CompiledSteps> steps);
  ~Compiled() override;
  // Says what is computed: the same for equal steps on operands of equal dtypes.
  std::string lib_name() const;

  std::unique_ptr<const detail::Prepared> prepare(exec::Device& device,
                                                  const std::vector<array>& inputs,
                                                  std::vector<array>& outputs) override;
  void encode_prepared(Encoder& encoder, const detail::Prepared* prepared,
                       const std::vector<array>& inputs, std::vector<array>& outputs) override;
  const char* name() const override;
  // Of equal steps on operands of equal dtypes.
  bool is_equivalent(const Primitive& other) const override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  void check(const std::vector<array>& inputs, std::span<const Shape> shapes,
             std::span<const Dtype> dtypes) override;

 private:
  std::unique_ptr<detail::CompiledSteps> steps_;
};

}  // namespace holdfast
