#include "devices/pipeline.h"

#include <unordered_set>

namespace holdfast::exec {
namespace {

// Kernels are compiled seldom, so that the table is kept in all builds.
sync::Mutex mutex;
uint64_t last_identity = 0;  // guarded by mutex

std::unordered_set<uint64_t>& living() {
  static auto* identities = new std::unordered_set<uint64_t>;
  return *identities;
}

uint64_t register_pipeline() {
  std::lock_guard guard(mutex);
  living().insert(++last_identity);
  return last_identity;
}

}  // namespace

Pipeline::Pipeline() : identity_(register_pipeline()) {}

std::atomic<void (*)(uint64_t)> Pipeline::when_retired{nullptr};

Pipeline::~Pipeline() {
  if (auto* call = when_retired.load(std::memory_order_relaxed)) call(identity_);
  std::lock_guard guard(mutex);
  living().erase(identity_);
}

bool Pipeline::is_alive(uint64_t identity) {
  std::lock_guard guard(mutex);
  return living().contains(identity);
}

size_t Pipeline::live_count() {
  std::lock_guard guard(mutex);
  return living().size();
}

}  // namespace holdfast::exec
