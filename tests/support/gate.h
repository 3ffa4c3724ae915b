// Gate: keeps a stream's work in flight until it is opened.
#pragma once

#include <memory>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast::testing {

// A command in front of everything that is submitted to the stream later; it ends when the gate is
// opened. Nobody may wait for the stream without a timeout while the gate is closed. The gate opens
// and drains at its end.
class Gate {
 public:
  explicit Gate(Stream stream);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open();
  // Waits until the command runs: everything submitted before has completed.
  void wait_until_reached();

 private:
  struct State;
  std::shared_ptr<State> state_;
  array input_;  // held here: the gate also works without retaining
  array command_;
};

}  // namespace holdfast::testing
