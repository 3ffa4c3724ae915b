#include "devices/cpu/jit/compiler/widen/strided_loads.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <map>
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

Value* concatenate(llvm::IRBuilder<>& b, llvm::SmallVectorImpl<Value*>& pieces) {
  while (pieces.size() > 1) {
    for (size_t i = 0; i + 1 < pieces.size(); i += 2) {
      unsigned n = llvm::cast<llvm::FixedVectorType>(pieces[i]->getType())->getNumElements();
      llvm::SmallVector<int, 64> both(2 * n);
      std::iota(both.begin(), both.end(), 0);
      pieces[i / 2] = b.CreateShuffleVector(pieces[i], pieces[i + 1], both);
    }
    pieces.resize(pieces.size() / 2);
  }
  return pieces[0];
}

// Word w of each lane, from vectors that hold lane after lane, `words` words each.
class Interleaved {
 public:
  Interleaved(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> vectors, unsigned chunk, unsigned words)
      : b_(b), chunk_(chunk), words_(words) {
    levels_[{1, 0}].assign(vectors.begin(), vectors.end());
    llvm::Type* type = vectors[0]->getType();
    levels_[{1, 0}].resize(width * words / chunk, llvm::PoisonValue::get(type));
  }
  llvm::SmallVector<Value*, 4> take(unsigned word) {
    const std::vector<Value*>& all = level(words_, word);
    return llvm::SmallVector<Value*, 4>(all.begin(), all.end());
  }

 private:
  // The words that are `word` modulo `step`.
  const std::vector<Value*>& level(unsigned step, unsigned word) {
    if (auto found = levels_.find({step, word}); found != levels_.end()) return found->second;
    std::vector<Value*> from = level(step / 2, word % (step / 2));
    llvm::SmallVector<int, 64> pattern(chunk_);
    for (unsigned i = 0; i < chunk_; ++i)
      pattern[i] = static_cast<int>(2 * i + (word >= step / 2 ? 1 : 0));
    std::vector<Value*>& result = levels_[{step, word}];
    for (size_t i = 0; i + 1 < from.size(); i += 2)
      result.push_back(b_.CreateShuffleVector(from[i], from[i + 1], pattern));
    return result;
  }

  llvm::IRBuilder<>& b_;
  unsigned chunk_, words_;
  std::map<std::pair<unsigned, unsigned>, std::vector<Value*>> levels_;
};

struct Segment {
  int64_t begin;   // bytes from the first member's address in lane 0
  uint64_t count;  // elements
};

// The pieces of memory that a group reads, in order.
std::vector<Segment> segments_of(const LoadGroup& group) {
  std::vector<int64_t> places;
  for (const LoadGroup::Member& member : group.members) {
    for (int64_t lane = 0; lane < width; ++lane)
      places.push_back(group.shape.offset(lane) + member.offset);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Segment> result;
  auto size = static_cast<int64_t>(group.size);
  for (int64_t place : places) {
    if (!result.empty() &&
        place == result.back().begin + static_cast<int64_t>(result.back().count) * size) {
      ++result.back().count;
    } else {
      result.push_back({place, 1});
    }
  }
  return result;
}

}  // namespace

bool LoadGroup::pays_transposed(InstructionSet set) const {
  if (members.empty() || word == 0) return false;
  uint64_t words = static_cast<uint64_t>(shape.stride) / word;
  if (words <= 1) return true;
  if (set == InstructionSet::baseline && members.size() < words / 2) return false;
  // Two registers are read for each word of the stride; a gather reads 32 elements.
  return words <= 8 || (words <= 32 && members.size() * 4 >= words);
}

bool LoadGroup::pays_in_segments() const {
  if (members.empty() || (size != 4 && size != 8)) return false;
  return segments_of(*this).size() <= 8 + 4 * (members.size() - 1);
}

LoadGroup find_load_group(llvm::LoadInst& leader, const Shape& shape,
                          const llvm::DataLayout& layout,
                          llvm::function_ref<Shape(const Value*)> shape_of) {
  LoadGroup group;
  uint64_t size = size_of(leader, layout);
  int64_t stride = shape.stride;
  if ((size & (size - 1)) || size > 8) return group;
  bool is_linear = shape.kind == Shape::linear;
  Address first = split(leader.getPointerOperand(), layout);
  group.shape = shape;
  group.size = size;
  // Others that belong here: within a stride, or close by.
  int64_t reach = is_linear ? std::abs(stride) : 16;
  for (llvm::Instruction* at = &leader; at; at = at->getNextNode()) {
    if (at->mayWriteToMemory() || at->isTerminator()) break;
    auto* load = dyn_cast<llvm::LoadInst>(at);
    if (!load || !load->isSimple()) continue;
    if (size_of(*load, layout) != size) continue;
    Address address = split(load->getPointerOperand(), layout);
    if (address.root != first.root || !shape_of(load->getPointerOperand()).moves_like(shape))
      continue;
    group.members.push_back({load, address.offset - first.offset});
  }
  // Those that lie within one stride of each other: the leader and what follows it, else what is
  // around it.
  int64_t low = 0;
  for (const auto& member : group.members) {
    if (member.offset < 0 && member.offset > -reach) low = std::min(low, member.offset);
  }
  std::erase_if(group.members, [&](const LoadGroup::Member& member) {
    return member.offset < low || member.offset >= low + reach ||
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
  if (!is_linear || stride <= 0 || stride > 256 || static_cast<uint64_t>(stride) % size != 0) {
    group.word = 0;
  } else if (size < 4 && stride % 4 == 0) {
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

std::vector<Value*> load_transposed(llvm::IRBuilder<>& b, const LoadGroup& group, Value* base,
                                    llvm::Align align) {
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(group.word * 8));
  unsigned words = static_cast<unsigned>(static_cast<uint64_t>(group.shape.stride) / group.word);
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
  // When many words of a power of two are wanted: evens and odds apart, again and again, which
  // shares the work; else each by itself.
  bool shares = (words & (words - 1)) == 0 && group.members.size() > 2;
  Interleaved interleaved(b, sources, chunk, words);
  auto word_vector = [&](unsigned which) {
    llvm::SmallVector<Value*, 4> pieces;
    if (shares) {
      pieces = interleaved.take(which);
    } else {
      for (unsigned lane = 0; lane < width; lane += chunk) {
        llvm::SmallVector<int, 32> indices;
        for (unsigned i = 0; i < chunk; ++i)
          indices.push_back(static_cast<int>((lane + i) * words + which));
        pieces.push_back(pick(b, sources, chunk, indices));
      }
    }
    return concatenate(b, pieces);
  };
  std::vector<Value*> by_word(used, nullptr);
  std::vector<Value*> results;
  for (const LoadGroup::Member& member : group.members) {
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

namespace {

// Each register's lanes read one place: no shuffles, since processors repeat an element as they
// load it. Empty where that is not so.
std::vector<Value*> load_repeated(llvm::IRBuilder<>& b, const LoadGroup& group, Value* base,
                                  llvm::Align align, unsigned chunk) {
  for (int64_t lane = 0; lane < width; ++lane) {
    int64_t first = lane - lane % static_cast<int64_t>(chunk);
    if (group.shape.offset(lane) != group.shape.offset(first)) return {};
  }
  llvm::Type* type = b.getIntNTy(static_cast<unsigned>(group.size * 8));
  std::vector<Value*> results;
  for (const LoadGroup::Member& member : group.members) {
    llvm::SmallVector<Value*, 4> parts;
    for (unsigned lane = 0; lane < width; lane += chunk) {
      int64_t place = group.shape.offset(lane) + member.offset - group.leader_offset;
      Value* at = b.CreateGEP(b.getInt8Ty(), base, b.getInt64(static_cast<uint64_t>(place)));
      Value* read = b.CreateAlignedLoad(type, at, std::min(align, llvm::Align(group.size)));
      parts.push_back(b.CreateVectorSplat(chunk, read));
    }
    results.push_back(concatenate(b, parts));
  }
  return results;
}

}  // namespace

std::vector<Value*> load_in_segments(llvm::IRBuilder<>& b, const LoadGroup& group, Value* base,
                                     llvm::Align align) {
  llvm::Type* type = b.getIntNTy(static_cast<unsigned>(group.size * 8));
  unsigned chunk = group.size == 8 ? 8 : 16;
  if (std::vector<Value*> repeated = load_repeated(b, group, base, align, chunk); !repeated.empty())
    return repeated;
  // Segments are put one after the other into vectors of `chunk`, none across a boundary that it
  // need not cross.
  struct Piece {
    int64_t begin;
    unsigned count, slot;
  };
  std::vector<Piece> pieces;
  unsigned slots = 0;
  for (const Segment& segment : segments_of(group)) {
    for (uint64_t done = 0; done < segment.count; done += chunk) {
      unsigned count = static_cast<unsigned>(std::min<uint64_t>(chunk, segment.count - done));
      unsigned room = static_cast<unsigned>(llvm::PowerOf2Ceil(count));
      slots = static_cast<unsigned>(llvm::alignTo(slots, room));
      pieces.push_back({segment.begin + static_cast<int64_t>(done * group.size), count, slots});
      slots += room;
    }
  }
  auto* vector = llvm::FixedVectorType::get(type, chunk);
  llvm::SmallVector<Value*, 16> sources(llvm::alignTo(slots, chunk) / chunk, nullptr);
  llvm::Align element_align = std::min(align, llvm::Align(group.size));
  for (const Piece& piece : pieces) {
    Value* at = b.CreateGEP(b.getInt8Ty(), base,
                            b.getInt64(static_cast<uint64_t>(piece.begin - group.leader_offset)));
    Value* read =
        b.CreateAlignedLoad(llvm::FixedVectorType::get(type, piece.count), at, element_align);
    llvm::SmallVector<int, 16> spread(chunk, -1);
    for (unsigned i = 0; i < piece.count; ++i) spread[piece.slot % chunk + i] = static_cast<int>(i);
    Value* placed = b.CreateShuffleVector(read, spread);
    Value*& source = sources[piece.slot / chunk];
    if (!source) {
      source = placed;
      continue;
    }
    llvm::SmallVector<int, 16> merge(chunk);
    for (unsigned i = 0; i < chunk; ++i) {
      bool is_new = i >= piece.slot % chunk && i < piece.slot % chunk + piece.count;
      merge[i] = static_cast<int>(is_new ? chunk + i : i);
    }
    source = b.CreateShuffleVector(source, placed, merge);
  }
  for (Value*& source : sources) {
    if (!source) source = llvm::PoisonValue::get(vector);
  }
  auto slot_of = [&](int64_t place) {
    for (const Piece& piece : pieces) {
      int64_t from = place - piece.begin;
      auto size = static_cast<int64_t>(group.size);
      if (from >= 0 && from % size == 0 && from / size < static_cast<int64_t>(piece.count))
        return piece.slot + static_cast<unsigned>(from / size);
    }
    return 0u;
  };
  std::vector<Value*> results;
  for (const LoadGroup::Member& member : group.members) {
    llvm::SmallVector<Value*, 4> parts;
    for (unsigned lane = 0; lane < width; lane += chunk) {
      llvm::SmallVector<int, 32> indices;
      for (unsigned i = 0; i < chunk; ++i)
        indices.push_back(static_cast<int>(slot_of(group.shape.offset(lane + i) + member.offset)));
      parts.push_back(pick(b, sources, chunk, indices));
    }
    results.push_back(concatenate(b, parts));
  }
  return results;
}

}  // namespace holdfast::jit
