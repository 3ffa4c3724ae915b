// Recorded calls by themselves, and the same with one number changed to one that no program means.
#pragma once

#include <climits>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/transforms_impl.h>

#include "export/function_file.h"
#include "ops/recorded_calls.h"
#include "transforms/differentiate.h"
#include "transforms/export_testing.h"

namespace holdfast::testing {

struct CallAlone {
  Record record;
  std::vector<SavedValue> inputs, outputs;
};

inline std::vector<CallAlone> calls_in(const std::string& file) {
  std::vector<CallAlone> calls;
  SavedFunction function = read_function(reader_of(bytes_of_file(file)));
  for (const SavedTrace& trace : function.traces) {
    std::vector<SavedValue> values = trace.inputs;
    for (uint32_t constant : trace.constants) {
      const array& value = function.constants[constant];
      values.push_back({value.shape(), value.dtype()});
    }
    for (const SavedCall& call : trace.calls) {
      CallAlone& alone = calls.emplace_back(CallAlone{call.record, {}, call.outputs});
      for (uint32_t input : call.inputs) alone.inputs.push_back(values[input]);
      values.insert(values.end(), call.outputs.begin(), call.outputs.end());
    }
  }
  return calls;
}

// Whether the op accepts the call. Nothing is evaluated.
inline bool can_be_made(const CallAlone& alone) {
  detail::InTracing tracing;
  try {
    RecordedCall call{{}, {}, {}, default_stream(Device::cpu)};
    for (const SavedValue& input : alone.inputs) {
      call.inputs.push_back(detail::placeholder(input.shape, input.dtype));
    }
    for (const SavedValue& output : alone.outputs) {
      call.shapes.push_back(output.shape);
      call.dtypes.push_back(output.dtype);
    }
    call_again(alone.record, call);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Calls `use` for each number of the call and each value that it is changed to.
inline void for_hostile_variants(const CallAlone& call,
                                 const std::function<void(const CallAlone&)>& use) {
  CallAlone variant = call;
  auto try_values = [&](auto& number, auto... values) {
    auto before = number;
    for (auto value : {static_cast<decltype(before)>(values)...}) {
      number = value;
      use(variant);
    }
    number = before;
  };
  auto try_number = [&](auto& number) {
    using Number = std::decay_t<decltype(number)>;
    if constexpr (std::is_same_v<Number, int>) {
      try_values(number, INT_MIN, INT_MIN + 1, -(1 << 30), -1, 0, 1, 7, 1 << 27, 1 << 29, 1 << 30,
                 INT_MAX - 1, INT_MAX);
    } else if constexpr (std::is_same_v<Number, size_t> || std::is_same_v<Number, int64_t>) {
      try_values(number, INT64_MIN, INT64_MIN + 1, int64_t{INT_MIN}, -1, 0, 1, int64_t{INT_MAX},
                 int64_t{INT_MAX} + 1, int64_t{1} << 61, int64_t{1} << 62, INT64_MAX);
    }
  };
  auto try_list = [&](auto& list) {
    for (size_t i = 0; i < list.size(); ++i) try_number(list[i]);
    auto before = list;
    if (!list.empty()) list.pop_back();
    use(variant);
    list = before;
    list.push_back(0);
    use(variant);
    list = before;
  };
  for (RecordedValue& value : variant.record.state) {
    std::visit(
        [&](auto& held) {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_arithmetic_v<Held>) {
            try_number(held);
          } else if constexpr (std::is_same_v<Held, Shape> || std::is_same_v<Held, Strides> ||
                               std::is_same_v<Held, std::vector<int>> ||
                               std::is_same_v<Held, std::vector<size_t>>) {
            try_list(held);
          }
        },
        value);
  }
  auto try_shape = [&](Shape& shape) {
    for (ShapeElem& dim : shape)
      try_values(dim, 0, 1, 1 << 27, 1 << 29, 1 << 30, INT_MAX - 31, INT_MAX);
    Shape before = shape;
    if (!shape.empty()) shape.pop_back();
    use(variant);
    shape = before;
    shape.push_back(INT_MAX);
    use(variant);
    for (ShapeElem& dim : shape) dim = INT_MAX;
    use(variant);
    shape[0] = 0;  // empty, and yet a product of the others that overflows
    use(variant);
    shape = before;
  };
  for (SavedValue& input : variant.inputs) try_shape(input.shape);
  for (SavedValue& output : variant.outputs) try_shape(output.shape);
}

}  // namespace holdfast::testing
