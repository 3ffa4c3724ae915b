// Runs the table of features (feature.h), and compares the list in docs/metal.md with it.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "devices/cpu/jit/compiler/service.h"
#include "jit/features/feature.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

// The outputs after a run; inputs must be as they were.
std::vector<Argument> run_feature(const Feature& feature, Lowering lowering, InstructionSet set) {
  msl::GeneratedKernel generated = generate(feature);
  CompileOptions options;
  options.lowering = lowering;
  options.instruction_set = set;
  options.guarded = true;
  CompiledKernel compiled = service().compile(generated.source, options);
  Ref<CpuPipeline> pipeline = CpuPipeline::load(feature.name, std::move(compiled));
  std::vector<Argument> inputs = feature.inputs, outputs = feature.outputs;
  std::vector<std::vector<int64_t>> strides;
  std::vector<int32_t> ranks;
  for (const Argument& input : inputs) {
    std::vector<int64_t> of(input.shape.size(), 1);
    for (size_t i = of.size(); i-- > 1;) of[i - 1] = of[i] * input.shape[i];
    strides.push_back(of);
    ranks.push_back(static_cast<int32_t>(input.shape.size()));
  }
  std::vector<void*> buffers;
  std::vector<ArgumentRange> ranges;
  auto bind = [&](auto& values) {
    buffers.push_back(values.data());
    ranges.push_back({0, values.size() * sizeof(values[0])});
  };
  for (const msl::KernelArgument& argument : pipeline->interface().arguments) {
    const msl::SignatureSlot& slot = generated.slots.at(argument.slot);
    using Kind = msl::SignatureSlot::Kind;
    switch (slot.kind) {
      case Kind::input:
        bind(inputs[slot.index].bytes);
        break;
      case Kind::shape:
        bind(inputs[slot.index].shape);
        break;
      case Kind::strides:
        bind(strides[slot.index]);
        break;
      case Kind::ndim:
        buffers.push_back(&ranks[slot.index]);
        ranges.push_back({0, sizeof(ranks[0])});
        break;
      case Kind::output:
        bind(outputs[slot.index].bytes);
        break;
    }
  }
  run(*pipeline, buffers, feature.grid, feature.threadgroup, {}, ranges);
  return outputs;
}

// How far two floats are from each other, counted in floats between them.
double distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  auto order = [](float x) {
    int64_t bits = std::bit_cast<int32_t>(x);
    return bits >= 0 ? bits : int64_t{std::numeric_limits<int32_t>::min()} - bits;
  };
  return std::abs(static_cast<double>(order(a) - order(b)));
}

bool are_same_bits(const std::vector<Argument>& a, const std::vector<Argument>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes != b[i].bytes) return false;
  }
  return true;
}

// Each element of `got` that is too far from `expected`; the first few by number.
std::string differences(const Feature& feature, const std::vector<Argument>& got,
                        const std::vector<Argument>& expected) {
  std::string text;
  int shown = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    const size_t bytes = size_of(got[o].dtype);
    for (size_t i = 0; i < got[o].size(); ++i) {
      const char* g = got[o].bytes.data() + i * bytes;
      const char* e = expected[o].bytes.data() + i * bytes;
      if (std::memcmp(g, e, bytes) == 0) continue;
      std::string what;
      if (got[o].dtype == float32) {
        float a, b;
        std::memcpy(&a, g, 4);
        std::memcpy(&b, e, 4);
        if (distance(a, b) <= feature.ulp) continue;
        what = std::to_string(a) + ", not " + std::to_string(b);
      } else {
        uint64_t a = 0, b = 0;
        std::memcpy(&a, g, bytes);
        std::memcpy(&b, e, bytes);
        what = std::to_string(a) + ", not " + std::to_string(b);
      }
      if (++shown <= 5) text += got[o].name + "[" + std::to_string(i) + "] is " + what + "; ";
    }
  }
  return shown == 0 ? "" : text + std::to_string(shown) + " in all";
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A name in a cell of a table.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

// What the table cannot say.
constexpr const char* about_headers = R"(## What headers and `.metal` files use

Beside the language above, headers that kernels include, and files with many kernels, use what is below. Each row is a file of `tests/msl/data/features`, which uses it
as such headers do; its kernels are compiled and run by both lowerings.

| file | what it uses |
|---|---|
| `fast_math.metal` | `__METAL_MAYBE_FAST_MATH__`, `__METAL_FAST_MATH__`, `__METAL_PRECISE_MATH__`, and the functions that take them: `__metal_exp(x, mode)`, `__metal_simd_sum(x)`, … |
| `logging.metal` | `<metal_logging>`: `metal::os_log`, `os_log_default` |
| `address_spaces.metal` | members and constructors that are overloaded by address space, objects in constant memory, `remove_addrspace_t` |
| `choices.metal` | `c ? x : y` of one class in two address spaces |
| `function_constants.metal` | function constants with defaults, and `constexpr` ones |
| `uniforms.metal` | `uniform<T>`, `make_uniform`; `thread_scope_device` and its kind |
| `traits.metal` | the rest of `<metal_type_traits>`, `_disjunction` |
| `vectors.metal` | all constructors of vectors |
| `names.metal` | names that Metal leaves to programs: `forward`, `move`, `swap`, … are theirs |
| `many_kernels.metal` | many instantiations with `[[host_name]]`: one is compiled when it is asked for, and another's errors are not its own |
| `performance_primitives.metal` | a file with kernels that need MetalPerformancePrimitives, which are refused one by one |
| `includes.metal` | `#include "…"` beside the file that says it, then in the folders of `-I`; `#include <…>` in those |

## Messages

`metal::os_log` prints a line on stderr for each thread that sends a message, with the kernel's name: `holdfast: [my_kernel] debug: thread 5, x = 0.5`. A message has up to
8 values (a `float4` is four of them, printed by `%v4f`); its format must be a string literal; the subsystem and the category are not shown. After 10 000 messages of
a kernel no more are. On an NVIDIA GPU messages go nowhere, and cost nothing.

## Tuning and looking for bugs

- `holdfast kernel check FILE` says of each kernel whether it is widened, and why not; `--kernel NAME` looks at one, `--brief` prints a line each, `-I DIR` says where
  headers are. From Python, `kernel.info()` of a function that `metal_kernel` returned says it for each kind of inputs that it was called with, with the time that it took.
- `HOLDFAST_LOWERING=reference` runs custom kernels one thread at a time, as they are written: a result that it changes is a bug of ours; one that it does not is the kernel's.
- `holdfast kernel run FILE --in x=values.npy …` runs a kernel on arrays from files.
- A loop `for (j = lane; j < D; j += 256)` is the same for all lanes of a simdgroup where D, known when the kernel is compiled, is a multiple of 32: nothing is masked in it.
- A table of up to 32 entries that is read at an index of few bits, `table[(word >> k) & 15]`, is held in registers and permuted, not gathered (AVX2 and AVX-512). The table may
  be an argument: the index bounds how much of it is read.

)";

std::string markdown() {
  std::string text =
      "# The Metal Shading Language in Holdfast\n\n"
      "What kernels for `fast::metal_kernel` and `.metal` files may use. Every row is a test: a "
      "kernel that is compiled, run as vector\n"
      "code and on the reference lowering (the same bits), and compared with plain C++. This page "
      "is made from the table of those\n"
      "tests (`tests/jit/features`), and a test compares the two.\n";
  for (const Section& section : all_features()) {
    text += "\n## " + std::string(section.title) + "\n\n";
    for (const Feature& feature : section.features) text += "- " + cell(feature.name) + "\n";
  }
  text += "\n";
  text +=
      "## The order of sums across a simdgroup\n"
      "\n"
      "Floats are rounded in a fixed order, the same on every device. `simd_sum` and its kind are "
      "a butterfly over the 32 lanes (distance 16 first). `simd_prefix_*`\n"
      "is a tree in lane order: five steps, for distance 1, 2, 4, 8 and 16, in which each lane of "
      "the upper half of its segment of twice the distance adds what the last\n"
      "active lane of the lower half has. `src/msl/intrinsics.def` has the exact rules, also for "
      "lanes that take no part.\n"
      "\n";
  text += about_headers;
  text +=
      "## Functions for matrix units and streams of data\n"
      "\n"
      "`#include <holdfast/tile.h>` adds functions that Metal lacks, in namespace `holdfast`. Each "
      "is one instruction on an NVIDIA GPU. The header defines in C++ what\n"
      "it computes, and that is what runs elsewhere.\n"
      "\n"
      "| function | what it is |\n"
      "|---|---|\n"
      "| `mma_m16n8k16<half>`, `<bfloat>` | D = A B + C of 16×16 by 16×8, sums in float; on the "
      "CPU one fused multiply-add after the other, on a GPU within 2^-18 of the sum of magnitudes "
      "|\n"
      "| `load_matrices`, `load_matrices<true>` | four 8×8 matrices of 16-bit elements from "
      "threadgroup memory, in the layout of `mma_m16n8k16`; or transposed |\n"
      "| `transpose_8x8` | of a matrix that a simdgroup holds |\n"
      "| `byte_permute` | four bytes out of eight |\n"
      "| `pack_half`, `pack_bfloat` | two floats rounded into one word |\n"
      "| `load_streaming` | a load of what is read once |\n"
      "| `async_copy`, `async_copy_commit`, `async_copy_wait` | copies from device to threadgroup "
      "memory beside the kernel |\n"
      "| `wait_for_launches_before`, `allow_next_launch` | for kernels that may overlap with their "
      "neighbours in a list |\n";
  text +=
      "\n## Accesses outside of the arguments\n\n"
      "What a kernel writes outside of its arguments and arrays is not written, and fails the "
      "outputs of the call:\n"
      "`[name] the kernel writes outside of \"y\" at body:3:7: byte 1024 of 1024`. What it reads "
      "there is 0, and one line on stderr says\n"
      "so, once for each kernel. With `HOLDFAST_GUARD_KERNELS=strict` such reads fail the outputs, "
      "too. Accesses that are proved to lie inside\n"
      "cost nothing. `HOLDFAST_GUARD_KERNELS=0`, or `compile_options={\"guard\": False}` for one "
      "kernel, turns the guards off.\n";
  text +=
      "\n## Missing barriers\n\n"
      "A kernel in which threads of one simdgroup read threadgroup memory that those of another "
      "write, with no `threadgroup_barrier`\n"
      "between them, is wrong. On Apple's GPUs many such kernels work by timing; here they give "
      "wrong numbers. When a kernel is compiled, its addresses and\n"
      "conditions are computed for one threadgroup of the call, as far as they follow from the "
      "positions of threads. What races then is said on stderr,\n"
      "once for each kernel, with both lines. Silence proves nothing: `HOLDFAST_VALIDATE=1` looks "
      "at every access while the kernel runs ([validation.md](validation.md)).\n";
  text +=
      "\n"
      "## Function constants\n"
      "\n"
      "A kernel that refers to a function constant that was given no value is an error that names "
      "it. `holdfast kernel check` assumes 0 or false\n"
      "for those that no `--constant` gives, `is_function_constant_defined` is false of them, and "
      "names them for each kernel that refers to one.\n"
      "\n"
      "## Bounds of a source\n"
      "\n"
      "What is beyond a bound is an error at its place in the source: 4 000 000 tokens, 5000 "
      "inclusions of files, 400 000 instantiations of\n"
      "templates (512 deep), 65 536 integers in a `make_index_sequence`, 1 000 000 steps of a "
      "constant expression, 100 000 instructions of a kernel with\n"
      "the functions that it calls, 1 MiB of private arrays. A source that is nested too deeply "
      "for the compiler's stack is an error, too, and\n"
      "so is a bug of the compiler that shows as an access through null; what that costs a process "
      "is at `run_guarded` (`src/msl/frontend/guard.h`).\n"
      "`holdfast kernel check` compiles in a process of its own, so that what else goes wrong in "
      "the compiler is one more line that says FAILED.\n";
  text += "\n## What is not there\n\n| not there | the error says |\n|---|---|\n";
  for (const Refusal& refusal : refusals())
    text += "| " + cell(refusal.name) + " | " + cell(refusal.message) + " |\n";
  return text;
}

}  // namespace

TEST_CASE("features: every row, widened, on the reference lowering and in plain C++") {
  const char* only = std::getenv("HOLDFAST_TEST_FEATURE");  // a part of a name
  std::vector<InstructionSet> sets = instruction_sets();
  size_t row = 0;
  for (const Section& section : all_features()) {
    for (const Feature& feature : section.features) {
      ++row;
      if (only && std::string(feature.name).find(only) == std::string::npos) continue;
      CAPTURE(std::string(section.title));
      CAPTURE(std::string(feature.name));
      std::vector<Argument> expected = feature.outputs;
      Arrays arrays(feature.inputs, expected);
      feature.expected(arrays);
      try {
        std::vector<Argument> reference = run_feature(feature, Lowering::reference, sets.back());
        CHECK(differences(feature, reference, expected) == "");
        // The widest instruction set, and one of the others in turn.
        for (InstructionSet set : std::set{sets.back(), sets[row % sets.size()]}) {
          CAPTURE(std::string(instruction_set_name(set)));
          std::vector<Argument> widened = run_feature(feature, Lowering::widened, set);
          CHECK(differences(feature, widened, expected) == "");
          CHECK(are_same_bits(widened, reference));
        }
      } catch (const std::exception& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
}

TEST_CASE("features: what is not there is refused by name") {
  for (const Refusal& refusal : refusals()) {
    CAPTURE(std::string(refusal.name));
    Feature feature{"refused", refusal.body, {floats("x")}, {zeros("y", float32)}, {}};
    feature.header = refusal.header;
    std::string message = "it compiled";
    try {
      run_feature(feature, Lowering::automatic, host_instruction_set());
    } catch (const CompileError& error) {
      message = error.what();
    }
    CHECK(message.starts_with("[refused] "));
    CHECK_MESSAGE(message.find(refusal.message) != std::string::npos, message);
  }
}

TEST_CASE("features: the list in docs/metal.md is this table") {
  const std::string path = HOLDFAST_SOURCE_DIRECTORY "/docs/metal.md";
  if (std::getenv("HOLDFAST_UPDATE_DOCS")) std::ofstream(path, std::ios::binary) << markdown();
  const bool is_current = read_text(path) == markdown();
  CHECK_MESSAGE(is_current,
                "HOLDFAST_UPDATE_DOCS=1 test-jit --test-case='*docs/metal.md*' writes it");
}
