#include "devices/cpu/jit/compiler/widen/strided_loads.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <numeric>

#include "devices/cpu/jit/kernel_abi.h"

namespace holdfast::jit {
namespace {

using llvm::dyn_cast;
using llvm::Value;

constexpr unsigned width = simdgroup_width;

struct Address {
  const Value* root;
  int64_t offset;
};

Address split(const Value* pointer, const llvm::DataLayout& layout) {
  llvm::APInt offset(64, 0);
  const Value* root = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  return {root, offset.getSExtValue()};
}

uint64_t size_of(const llvm::LoadInst& load, const llvm::DataLayout& layout) {
  return layout.getTypeStoreSize(load.getType());
}

// Lanes at final places, from many sources: two at a time.
Value* pick(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> sources, unsigned chunk,
            llvm::ArrayRef<int> indices) {
  struct Part {
    Value* vector;
    llvm::SmallVector<int, 32> from;  // element for each lane, or -1
  };
  std::vector<Part> parts;
  for (size_t s = 0; s < sources.size(); ++s) {
    llvm::SmallVector<int, 32> from(indices.size(), -1);
    bool used = false;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (static_cast<unsigned>(indices[i]) / chunk == s) {
        from[i] = static_cast<int>(static_cast<unsigned>(indices[i]) % chunk);
        used = true;
      }
    }
    if (used) parts.push_back({sources[s], std::move(from)});
  }
  while (parts.size() > 1) {
    std::vector<Part> next;
    for (size_t p = 0; p + 1 < parts.size(); p += 2) {
      const Part &x = parts[p], &y = parts[p + 1];
      unsigned x_size = llvm::cast<llvm::FixedVectorType>(x.vector->getType())->getNumElements();
      llvm::SmallVector<int, 32> pattern(indices.size(), -1), kept(indices.size(), -1);
      for (size_t i = 0; i < indices.size(); ++i) {
        if (x.from[i] >= 0) pattern[i] = x.from[i];
        if (y.from[i] >= 0) pattern[i] = static_cast<int>(x_size) + y.from[i];
        if (pattern[i] >= 0) kept[i] = static_cast<int>(i);
      }
      next.push_back({b.CreateShuffleVector(x.vector, y.vector, pattern), kept});
    }
    if (parts.size() % 2) {
      Part& last = parts.back();
      next.push_back({b.CreateShuffleVector(last.vector, last.from), {}});
      next.back().from.resize(indices.size(), -1);
      for (size_t i = 0; i < indices.size(); ++i) {
        if (last.from[i] >= 0) next.back().from[i] = static_cast<int>(i);
      }
    }
    parts = std::move(next);
  }
  return b.CreateShuffleVector(parts[0].vector, parts[0].from);
}

}  // namespace

bool StridedGroup::pays(InstructionSet set) const {
  if (members.empty() || word == 0) return false;
  uint64_t words = static_cast<uint64_t>(stride) / word;
  if (words <= 1) return true;
  if (set == InstructionSet::baseline && members.size() < words / 2) return false;
  // Two registers are read for each word of the stride; a gather reads 32 elements.
  return words <= 8 || (words <= 32 && members.size() * 4 >= words);
}

StridedGroup find_strided_group(llvm::LoadInst& leader, int64_t stride,
                                const llvm::DataLayout& layout,
                                llvm::function_ref<int64_t(const Value*)> stride_of) {
  StridedGroup group;
  uint64_t size = size_of(leader, layout);
  if (stride <= 0 || stride > 256 || (size & (size - 1)) || size > 8 ||
      static_cast<uint64_t>(stride) % size != 0)
    return group;
  Address first = split(leader.getPointerOperand(), layout);
  group.stride = stride;
  for (llvm::Instruction* at = &leader; at; at = at->getNextNode()) {
    if (at->mayWriteToMemory() || at->isTerminator()) break;
    auto* load = dyn_cast<llvm::LoadInst>(at);
    if (!load || !load->isSimple()) continue;
    if (size_of(*load, layout) != size) continue;
    Address address = split(load->getPointerOperand(), layout);
    if (address.root != first.root || stride_of(load->getPointerOperand()) != stride) continue;
    group.members.push_back({load, address.offset - first.offset});
  }
  // Those that lie within one stride of each other: the leader and what follows it, else what is
  // around it.
  int64_t low = 0;
  for (const auto& member : group.members) {
    if (member.offset < 0 && member.offset > -stride) low = std::min(low, member.offset);
  }
  std::erase_if(group.members, [&](const StridedGroup::Member& member) {
    return member.offset < low || member.offset >= low + stride ||
           (member.offset - low) % static_cast<int64_t>(size) != 0;
  });
  group.leader_offset = -low;
  for (auto& member : group.members) {
    member.offset -= low;
    group.span = std::max(group.span, static_cast<uint64_t>(member.offset) + size);
  }
  // Small elements travel in words. A word must not reach beyond what is read anyway, unless it is
  // aligned.
  group.word = size;
  if (size < 4 && stride % 4 == 0) {
    bool covered = group.span % 4 == 0;
    bool aligned = leader.getAlign() >= llvm::Align(4) && group.leader_offset % 4 == 0;
    group.word = covered || aligned ? 4 : 0;
  } else if (size == 1 && stride == 2) {
    group.word = group.span == 2 || leader.getAlign() >= llvm::Align(2) ? 2 : 0;
  } else if (size < 4) {
    group.word = 0;
  }
  return group;
}

std::vector<Value*> load_strided_group(llvm::IRBuilder<>& b, const StridedGroup& group, Value* base,
                                       llvm::Align align) {
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(group.word * 8));
  unsigned words = static_cast<unsigned>(static_cast<uint64_t>(group.stride) / group.word);
  unsigned used = static_cast<unsigned>((group.span + group.word - 1) / group.word);
  unsigned chunk = group.word == 8 ? 8 : group.word == 4 ? 16 : 32;
  unsigned total = (width - 1) * words + used;
  if (group.leader_offset)
    base =
        b.CreateGEP(b.getInt8Ty(), base, b.getInt64(static_cast<uint64_t>(-group.leader_offset)));
  llvm::Align word_align = std::min(align, llvm::Align(group.word));
  if (group.leader_offset)
    word_align = llvm::commonAlignment(word_align, static_cast<uint64_t>(group.leader_offset));
  llvm::SmallVector<Value*, 64> sources;
  auto* type = llvm::FixedVectorType::get(word, chunk);
  for (unsigned start = 0; start < total; start += chunk) {
    Value* at = start ? b.CreateConstGEP1_64(b.getInt8Ty(), base, start * group.word) : base;
    unsigned count = std::min(chunk, total - start);
    if (count == chunk) {
      sources.push_back(b.CreateAlignedLoad(type, at, word_align));
      continue;
    }
    // The last vector ends inside: read it from further back, and turn it.
    unsigned back = std::min(chunk - count, start);
    Value* earlier =
        b.CreateGEP(b.getInt8Ty(), at,
                    b.getInt64(static_cast<uint64_t>(-static_cast<int64_t>(back * group.word))));
    Value* read = b.CreateAlignedLoad(type, earlier, word_align);
    llvm::SmallVector<int, 32> pattern(chunk, -1);
    for (unsigned i = 0; i < count; ++i) pattern[i] = static_cast<int>(i + back);
    sources.push_back(b.CreateShuffleVector(read, pattern));
  }
  auto word_vector = [&](unsigned which) {
    llvm::SmallVector<Value*, 4> pieces;
    for (unsigned lane = 0; lane < width; lane += chunk) {
      llvm::SmallVector<int, 32> indices;
      for (unsigned i = 0; i < chunk; ++i)
        indices.push_back(static_cast<int>((lane + i) * words + which));
      pieces.push_back(pick(b, sources, chunk, indices));
    }
    while (pieces.size() > 1) {
      for (size_t i = 0; i + 1 < pieces.size(); i += 2) {
        unsigned n = llvm::cast<llvm::FixedVectorType>(pieces[i]->getType())->getNumElements();
        llvm::SmallVector<int, 32> both(2 * n);
        std::iota(both.begin(), both.end(), 0);
        pieces[i / 2] = b.CreateShuffleVector(pieces[i], pieces[i + 1], both);
      }
      pieces.resize(pieces.size() / 2);
    }
    return pieces[0];
  };
  std::vector<Value*> by_word(used, nullptr);
  std::vector<Value*> results;
  for (const StridedGroup::Member& member : group.members) {
    unsigned which = static_cast<unsigned>(static_cast<uint64_t>(member.offset) / group.word);
    uint64_t within = static_cast<uint64_t>(member.offset) % group.word;
    if (!by_word[which]) by_word[which] = word_vector(which);
    Value* v = by_word[which];
    const llvm::DataLayout& layout = member.load->getModule()->getDataLayout();
    uint64_t size = layout.getTypeStoreSize(member.load->getType());
    if (size < group.word) {
      if (within) v = b.CreateLShr(v, within * 8);
      v = b.CreateTrunc(
          v, llvm::FixedVectorType::get(b.getIntNTy(static_cast<unsigned>(size * 8)), width));
    }
    results.push_back(v);
  }
  return results;
}

}  // namespace holdfast::jit
