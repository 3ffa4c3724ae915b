// Evaluation of lazy graphs.
#pragma once

#include <utility>
#include <vector>

#include <holdfast/array.h>

namespace holdfast {

// Starts the computation of `outputs` and returns; waiting for one of them waits for its data.
void async_eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void async_eval(Arrays&&... outputs) {
  async_eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

// Computes `outputs` and waits for them. Throws what went wrong, naming the op.
void eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void eval(Arrays&&... outputs) {
  eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

// Fusion of element-wise chains on this thread; on by default. Results do not depend on it.
class FusionScope {
 public:
  explicit FusionScope(bool enabled);
  ~FusionScope();
  FusionScope(const FusionScope&) = delete;
  FusionScope& operator=(const FusionScope&) = delete;

 private:
  bool previous_;
};

}  // namespace holdfast
