// Claims: the right to encode a node. Two threads that evaluate one graph run each node once.
//
// A thread claims nodes only while it encodes one op or one fused group whose inputs are encoded,
// and never waits while it holds a claim; so a thread that finds a node claimed may wait for it.
#pragma once

#include "graph/node.h"

namespace holdfast::detail {

enum class Claim {
  mine,  // the caller has it, and must give it up
  busy,  // another thread has it
  done,  // the node is evaluated
};

// For a node with siblings the claim covers all of them.
Claim try_claim(Node& node);
// Gives the claim up; `state` is evaluated, or unscheduled when encoding failed. `siblings`, when
// given, ends the claim of all of them: the caller has given up its claims of the others before.
void give_up_claim(Node& node, Node::State state, SiblingGroup* siblings = nullptr);
// Waits until nobody has the node claimed.
void wait_for_claim(Node& node);

}  // namespace holdfast::detail
