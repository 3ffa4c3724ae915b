// Makes an encoder findable by Encoder::of on this thread, for the time of one op.
#pragma once

#include <holdfast/encoder.h>

namespace holdfast {

class EncoderScope {
 public:
  explicit EncoderScope(exec::Queue& queue) : encoder(queue), outer_(innermost_) {
    innermost_ = this;
  }
  ~EncoderScope() { innermost_ = outer_; }
  EncoderScope(const EncoderScope&) = delete;
  EncoderScope& operator=(const EncoderScope&) = delete;

  Encoder encoder;
  // The queue that this thread encodes for; null outside.
  static exec::Queue* current() { return innermost_ ? &innermost_->encoder.queue() : nullptr; }

 private:
  friend class Encoder;
  EncoderScope* outer_;
  static thread_local EncoderScope* innermost_;
};

}  // namespace holdfast
