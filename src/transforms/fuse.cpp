#include "transforms/fuse.h"

#include <algorithm>
#include <memory>

#include "graph/group.h"
#include "transforms/compiled.h"

namespace holdfast::detail {
namespace {

bool is_fusable(const Call& call) { return call.primitive->traits().elementwise >= 0; }

// A group while it grows. Values are `inside` when the group computes them, `behind` when they were
// computed from such a value by others: what needs those cannot be part of the group.
class Growing {
 public:
  enum class State : uint8_t { free, inside, behind };

  Growing(std::vector<Call>& calls, std::span<const ValueInfo> values)
      : calls_(calls), values_(values), states_(values.size(), State::free) {}

  // Grows a group around the first call, and puts the list into the order: what does not need the
  // group, the group's calls, what does. Gives the range of the group.
  std::pair<size_t, size_t> grow() {
    places_.assign(calls_.size(), State::free);
    add(0);
    for (size_t i = 1; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      if (needs(call, State::behind) || (needs(call, State::inside) && !fits(call))) {
        places_[i] = State::behind;
        for (int output : call.outputs) states_[static_cast<size_t>(output)] = State::behind;
      } else if (needs(call, State::inside)) {
        add(i);
      }
    }
    take_in_producers();
    std::vector<Call> ordered;
    ordered.reserve(calls_.size());
    size_t bounds[2] = {};
    for (State state : {State::free, State::inside, State::behind}) {
      for (size_t i = 0; i < calls_.size(); ++i) {
        if (places_[i] == state) ordered.push_back(std::move(calls_[i]));
      }
      if (state != State::behind) bounds[static_cast<size_t>(state)] = ordered.size();
    }
    calls_ = std::move(ordered);
    return {bounds[0], bounds[1]};
  }

 private:
  bool needs(const Call& call, State state) const {
    return std::any_of(call.inputs.begin(), call.inputs.end(),
                       [&](int input) { return states_[static_cast<size_t>(input)] == state; });
  }

  bool fits(const Call& call) const {
    if (!is_fusable(call) || group_size_ == Group::max_steps ||
        call.shapes[0] != calls_[0].shapes[0] ||
        call.primitive->stream() != calls_[0].primitive->stream()) {
      return false;
    }
    size_t inputs = inputs_.size();
    for (int input : call.inputs) {
      if (states_[static_cast<size_t>(input)] == State::inside) {
        // A smaller result of the group cannot be broadcast inside it; all of them have its shape.
        continue;
      }
      inputs += std::find(inputs_.begin(), inputs_.end(), input) == inputs_.end();
    }
    return inputs <= Group::max_inputs;
  }

  void add(size_t i) {
    const Call& call = calls_[i];
    places_[i] = State::inside;
    ++group_size_;
    for (int input : call.inputs) {
      bool is_known = std::find(inputs_.begin(), inputs_.end(), input) != inputs_.end();
      if (states_[static_cast<size_t>(input)] != State::inside && !is_known)
        inputs_.push_back(input);
    }
    int output = call.outputs[0];
    states_[static_cast<size_t>(output)] = State::inside;
    std::erase(inputs_, output);
  }

  // Calls that only the group and what is behind it use.
  void take_in_producers() {
    std::vector<bool> used_before(values_.size(), false);
    for (size_t i = calls_.size(); i-- > 0;) {
      if (places_[i] != State::free) continue;
      const Call& call = calls_[i];
      bool feeds = call.outputs.size() == 1 &&
                   std::find(inputs_.begin(), inputs_.end(), call.outputs[0]) != inputs_.end();
      if (feeds && !used_before[static_cast<size_t>(call.outputs[0])] && fits(call)) {
        add(i);
      } else {
        for (int input : call.inputs) used_before[static_cast<size_t>(input)] = true;
      }
    }
  }

  std::vector<Call>& calls_;
  std::span<const ValueInfo> values_;
  std::vector<State> states_;  // of values
  std::vector<State> places_;  // of calls
  std::vector<int> inputs_;    // of the group
  size_t group_size_ = 0;
};

// One call instead of those in `group`. `needed`: values that others use.
Call make_compiled(std::span<const Call> group, const std::vector<bool>& needed,
                   std::span<const ValueInfo> values) {
  std::vector<const Call*> calls;
  Call result;
  std::vector<int> made;
  for (const Call& call : group) {
    for (int input : call.inputs) {
      auto has = [&](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), input) != list.end();
      };
      if (!has(made) && !has(result.inputs)) result.inputs.push_back(input);
    }
    int output = call.outputs[0];
    made.push_back(output);
    calls.push_back(&call);
    if (!needed[static_cast<size_t>(output)]) continue;
    result.outputs.push_back(output);
    result.shapes.push_back(call.shapes[0]);
    result.dtypes.push_back(call.dtypes[0]);
  }
  result.primitive = std::make_shared<Compiled>(calls, result.inputs, result.outputs, values);
  return result;
}

}  // namespace

std::vector<Call> fused(std::vector<Call> calls, std::span<const int> results,
                        std::span<const ValueInfo> values) {
  std::vector<Call> done;
  std::vector<bool> is_result(values.size(), false);
  for (int result : results) is_result[static_cast<size_t>(result)] = true;
  while (!calls.empty()) {
    auto first = std::find_if(calls.begin(), calls.end(), is_fusable);
    std::move(calls.begin(), first, std::back_inserter(done));
    calls.erase(calls.begin(), first);
    if (calls.empty()) break;
    auto [begin, end] = Growing(calls, values).grow();
    auto at = calls.begin() + static_cast<std::ptrdiff_t>(begin);
    if (end - begin == 1) {  // it came first: what it needs is there
      done.push_back(std::move(*at));
      calls.erase(at);
      continue;
    }
    std::vector<bool> needed = is_result;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (i >= begin && i < end) continue;
      for (int input : calls[i].inputs) needed[static_cast<size_t>(input)] = true;
    }
    Call group = make_compiled(std::span(calls).subspan(begin, end - begin), needed, values);
    *at = std::move(group);
    calls.erase(at + 1, calls.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return done;
}

}  // namespace holdfast::detail
