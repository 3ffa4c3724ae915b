#include "devices/cpu/jit/compiler/widen/intrinsics.h"

#include <llvm/ADT/StringMap.h>

#include <iterator>

namespace holdfast::jit {
namespace {

struct Row {
  const char* name;
  Behaviour behaviour;
};
constexpr Row rows[] = {
#define X(name, result, parameters, behaviour) {#name, Behaviour::behaviour},
#include "msl/intrinsics.def"
#undef X
};

const llvm::StringMap<uint8_t>& table() {
  static const llvm::StringMap<uint8_t> result = [] {
    llvm::StringMap<uint8_t> map;
    for (size_t i = 0; i < std::size(rows); ++i) map[rows[i].name] = static_cast<uint8_t>(i);
    return map;
  }();
  return result;
}

}  // namespace

std::optional<msl::Intrinsic> kernel_intrinsic(const llvm::Value& value) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(&value);
  if (!call || !call->getCalledFunction()) return std::nullopt;
  llvm::StringRef name = call->getCalledFunction()->getName();
  if (!name.consume_front(msl::intrinsic_prefix)) return std::nullopt;
  auto found = table().find(name);
  if (found == table().end()) return std::nullopt;
  return static_cast<msl::Intrinsic>(found->second);
}

Behaviour behaviour_of(msl::Intrinsic intrinsic) {
  return rows[static_cast<size_t>(intrinsic)].behaviour;
}

bool is_call_of(const llvm::Value& value, msl::Intrinsic intrinsic) {
  return kernel_intrinsic(value) == intrinsic;
}

}  // namespace holdfast::jit
