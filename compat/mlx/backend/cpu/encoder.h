// MLX's way to put work of a primitive on a CPU stream.
#pragma once

#include <functional>
#include <utility>

#include <holdfast/encoder.h>

#include "mlx/core.h"
#include "mlx/scheduler.h"

namespace mlx::core::cpu {

class CommandEncoder {
 public:
  explicit CommandEncoder(Stream stream) : stream_(stream) {}
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;

  // What is set is held until the work is done; it belongs to the next `dispatch`.
  void set_input_array(const array& a) { Encoder::of(stream_).input(a); }
  void set_output_array(array& a) { Encoder::of(stream_).output(a); }
  // Holds the array until the next `dispatch` is done.
  void add_temporary(array a) { Encoder::of(stream_).output(a); }
  void add_temporaries(std::vector<array> arrays) {
    for (array& a : arrays) add_temporary(a);
  }

  template <class F, class... Args>
  void dispatch(F&& f, Args&&... args) {
    Encoder::of(stream_).host_callback(
        "custom primitive",
        [f = std::forward<F>(f), ... args = std::forward<Args>(args)]() mutable {
          std::invoke(f, args...);
        });
  }

 private:
  Stream stream_;
};

// The encoder of the stream that this thread is encoding for; to be used inside eval_cpu.
CommandEncoder& get_command_encoder(Stream stream);

}  // namespace mlx::core::cpu
