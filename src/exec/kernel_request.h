// KernelRequest: one kernel that somebody wants to run, and the key that it is known by.
//
// The key is everything that decides what the machine code does: the generated source with its
// dtypes and template values, the entry, function constants, math mode, the files it includes, the
// target (Target::identity) and its variant. The kernel's name is in it as part of the source; it
// is never the key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/hash.h"
#include "base/ref.h"
#include "devices/target.h"

namespace holdfast::exec {

// Never changes once it is made. Keep one for a kernel that is dispatched often: looking up the
// same request again compares no bytes.
class KernelRequest : public RefCounted {
 public:
  // `forced_hash` is for tests of what happens when two keys have one hash.
  KernelRequest(msl::KernelSource source, KernelOptions options, Target& target,
                std::optional<Hash128> forced_hash = {});

  const msl::KernelSource& source() const { return source_; }
  const KernelOptions& options() const { return options_; }
  Target& target() const { return target_; }
  const std::string& key() const { return key_; }
  const Hash128& hash() const { return hash_; }
  bool has_same_key(const KernelRequest& other) const {
    return this == &other || (hash_ == other.hash_ && key_ == other.key_);
  }
  // False when the source includes files in a way that the key cannot follow (`#include MACRO`):
  // then it is compiled each time.
  bool is_cacheable() const { return is_cacheable_; }

 private:
  msl::KernelSource source_;
  KernelOptions options_;
  Target& target_;
  bool is_cacheable_ = true;
  std::string key_;
  Hash128 hash_;
};

// `guarded`: the program did not ask for a kernel without guards, and HOLDFAST_GUARD_KERNELS has
// the last word.
KernelOptions user_kernel_options(bool guarded = true);

// Function constants as bytes, in keys and in captures: a count; of each u32 index, text name, text
// type and the words of its value.
void write_constants(const std::vector<msl::FunctionConstant>& constants, ByteWriter& out);
// `words`: how many of them were written of each value.
std::vector<msl::FunctionConstant> read_constants(ByteReader& in, size_t words);

}  // namespace holdfast::exec
