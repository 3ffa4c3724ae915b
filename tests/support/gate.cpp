#include "support/gate.h"

#include <holdfast/transforms.h>

#include "base/sync.h"
#include "support/test_ops.h"

namespace holdfast::testing {

struct Gate::State {
  sync::Mutex mutex;
  sync::CondVar changed;
  bool is_open = false;
  bool is_reached = false;

  void pass() {
    std::unique_lock lock(mutex);
    is_reached = true;
    changed.notify_all();
    changed.wait(lock, [&] { return is_open; });
  }
};

Gate::Gate(Stream stream)
    : state_(std::make_shared<State>()),
      input_(counting(1)),
      command_(with_callback(input_, [state = state_] { state->pass(); }, stream)) {
  async_eval(command_);
}

Gate::~Gate() {
  open();
  command_.wait();
}

void Gate::open() {
  std::lock_guard guard(state_->mutex);
  state_->is_open = true;
  state_->changed.notify_all();
}

void Gate::wait_until_reached() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->is_reached; });
}

}  // namespace holdfast::testing
