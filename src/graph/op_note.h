// What an op was called with, for a capture: enough to call it again where its commands are native
// code, which no file can hold.
//
// The text, as ByteWriter writes it:
//   count of inputs, each a view                     (see OpView)
//   count of calls, each: kind, count of state values, each (alternative, value); count of
//   operands,
//     each a number: of an input, or the count of inputs + that of an earlier result; count of
//     results, each (dtype, shape)
//   count of outputs, each: the number of its result, or -1 where there are no calls; a view
// Without calls the op cannot be called again.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/array.h>

#include "base/byte_stream.h"
#include "devices/command_list.h"
#include "graph/op.h"
#include "graph/record.h"

namespace holdfast {

// Bytes of a buffer as an array saw them.
struct OpView {
  uint64_t buffer = 0;  // identity
  int64_t offset = 0;   // bytes
  Dtype dtype = bool_;
  Shape shape;
  Strides strides;
};

struct OpNote {
  struct Result {
    Dtype dtype = bool_;
    Shape shape;
  };
  struct Call {
    Record record;
    std::vector<uint32_t> operands;
    std::vector<Result> results;
  };
  struct Output {
    int64_t result = -1;
    OpView view;
  };
  std::vector<OpView> inputs;
  std::vector<Call> calls;
  std::vector<Output> outputs;
};

// Made before the op is encoded, since it may take its inputs' memory over.
class OpNoteWriter {
 public:
  explicit OpNoteWriter(std::span<const array> inputs);
  // Of one op, or of a fused group. `is_native`: is the call needed?
  exec::NotedOp single(Primitive& primitive, std::span<const array> outputs, bool is_native);
  exec::NotedOp group(std::span<const array> nodes, std::span<const FusedStep> steps);

 private:
  void view(const array& a);
  void output(int64_t result, const array& a);
  void call(const Record& record, std::span<const uint32_t> operands,
            std::span<const array> results);

  ByteWriter text_;
  exec::NotedOp noted_;
  uint32_t inputs_;
};

// The bytes of its buffer that a view may touch: first, and behind the last.
std::pair<int64_t, int64_t> byte_interval(int64_t offset, size_t item, const Shape& shape,
                                          const Strides& strides);

// Throws std::invalid_argument for a text that was not written like this.
OpNote read_op_note(std::string_view text);

}  // namespace holdfast
