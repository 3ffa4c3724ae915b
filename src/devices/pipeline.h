// Pipeline: a compiled kernel that is ready to run on its device. Command lists own the pipelines
// that they dispatch, until they have completed; the kernel library owns those it may hand out
// again. Nothing else has to keep one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ref.h"
#include "devices/argument_range.h"
#include "devices/place.h"
#include "msl/kernel_source.h"

namespace holdfast::exec {

class Buffer;

// What is bound to a slot of a dispatch: a binding of the command, or inline bytes. A dispatch is
// encoded from these; they are kept only while a layer looks at commands.
struct BoundSlot {
  uint32_t slot = 0;
  uint32_t binding = Bound::nothing;  // nothing: inline bytes, or an array without elements
  const Buffer* buffer = nullptr;     // null: inline bytes
  const void* bytes = nullptr;        // inline bytes: copied when the dispatch is encoded
  std::string_view errors;            // not empty: an ErrorReport with these texts, copied, too
  int64_t begin = 0, end = 0;         // of the buffer; of other arguments: 0 and their bytes
  int64_t start = 0;                  // of the buffer: where the kernel's argument points to
  uint32_t item_size = 1;
  bool is_contiguous = true;
  bool is_input = false;                   // given for reading only
  bool has_contents = true;                // false: nobody has written to it yet
  const std::string* bound_for = nullptr;  // the kernel it was bound for; null: this one
};

// Where an argument of a dispatch points to; a threadgroup argument has neither.
struct DispatchArgument {
  Place place;
  // Inline, in the arena of the list; null: `place`. Of an ErrorReport, where a device that runs on
  // the host lets the kernel write.
  const void* bytes = nullptr;
  std::string_view errors;  // the texts of an ErrorReport; empty for everything else
};

// What a dispatch command runs its pipeline with. Plain data, in the arena of its list.
struct Dispatch {
  const DispatchArgument* arguments = nullptr;  // by KernelInterface::arguments
  uint32_t argument_count = 0;
  // As many, where a device that runs on the host writes the address of each argument before it
  // runs: nothing is allocated then.
  void** addresses = nullptr;
  // Bytes of threadgroup arguments and of inline bytes, by KernelInterface::arguments; null when
  // there are none.
  const uint32_t* threadgroup_bytes = nullptr;
  // What a guarded kernel may touch, by KernelInterface::arguments; entries of threadgroup
  // arguments are not looked at.
  const ArgumentRange* ranges = nullptr;
  uint32_t grid[3] = {1, 1, 1};         // threads
  uint32_t threadgroup[3] = {1, 1, 1};  // threads; clamped to the grid
  const BoundSlot* slots = nullptr;     // those that are bound, while a layer looks at commands
  uint32_t slot_count = 0;
};

// How a kernel was compiled, for its author.
struct PipelineReport {
  std::string code;             // "widened", "reference", "checked"; "PTX"
  std::string reason;           // why it runs slowly; empty: it does not
  std::string missing_barrier;  // a barrier that seems to be missing; empty: none was found
};

// What is seen of it never changes: any number of threads and lists may use it at once.
class Pipeline : public RefCounted {
 public:
  Pipeline();
  virtual ~Pipeline();

  // The user's name of the kernel, for messages.
  virtual const std::string& name() const = 0;
  virtual const msl::KernelInterface& interface() const = 0;
  // Throws std::invalid_argument, "[name] …", when the device cannot run it like this.
  virtual void check(const Dispatch& dispatch) const = 0;

  virtual PipelineReport report() const { return {}; }

  // What it was compiled from: a Ref<const exec::KernelRequest>. Null for what a test made. Where
  // it came from, and how long that took. Set before anybody else sees the pipeline.
  std::shared_ptr<const void> origin;
  enum class Source : uint8_t { compiler, image, disk };
  Source source = Source::compiler;
  double milliseconds = 0;

  // Never reused: tells a pipeline from a later one at the same address.
  uint64_t identity() const { return identity_; }
  // Is there still a pipeline of this identity? Test builds ask before each dispatch.
  static bool is_alive(uint64_t identity);
  static size_t live_count();
  // Called with the identity of each pipeline that ends; null: nobody wants to know.
  static std::atomic<void (*)(uint64_t identity)> when_retired;

 private:
  const uint64_t identity_;
};

}  // namespace holdfast::exec
