#include "transforms/fuse.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "graph/group.h"
#include "transforms/compiled.h"
#include "transforms/compiled_rows.h"
#include "transforms/row_shape.h"

namespace holdfast::detail {
namespace {

constexpr size_t max_row_calls = 256;

// Calls are put into another order for each group.
using Calls = std::vector<std::unique_ptr<Call>>;

bool is_fusable(const Call& call) { return call.primitive->traits().elementwise >= 0; }

// A group while it grows. Values are `inside` when the group computes them, `behind` when they were
// computed from such a value by others: what needs those cannot be part of the group.
class Growing {
 public:
  enum class State : uint8_t { free, inside, behind };

  // A group around the call `seed`: of calls that work on rows of this shape, or of element-wise
  // ones.
  Growing(Calls& calls, std::span<const ValueInfo> values, size_t seed, const RowShape* rows)
      : calls_(calls),
        values_(values),
        seed_(seed),
        rows_(rows),
        states_(values.size(), State::free) {}

  // Grows the group, and puts the list into the order: what does not need the group, the group's
  // calls, what does. Gives the range of the group.
  std::pair<size_t, size_t> grow() {
    places_.assign(calls_.size(), State::free);
    add(seed_);
    for (size_t i = seed_ + 1; i < calls_.size(); ++i) {
      const Call& call = *calls_[i];
      if (needs(call, State::behind) || (needs(call, State::inside) && !fits(call))) {
        places_[i] = State::behind;
        for (int output : call.outputs) states_[static_cast<size_t>(output)] = State::behind;
      } else if (needs(call, State::inside)) {
        add(i);
      }
    }
    take_in_producers();
    Calls ordered;
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
    const Call& seed = *calls_[seed_];
    if (call.primitive->stream() != seed.primitive->stream()) return false;
    if (rows_) return group_size_ < max_row_calls && rows_->takes(call, values_);
    if (!is_fusable(call) || group_size_ == Group::max_steps || call.shapes[0] != seed.shapes[0]) {
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
    const Call& call = *calls_[i];
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
      const Call& call = *calls_[i];
      bool feeds = call.outputs.size() == 1 &&
                   std::find(inputs_.begin(), inputs_.end(), call.outputs[0]) != inputs_.end();
      if (feeds && !used_before[static_cast<size_t>(call.outputs[0])] && fits(call)) {
        add(i);
      } else {
        for (int input : call.inputs) used_before[static_cast<size_t>(input)] = true;
      }
    }
  }

  Calls& calls_;
  std::span<const ValueInfo> values_;
  size_t seed_;
  const RowShape* rows_;
  std::vector<State> states_;  // of values
  std::vector<State> places_;  // of calls
  std::vector<int> inputs_;    // of the group
  size_t group_size_ = 0;
};

bool contains(const std::vector<int>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

// Calls instead of those in `group`: one, and behind it the aliases of its values that others need.
// `needed`: values that others use.
Calls make_compiled(std::span<const std::unique_ptr<Call>> group, const std::vector<bool>& needed,
                    std::span<const ValueInfo> values, const RowShape* rows) {
  std::vector<const Call*> calls;
  std::vector<int> made, wanted;
  Calls result;
  result.push_back(std::make_unique<Call>());
  auto is_alias = [&](const Call& call) {
    return rows && call.primitive->traits().elementwise < 0 && rows->is_alias(call, values);
  };
  // Aliases cost nothing outside, where they are views; what they show must be there then.
  for (size_t i = group.size(); i-- > 0;) {
    const Call& call = *group[i];
    int output = call.outputs[0];
    if (!needed[static_cast<size_t>(output)] && !contains(wanted, output)) continue;
    if (is_alias(call)) {
      result.insert(result.begin() + 1, std::make_unique<Call>(call));
      wanted.push_back(call.inputs[0]);
    } else {
      wanted.push_back(output);
    }
  }
  Call& first = *result[0];
  for (const std::unique_ptr<Call>& member : group) {
    const Call& call = *member;
    for (int input : call.inputs) {
      if (!contains(made, input) && !contains(first.inputs, input)) first.inputs.push_back(input);
    }
    int output = call.outputs[0];
    made.push_back(output);
    calls.push_back(&call);
    if (is_alias(call) || !contains(wanted, output)) continue;
    first.outputs.push_back(output);
    first.shapes.push_back(call.shapes[0]);
    first.dtypes.push_back(call.dtypes[0]);
  }
  if (rows)
    first.primitive =
        std::make_shared<CompiledRows>(calls, first.inputs, first.outputs, values, *rows);
  else
    first.primitive = std::make_shared<Compiled>(
        calls.back()->primitive->stream(),
        std::make_unique<CompiledSteps>(calls, first.inputs, first.outputs, values));
  return result;
}

// Forms groups around calls that `seed_of` accepts, from the first to the last; of rows where it
// gives their shape.
template <class SeedOf>
void form_groups(Calls& calls, std::span<const int> results, std::span<const ValueInfo> values,
                 SeedOf&& seed_of) {
  std::vector<bool> is_result(values.size(), false);
  for (int result : results) is_result[static_cast<size_t>(result)] = true;
  size_t seed = 0;
  while (seed < calls.size()) {
    std::optional<RowShape> shape;
    if (calls[seed]->is_settled || !seed_of(*calls[seed], shape)) {
      ++seed;
      continue;
    }
    calls[seed]->is_settled = true;
    const RowShape* rows = shape ? &*shape : nullptr;
    auto [begin, end] = Growing(calls, values, seed, rows).grow();
    if (end - begin > 1) {
      std::vector<bool> needed = is_result;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (i >= begin && i < end) continue;
        for (int input : calls[i]->inputs) needed[static_cast<size_t>(input)] = true;
      }
      Calls group =
          make_compiled(std::span(calls).subspan(begin, end - begin), needed, values, rows);
      auto at = calls.begin() + static_cast<std::ptrdiff_t>(begin);
      at = calls.erase(at, at + static_cast<std::ptrdiff_t>(end - begin));
      calls.insert(at, std::make_move_iterator(group.begin()),
                   std::make_move_iterator(group.end()));
    }
    seed = 0;  // what stands before the group may begin others
  }
}

}  // namespace

std::vector<Call> fused(std::vector<Call> list, std::span<const int> results,
                        std::span<const ValueInfo> values, bool rows) {
  Calls calls;
  for (Call& call : list) calls.push_back(std::make_unique<Call>(std::move(call)));
  if (rows) {
    form_groups(calls, results, values, [&](const Call& call, std::optional<RowShape>& shape) {
      return (shape = RowShape::reduced_by(call, values)).has_value();
    });
  }
  for (std::unique_ptr<Call>& call : calls) call->is_settled = false;
  form_groups(calls, results, values,
              [](const Call& call, std::optional<RowShape>&) { return is_fusable(call); });
  list.clear();
  for (std::unique_ptr<Call>& call : calls) list.push_back(std::move(*call));
  return list;
}

}  // namespace holdfast::detail
