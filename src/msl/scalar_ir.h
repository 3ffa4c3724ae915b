// Scalar IR: what the front-end hands to a lowering. One function is one thread.
//
// The module holds one kernel function, `void @<entry>(…)`, the only external one, optimised
// without vectorising (mem2reg, SROA, inlining of everything, simplified control flow). In it
//   - every parameter is a pointer: addrspace(1) a `device` buffer, addrspace(5) a `constant` one,
//   addrspace(3)
//     dynamic threadgroup memory. Parameter i is slot i of KernelInterface::arguments. There are no
//     others;
//   - the only calls are to `__hf_<name>` for the rows of intrinsics.def and to LLVM's own
//   intrinsics on
//     scalars (fma, sqrt, floor, minnum, ctpop, memcpy, lifetime, …); there is no recursion and no
//     call through a pointer;
//   - beside it there may be shared functions: internal, of scalars (float, i32, i64) that give
//   one,
//     without memory, loops, cross-lane operations and further calls but of LLVM's intrinsics. The
//     kernel calls them wherever it likes, also before it is known whether the result is needed;
//   - threadgroup variables are globals in addrspace(3) without a value (undef), constant tables
//   globals in
//     addrspace(5) with one; there are no other globals that are written;
//   - private memory is allocas in the entry block (addrspace 0); casts to addrspace(0) are removed
//   where
//     infer-address-spaces could;
//   - `half` and `bfloat` are the IR types half and bfloat; their arithmetic is already written as
//   IR arithmetic of
//     the type that MSL prescribes (a lowering must keep the rounding after each operation);
//   - loads whose bytes are read once are !nontemporal;
//   - values are scalars; vectors may appear only as the type of loads and stores and of bit casts
//   of these;
//   - barriers and cross-lane calls are `convergent`.
#pragma once

#include <cstdint>

namespace holdfast::msl {

namespace address_space {
inline constexpr unsigned generic = 0, device = 1, threadgroup = 3, constant = 5;
}

// The rows of intrinsics.def.
enum class Intrinsic : uint8_t {
#define X(name, result, parameters, behaviour) name,
#include "msl/intrinsics.def"
#undef X
};

// What the front-end does to the code before it hands it on.
//   optimised   all that makes it fast
//   with_lines  the same; instructions know the place in the source that they come from
//   as_written  with lines, too. A thread touches the memory outside of itself where the source
//   says
//               so and nowhere else: no load is made on a path that the source does not take, and
//               none is left out but those whose value the thread itself has just read or written
enum class ScalarForm : uint8_t { optimised, with_lines, as_written };

// What a lowering wants, beside what all of them do.
struct LoweringTraits {
  // Loads and stores say of their address what the source's types promise. Otherwise no more than a
  // scalar needs: kernels cast pointers to float4* that are aligned for a float alone, as GPUs
  // allow.
  bool keeps_source_alignment = false;
  // llvm.exp2 and llvm.log2 of float are left where the source asks for no more than about 20 bits
  // (fast::exp, exponentials of half). Otherwise there are none.
  bool has_approximations = false;
  // The rows of intrinsics.def for include/holdfast/tile.h are left as calls: those that touch no
  // memory, and those that do.
  bool has_tile_instructions = false, has_tile_memory = false;
  // Messages of kernels (metal::os_log) go nowhere: there are no calls of `log`.
  bool drops_messages = false;
};

inline constexpr const char* intrinsic_prefix = "__hf_";

}  // namespace holdfast::msl
