// Makes an encoder findable by Encoder::of on this thread, for the time of one op.
#pragma once

#include <utility>

#include <holdfast/encoder.h>

#include "exec/kernel_library.h"

namespace holdfast {

// The bytes of its buffer that an array with elements may touch.
std::pair<int64_t, int64_t> byte_interval(const array& a);

class EncoderScope {
 public:
  // With `keeps_graph` the op's inputs stay reachable through its outputs: none is donated. An op
  // of the library is encoded again when a kernel is not ready (exec::NotReady); a program's
  // primitive may compile kernels and wait for them.
  EncoderScope(exec::Queue& queue, bool is_of_library, bool keeps_graph = false)
      : encoder(queue),
        keeps_graph_(keeps_graph),
        outer_(innermost_),
        outer_only_finds_(std::exchange(exec::KernelLibrary::only_finds, is_of_library)) {
    innermost_ = this;
  }
  ~EncoderScope() {
    innermost_ = outer_;
    exec::KernelLibrary::only_finds = outer_only_finds_;
  }
  EncoderScope(const EncoderScope&) = delete;
  EncoderScope& operator=(const EncoderScope&) = delete;

  Encoder encoder;
  // The queue that this thread encodes for; null outside.
  static exec::Queue* current() { return innermost_ ? &innermost_->encoder.queue() : nullptr; }
  static bool allows_donation() { return !innermost_ || !innermost_->keeps_graph_; }

 private:
  friend class Encoder;
  bool keeps_graph_;
  EncoderScope* outer_;
  bool outer_only_finds_;
  static thread_local EncoderScope* innermost_;
};

}  // namespace holdfast
