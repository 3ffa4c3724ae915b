// Evaluation: orders the graph, forms fused groups, claims, encodes, submits.
#include <holdfast/eval.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include <holdfast/tracing.h>
#include "base/environment.h"
#include "base/of_this_thread.h"
#include "exec/layers/capture/recording.h"
#include "exec/runtime.h"
#include "graph/check_outputs.h"
#include "graph/claim.h"
#include "graph/copies.h"
#include "graph/encoder_scope.h"
#include "graph/eval_errors.h"
#include "graph/group.h"
#include "graph/node.h"
#include "graph/op_note.h"
#include "graph/order.h"

namespace holdfast {

using detail::Claim;
using detail::Node;

namespace {

std::optional<bool>& fusion_override() {
  static thread_local std::optional<bool> enabled;
  return enabled;
}

class Evaluator {
 public:
  void run(const std::vector<array>& outputs, bool will_wait) {
    will_wait_ = will_wait;
    fuse_ = fusion_override().value_or(environment::settings().fuse);
    keep_graph_ = detail::retain_graph();
    try {
      order_.add(outputs);
      for (array& node : order_.nodes()) process(std::move(node));
      encode_group();
    } catch (const std::bad_alloc&) {
      abandon();
      throw OutOfMemory("[eval] the host has no memory left to order the graph");
    } catch (...) {
      abandon();
      throw;
    }
    for (exec::Queue* queue : touched_) queue->flush({}, !will_wait);
    clear();
  }

  // Makes sure that what was submitted runs although nobody waits for it now.
  static void kick_all(const std::vector<array>& outputs) {
    for (const array& output : outputs) {
      if (output.status() == array::evaluated && output.event().valid())
        output.event().queue()->kick();
    }
  }

 private:
  // --- encoding ---

  // The thread that had the node claimed when we ordered the graph may have failed, and left inputs
  // unscheduled that are not on our tape.
  void process_claimed_elsewhere(const array& node) {
    encode_group();  // never wait while holding a claim
    detail::wait_for_claim(*node.node());
    Evaluator fresh;
    fresh.run({node}, false);
  }

  void process(array node) {
    Node& n = *node.node();
    if (order_.take_claimed_elsewhere(&n)) {
      process_claimed_elsewhere(node);
      return;
    }
    while (true) {
      Claim claim = detail::try_claim(n);
      if (claim == Claim::done) return;
      if (claim == Claim::mine) break;
      encode_group();  // never wait while holding a claim
      detail::wait_for_claim(n);
    }
    bool joined = false;
    try {
      if (!n.primitive) {
        throw std::invalid_argument(
            n.tracer > 0
                ? "[eval] inside vmap or compile an array stands for many and cannot be evaluated; "
                  "return it and evaluate the result"
                : "[eval] the array has neither data nor a primitive to compute it");
      }
      joined = joins_group(node);
    } catch (...) {
      Ref<detail::SiblingGroup> siblings = n.siblings;
      std::shared_ptr<Primitive> primitive = n.primitive;
      detail::give_up_claim(n, Node::unscheduled, siblings.get());
      rethrow_with_op(primitive ? primitive->name() : "eval");
    }
    if (!joined) encode_single(std::move(node));
  }

  // Adds a claimed node to the group, or sees to it that the node can be encoded on its own.
  bool joins_group(const array& node) {
    const Primitive::Traits& traits = node.node()->primitive->traits();
    if (traits.elementwise >= 0) {
      if (group_.try_add(node, fuse_)) return true;
      encode_group();
      return group_.try_add(node, fuse_);
    }
    // A view of something outside the group does not end it; anything else does.
    if (!traits.is_view || group_.feeds(*node.node())) encode_group();
    return false;
  }

  exec::Queue& queue_of(Primitive& primitive) { return touch(runtime_->queue(primitive.stream())); }
  exec::Queue& touch(exec::Queue& queue) {
    if (touched_.empty() || touched_.back() != &queue) {
      if (std::find(touched_.begin(), touched_.end(), &queue) == touched_.end()) {
        touched_.push_back(&queue);
      }
    }
    return queue;
  }

  // Events of other queues that the inputs wait for; their lists are submitted, so that they will
  // come.
  void collect_waits(exec::Queue& queue, std::span<const array> inputs) {
    waits_.clear();
    for (const array& input : inputs) {
      const Node& node = *input.node();
      if (input.status() == array::evaluated && node.event.valid() && node.event.queue() != &queue)
        await(node.event);
      if (!node.data) continue;
      const Event copied = queue.copied_here(*exec::buffer_of(node.data->buffer));
      if (copied.valid()) await(copied);
    }
  }
  void await(const Event& event) {
    if (event.queue()->is_past(event.serial())) return;
    event.queue()->flush(event.serial());
    waits_.push_back(event);
  }

  // Calls `encode(queue)`, which encodes one op in a transaction, until all kernels that it needs
  // are there: they are compiled, and waited for, with no queue locked.
  template <class Encode, class Outputs>
  static Event encode_with_kernels(exec::Queue& queue, Encode encode, Outputs outputs) {
    std::optional<exec::KernelsAtHand> kernels;
    while (true) {
      Ref<const exec::KernelRequest> missing;
      try {
        return encode(queue);
      } catch (const exec::NotReady& kernel) {
        missing = kernel.request;
      }
      for (array* output : outputs()) output->node()->data.reset();
      if (!kernels) kernels.emplace();
      kernels->add(missing);
    }
  }

  // What the device has no kernel for is encoded for the host, and its outputs are copied to the
  // device.
  template <class Encode, class Outputs>
  [[gnu::always_inline]] Event encode_on_device_or_host(exec::Queue& queue,
                                                        const Primitive& primitive,
                                                        std::span<const array> inputs,
                                                        Encode encode, Outputs outputs) {
    try {
      return encode_with_kernels(queue, encode, outputs);
    } catch (const exec::NoKernel&) {
    }
    const std::vector<array*> made = outputs();
    for (array* output : made) output->node()->data.reset();
    exec::Queue& host = touch(queue.host_queue());
    collect_waits(host, inputs);
    const bool is_watched = exec::layers::want(exec::Layer::encoding);
    const size_t to_host = is_watched ? detail::bytes_missing(host.device().memory, inputs) : 0;
    const Event event = encode_with_kernels(host, encode, outputs);
    if (&host == &queue || !event.valid()) return event;
    host.flush(event.serial());
    touch(queue);
    const detail::CopiedOutputs copied =
        detail::copy_to_device(queue, event, primitive.label(), inputs, made);
    if (is_watched) {
      exec::layers::slow::on_host_fallback({literal_name(primitive), &primitive.label(),
                                            queue.stream().index, queue.device().memory.name(),
                                            to_host, copied.bytes});
    }
    return copied.event;
  }

  void encode_group() {
    if (group_.empty()) return;
    std::vector<array> failed;
    try {
      Primitive& last = group_.last_primitive();
      exec::Queue& queue = queue_of(last);
      collect_waits(queue, group_.inputs());
      const Event event = encode_on_device_or_host(
          queue, last, group_.inputs(),
          [&](exec::Queue& chosen) { return group_.encode(chosen, waits_, keep_graph_); },
          [&] { return group_.outputs(); });
      group_.finish(event, keep_graph_);
      queue.settle_small_lists(will_wait_);
      return;
    } catch (const OutOfMemory&) {
      if (last_chance_) {
        group_.give_up();
        throw;
      }
      failed = group_.give_up();
    } catch (...) {
      Primitive& last = group_.last_primitive();
      const char* name = last.name();
      group_.give_up();
      rethrow_with_op(name);
    }
    try_again(std::move(failed));
  }

  void encode_single(array node) {
    std::vector<array> failed;
    try {
      encode(node);
      return;
    } catch (const OutOfMemory&) {
      undo(node);
      if (last_chance_) throw;
      failed.push_back(std::move(node));
    } catch (...) {
      // The name lives with the primitive, which others may drop once the claim is given up.
      std::shared_ptr<Primitive> primitive = node.node()->primitive;
      undo(node);
      rethrow_with_op(primitive ? primitive->name() : "eval");  // it may have detached its output
    }
    try_again(std::move(failed));
  }

  void encode(array& node) {
    Node& n = *node.node();
    Primitive& primitive = *n.primitive;
    exec::Queue& queue = queue_of(primitive);
    waits_.clear();
    if (!primitive.traits().is_view) collect_waits(queue, n.inputs);
    if (n.siblings) {
      outputs_ = node.outputs();
      // Until now only this node says that it is claimed; its siblings' inputs are ours as well.
      for (array& output : outputs_) {
        std::lock_guard guard(output.node()->lock);
        output.node()->status.store(Node::claimed, std::memory_order_relaxed);
      }
    } else {
      outputs_.push_back(node);
    }
    bool keep = keep_graph_ || (n.tracer && detail::in_tracing());
    const bool is_of_library = primitive.traits().is_of_library;
    // A program's primitive may detach its outputs, or do what it likes to its list of them.
    std::shared_ptr<Primitive> kept = is_of_library ? nullptr : n.primitive;
    std::vector<array> given = is_of_library ? std::vector<array>() : outputs_;
    std::vector<array>& outputs = is_of_library ? outputs_ : given;
    Op* op = is_of_library ? static_cast<Op*>(&primitive) : nullptr;
    auto encode_for = [&](exec::Queue& chosen) {
      std::unique_ptr<const Prepared> prepared =
          op ? op->prepare(chosen.device(), n.inputs, outputs) : nullptr;
      exec::Queue::Transaction transaction(chosen, literal_name(primitive), primitive.label(),
                                           waits_);
      EncoderScope scope(chosen, is_of_library, keep);
      const bool wants_note = exec::capture::wants_notes();
      // A program's primitive may take addresses of its inputs. A view needs none of them.
      if (!is_of_library || (wants_note && !primitive.traits().is_view))
        detail::bring_inputs(chosen, n.inputs);
      std::optional<OpNoteWriter> note;
      if (wants_note) note.emplace(transaction, n.inputs);
      if (op) {
        op->encode_prepared(scope.encoder, prepared.get(), n.inputs, outputs);
      } else if (primitive.device() == Device::gpu && &chosen == &queue) {
        primitive.eval_gpu(n.inputs, outputs);
      } else {
        primitive.eval_cpu(n.inputs, outputs);
      }
      detail::check_outputs(primitive, outputs, outputs_);
      if (!is_of_library) bind_to_op(transaction, scope.encoder, n.inputs);
      if (note) {
        transaction.describe(note->single(primitive, outputs_, transaction.has_native()));
      }
      return transaction.commit();
    };
    const Event event = encode_on_device_or_host(queue, primitive, n.inputs, encode_for, [&] {
      std::vector<array*> made;
      for (array& output : outputs_) made.push_back(&output);
      return made;
    });
    if (n.siblings) n.siblings->status.store(Node::evaluated);
    for (array& output : outputs_) {
      Node& out = *output.node();
      out.event = event.valid() ? event : event_of_shared(n, out);
      detail::give_up_claim(out, out.event.valid() ? Node::evaluated : Node::available);
    }
    if (!keep) {
      for (array& output : outputs_) detail::drop_graph(*output.node());
    }
    outputs_.clear();
    // Not while claims are held: commands and deleters would run under them.
    if (group_.empty()) queue.settle_small_lists(will_wait_);
  }

  // A command that a program encoded for its primitive may have bound less than it touches. Arrays
  // of the op live until the list has completed; if its function throws, the outputs have failed.
  void bind_to_op(exec::Queue::Transaction& transaction, Encoder& encoder,
                  const std::vector<array>& inputs) {
    if (!transaction.has_commands()) return;
    for (const array& input : inputs) encoder.input(input);
    for (array& output : outputs_) encoder.output(output);
    transaction.cover_commands();
  }

  // An op that encoded nothing shares an input's data, and is there when that is.
  static Event event_of_shared(const Node& node, const Node& output) {
    for (const array& input : node.inputs) {
      if (input.node()->data == output.data && input.status() == array::evaluated)
        return input.event();
    }
    return {};
  }

  void undo(array& node) {
    Node& n = *node.node();
    Ref<detail::SiblingGroup> siblings = n.siblings;
    for (array& output : outputs_) {
      output.node()->data.reset();
      if (output.node() != &n) detail::give_up_claim(*output.node(), Node::unscheduled);
    }
    outputs_.clear();
    detail::give_up_claim(n, Node::unscheduled, siblings.get());
  }

  // Memory is short: let all work end, empty the cache, and encode the same nodes once more.
  void try_again(std::vector<array> nodes) {
    // A command cannot wait for all work: it is part of it.
    if (!exec::is_running_commands) runtime_->drain();
    for (exec::Allocator* allocator : exec::Allocator::all()) allocator->clear_cache();
    last_chance_ = true;
    try {
      for (array& node : nodes) process(std::move(node));
      encode_group();
    } catch (...) {
      last_chance_ = false;
      throw;
    }
    last_chance_ = false;
  }

  void abandon() noexcept {
    group_.give_up();
    for (exec::Queue* queue : touched_) queue->flush();
    clear();
  }

  void clear() noexcept {
    order_.clear();
    touched_.clear();
    outputs_.clear();
  }

  exec::Runtime* runtime_ = &exec::Runtime::get();
  detail::Order order_;
  std::vector<exec::Queue*> touched_;
  std::vector<Event> waits_;
  std::vector<array> outputs_;
  Group group_;
  bool will_wait_ = true;
  bool fuse_ = true;
  bool keep_graph_ = false;
  bool last_chance_ = false;
};

// The calling thread's evaluator, kept for its memory; a fresh one inside another evaluation (a
// deleter that evaluates).
template <class Use>
void with_evaluator(Use use) {
  static thread_local bool busy = false;
  exec::Runtime::get();  // throws after a fork
  if (EncoderScope::current()) {
    throw std::logic_error(
        "[eval] called while a primitive is being encoded, which holds its stream; evaluate its "
        "inputs "
        "by passing them as inputs");
  }
  if (busy) {
    Evaluator nested;
    use(nested);
    return;
  }
  Evaluator& kept = of_this_thread<Evaluator>();
  busy = true;
  struct Reset {
    ~Reset() { busy = false; }
  } reset;
  use(kept);
}

bool is_computed(const array& a) { return a.status() != array::unscheduled; }

}  // namespace

void async_eval(std::vector<array> outputs) {
  if (std::all_of(outputs.begin(), outputs.end(), is_computed)) return;
  with_evaluator([&](Evaluator& evaluator) { evaluator.run(outputs, false); });
}

void eval(std::vector<array> outputs) {
  if (!std::all_of(outputs.begin(), outputs.end(), is_computed)) {
    with_evaluator([&](Evaluator& evaluator) { evaluator.run(outputs, true); });
  }
  try {
    for (array& output : outputs) output.wait();
  } catch (...) {
    Evaluator::kick_all(outputs);
    throw;
  }
}

FusionScope::FusionScope(bool enabled)
    : previous_(fusion_override().value_or(environment::settings().fuse)) {
  fusion_override() = enabled;
}

FusionScope::~FusionScope() { fusion_override() = previous_; }

}  // namespace holdfast
