#include "graph/claim.h"

namespace holdfast::detail {
namespace {

// Waiting for a claim is rare and short: one place for all nodes.
struct Waiting {
  sync::Atomic<int> threads{0};
  sync::Mutex mutex{sync::Rank::claim};
  sync::CondVar given_up;
};
Waiting& waiting() {
  static Waiting* instance = new Waiting;
  return *instance;
}

bool is_claimed(Node& node) {
  std::lock_guard guard(node.lock);
  uint8_t own = node.status.load();
  if (own == Node::unscheduled && node.siblings)
    return node.siblings->status.load() != Node::unscheduled;
  return own == Node::claimed;
}

}  // namespace

Claim try_claim(Node& node) {
  std::lock_guard guard(node.lock);
  uint8_t status = node.status.load(std::memory_order_acquire);
  if (status == Node::claimed) return Claim::busy;
  if (status != Node::unscheduled && status != Node::claimed) return Claim::done;
  if (node.siblings) {
    uint8_t expected = Node::unscheduled;
    // Evaluated, while this node is not yet: its thread is about to say so.
    if (!node.siblings->status.compare_exchange_strong(expected, Node::claimed)) return Claim::busy;
  }
  node.status.store(Node::claimed, std::memory_order_relaxed);
  return Claim::mine;
}

void give_up_claim(Node& node, Node::State state, SiblingGroup* siblings) {
  node.status.store(state);
  // Last: from now on another thread may claim them, this node too.
  if (siblings) siblings->status.store(state);
  Waiting& w = waiting();
  if (w.threads.load() == 0) return;
  std::lock_guard guard(w.mutex);
  w.given_up.notify_all();
}

void wait_for_claim(Node& node) {
  Waiting& w = waiting();
  w.threads.fetch_add(1);
  std::unique_lock lock(w.mutex);
  w.given_up.wait(lock, [&] { return !is_claimed(node); });
  lock.unlock();
  w.threads.fetch_sub(1);
}

}  // namespace holdfast::detail
