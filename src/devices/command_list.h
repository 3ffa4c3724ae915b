// CommandList: work for a device, as plain data. Commands hold no addresses: they name what they
// work on by their bindings (Place), which the device resolves when it runs them. Only a native
// command whose body was made without a context does (Encoder::native).
//
// A list starts when the lists it waits for have completed and the earlier lists of its queue have;
// its completion is its signal. Waits and signals stand at the list, not among the commands: a
// queue runs its lists in order, so a wait in the middle would only split the list, and the queue
// does that itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/label.h>

#include "devices/memory.h"
#include "devices/pipeline.h"
#include "devices/place.h"

namespace holdfast::exec {

// What the bytes of a binding are, for checks; complex numbers are two of float32. Integers count
// as numbers that are always finite.
enum class Elements : uint8_t { unknown, integers, float16, bfloat16, float32, float64 };

// One range of bytes that a command reads or writes.
struct Binding {
  Buffer* buffer;
  uint64_t identity;  // the buffer's when it was bound
  Storage* storage;
  int64_t begin, end;
  bool writes;
  Elements elements = Elements::unknown;
  uint32_t hazard_slot = 0;  // where the storage is in the list's HazardTable
  int64_t start = 0;         // where the first element is: not at `begin` when strides are negative
  // Where `buffer` is a replica that is written: the buffer that the array holds, which fails with
  // it (exec/replicas.h). Else null.
  Buffer* original = nullptr;

  // The command that writes it has failed.
  void fail(const Ref<Failure>& failure) const noexcept {
    buffer->fail(failure);
    if (original) original->fail(failure);
  }
};

// A command that must run before: because of its data, or only because memory is reused.
struct Edge {
  enum class Kind : uint8_t { data, reuse };
  uint32_t predecessor;
  Kind kind;
};

struct CommandList;

struct Command {
  enum class Kind : uint8_t { native, copy, fill, dispatch };

  Kind kind = Kind::native;
  // Calls a function of the program (Encoder::host_callback), which may wait for another stream, or
  // for anything else.
  bool may_wait = false;
  uint16_t pattern_size = 0;     // of a fill
  uint32_t parameter_bytes = 0;  // of a native command
  const char* op = "";           // the primitive that encoded it
  const char* detail = "";       // which of its commands
  label::Label label;
  uint32_t first_binding = 0, binding_count = 0;
  // What a program's primitive reads and writes as a whole, whether this command bound it or not:
  // decides failures only. Hazards and layers go by the command's own bindings.
  uint32_t first_of_op = 0, count_of_op = 0;
  uint32_t first_edge = 0, edge_count = 0;
  int64_t tasks = 1;  // native: run(parameters, begin, end) over ranges of [0, tasks)
  int64_t work = 0;   // bytes moved, or an equivalent: decides how many threads help

  void (*run)(void*, int64_t, int64_t) = nullptr;
  void* parameters = nullptr;
  // native: where the device writes the address of each binding's start before `run` (in the arena
  // of the list); null: the parameters hold addresses.
  void** addresses = nullptr;
  // copy: source → target; fill: the pattern, in the arena of the list, repeated over target
  Place source, target;
  size_t bytes = 0;
  const void* pattern = nullptr;
  // dispatch: the pipeline over a grid; `work` is the bytes that are bound
  const Pipeline* pipeline = nullptr;
  uint64_t pipeline_identity = 0;  // the pipeline's when it was encoded
  const Dispatch* dispatch = nullptr;
  // Runs in place of `pipeline`, and what its threads do wrong is told to the layers; null: none.
  const Pipeline* checked = nullptr;
};

// Sees each command of a list on the thread that runs it, in order.
class CommandObserver {
 public:
  virtual void before(const CommandList& list, uint32_t command) noexcept = 0;
  // Also for a command that failed or was skipped.
  virtual void after(const CommandList& list, uint32_t command, bool failed) noexcept = 0;

  CommandObserver* next = nullptr;  // of the list

 protected:
  ~CommandObserver() = default;
};

// An op and its commands, for a layer that wants to run it again elsewhere.
struct NotedOp {
  enum class Replay : uint8_t {
    commands,  // they are plain data
    call,      // they are native code; `text` says how to call the op again (graph/op_note.h)
    none,      // they are native code of the user's
  };
  struct Output {
    uint64_t buffer;
    int64_t begin, end;
  };
  uint32_t first_command = 0, command_count = 0;
  Replay replay = Replay::none;
  std::string text;
  std::vector<Output> outputs;
};

// Memory for the parameters of a list's commands: freed all at once, kept for the next list.
class Arena {
 public:
  void* allocate(size_t size, size_t alignment);
  void clear();

 private:
  static constexpr size_t block_size = 64 * 1024;
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    size_t size;
  };
  std::vector<Block> blocks_;
  size_t block_ = 0, used_ = 0;
};

struct CommandList {
  DeviceQueue* queue = nullptr;
  uint64_t serial = 0;
  std::vector<Stamp> waits;
  std::vector<Command> commands;
  std::vector<Binding> bindings;
  std::vector<Edge> edges;
  std::vector<Buffer*> retained;
  std::vector<Ref<const Pipeline>> pipelines;  // that its commands dispatch
  struct Destructor {
    void (*destroy)(void*);
    void* object;
  };
  std::vector<Destructor> destructors;
  Arena arena;
  int64_t work = 0;
  int ops = 0;

  // Called by the device when every command has run or failed, under no lock: releases everything.
  // Allocates nothing. Deleters of the user's do not run in it: it returns what runs them, to be
  // called on the same thread, under no lock, once those who wait for the list may go on; null when
  // there are none.
  using AfterCompletion = void (*)();
  AfterCompletion (*finish)(CommandList&) = nullptr;
  // Called when a command failed that nobody may wait for. Never throws.
  void (*failed)(CommandList&, const Command&, const Ref<Failure>&) = nullptr;
  void* owner = nullptr;         // the exec::Queue, for the two functions
  std::shared_ptr<void> layers;  // the chain of layers this list was committed under, or null

  std::vector<NotedOp> notes;
  CommandObserver* observers = nullptr;  // of layers, which own them; the last one added first

  CommandList* next = nullptr;  // in the device's or the queue's list of lists

  void add_observer(CommandObserver& observer) {
    observer.next = observers;
    observers = &observer;
  }

  // Destroys parameters and forgets everything but memory. `retained` and `pipelines` must be
  // empty.
  void clear();

 private:
  void destroy_parameters();
};

}  // namespace holdfast::exec
