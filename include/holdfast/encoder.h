// Encoder: how a primitive puts work on its stream. Binding is retaining: what is bound to a
// command lives until the command list has completed, and there is no other way to bind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <holdfast/array.h>
#include <holdfast/native_context.h>
#include <holdfast/stream.h>

namespace holdfast {

namespace exec {
class Queue;
class Pipeline;
}  // namespace exec

// What a kernel's argument is bound to.
struct KernelBinding {
  enum class Kind : uint8_t {
    none,    // no buffer: the kernel has no argument of this slot
    input,   // an evaluated array
    output,  // an array with memory, read and written
    bytes,   // copied when the dispatch is encoded
    errors,  // what the kernel says about bad data fails the command (devices/error_report.h)
  };
  static KernelBinding input(const array& a) { return {Kind::input, &a, 0}; }
  static KernelBinding output(array& a) { return {Kind::output, &a, 0}; }
  static KernelBinding bytes(const void* address, size_t size) {
    return {Kind::bytes, address, size};
  }
  // `texts`: the messages, each with a zero behind it; copied when the dispatch is encoded.
  static KernelBinding errors(const char* texts, size_t size) {
    return {Kind::errors, texts, size};
  }
  Kind kind = Kind::none;
  const void* what = nullptr;  // an array, bytes, or texts
  size_t size = 0;             // of bytes, of texts
  // Bound for a dispatch of this kernel and still there; null: bound for the one at hand. For
  // validation.
  const exec::Pipeline* bound_for = nullptr;
};

// Used inside eval_cpu/eval_gpu of a primitive, on the thread that evaluates, with the stream's
// queue locked. A command takes the bindings made since the previous command.
class Encoder {
 public:
  // The encoder of the stream that this thread is encoding for; throws std::logic_error elsewhere.
  static Encoder& of(const Stream& stream);

  // The name of the op that is being encoded; it lives as long as the process.
  const char* op() const;

  // Memory for an output or a temporary that commands of this queue write. It may have been used by
  // earlier commands of the queue that have not run yet: the host must not touch it.
  allocator::Buffer allocate(size_t bytes);
  // Gives `out` row-contiguous memory of its own.
  void allocate(array& out);

  // Bind an evaluated array for reading, for writing, or both. What is returned names the array in
  // the next command.
  Bound input(const array& a);
  Bound output(array& a);
  // Bind bytes of a buffer by hand; the address that the next command gets is that of `begin`.
  Bound raw_input(const allocator::Buffer& buffer, int64_t begin, int64_t end);
  Bound raw_output(const allocator::Buffer& buffer, int64_t begin, int64_t end);

  // Adds a command that calls `body(context, begin, end)` over sub-ranges of [0, tasks), from
  // several threads when `work` (bytes moved, or an equivalent) makes that worth while. How the
  // ranges are cut must not change the result. `op` must outlive the process (a literal). A body
  // without a context, `body(begin, end)`, has to know its addresses: only on devices that run on
  // the host.
  template <typename Body>
  void native(const char* op, int64_t tasks, int64_t work, Body&& body) {
    add_callable({op, tasks, work, false}, std::forward<Body>(body));
  }
  // A command that calls `body()` or `body(context)` once, on some thread of the device. Unlike
  // other commands it may wait for anything: another thread runs commands meanwhile.
  template <typename Body>
  void host_callback(const char* op, Body&& body) {
    using Own = std::decay_t<Body>;
    if constexpr (std::is_invocable_v<Own&, const NativeContext&>) {
      add_callable({op, 1, 0, true},
                   [f = std::forward<Body>(body)](const NativeContext& context, int64_t,
                                                  int64_t) mutable { f(context); });
    } else {
      add_callable({op, 1, 0, true},
                   [f = std::forward<Body>(body)](int64_t, int64_t) mutable { f(); });
    }
  }
  // Copies the bytes of `source` to `target`; both contiguous and of the same size.
  void copy(const array& source, array& target);
  // Fills the contiguous `target` with a pattern of its item size.
  void fill(array& target, const void* value);

  // Runs a kernel over a grid of threads. `bindings` are its arguments by slot ([[buffer(n)]]),
  // `threadgroup_bytes` the sizes of its threadgroup arguments by theirs. The command list owns the
  // pipeline and all that is bound. Throws std::invalid_argument when the kernel wants an argument
  // that is not there, or the grid is not one that the device runs.
  struct Grid {
    uint32_t x = 1, y = 1, z = 1;
  };
  void dispatch(const exec::Pipeline& pipeline, std::span<const KernelBinding> bindings, Grid grid,
                Grid threadgroup, std::span<const uint32_t> threadgroup_bytes = {});

  // What another interface to this encoder keeps with it: dropped when the op is encoded.
  std::shared_ptr<void> attachment;

  exec::Queue& queue() { return queue_; }
  explicit Encoder(exec::Queue& queue) : queue_(queue) {}

 private:
  template <typename Body>
  struct BodyWithContext {
    NativeContext context;
    Body body;
    void operator()(int64_t begin, int64_t end) { body(context, begin, end); }
  };
  struct Native {
    const char* op;
    int64_t tasks, work;
    bool may_wait;
  };
  // Memory in the arena of the list: for a body, and for the addresses of what is bound now, which
  // the device writes there (exec::Command::addresses).
  struct BodyPlace {
    void* body;
    void** addresses;  // null: none
  };
  BodyPlace place_with_addresses(size_t size, size_t alignment);
  template <typename Body>
  void add_callable(const Native& command, Body&& body) {
    using Own = std::decay_t<Body>;
    if constexpr (std::is_invocable_v<Own&, const NativeContext&, int64_t, int64_t>) {
      using Stored = BodyWithContext<Own>;
      BodyPlace place = place_with_addresses(sizeof(Stored), alignof(Stored));
      add_body<Stored>(command, place, NativeContext(place.addresses), std::forward<Body>(body));
    } else {
      add_body<Own>(command, {parameters(sizeof(Own), alignof(Own)), nullptr},
                    std::forward<Body>(body));
    }
  }
  // Makes the body from its parts where it stays: some are large.
  template <typename Stored, typename... Parts>
  void add_body(const Native& command, BodyPlace place, Parts&&... parts) {
    new (place.body) Stored{std::forward<Parts>(parts)...};
    void (*destroy)(void*) = nullptr;
    if constexpr (!std::is_trivially_destructible_v<Stored>) {
      destroy = [](void* p) { static_cast<Stored*>(p)->~Stored(); };
    }
    add_native(command, place, destroy,
               [](void* p, int64_t begin, int64_t end) { (*static_cast<Stored*>(p))(begin, end); });
  }
  void* parameters(size_t size, size_t alignment);
  void add_native(const Native& native, BodyPlace place, void (*destroy)(void*),
                  void (*run)(void*, int64_t, int64_t));
  exec::Queue& queue_;
};

}  // namespace holdfast
