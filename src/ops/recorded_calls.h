// Ops called again as a file of functions recorded them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

#include "graph/record.h"

namespace holdfast {

struct RecordedCall {
  std::vector<array> inputs;
  std::vector<Shape> shapes;  // of the outputs: for ops that were told a shape
  std::vector<Dtype> dtypes;
  Stream stream;

  // The inputs; std::invalid_argument unless they are `count`.
  const std::vector<array>& exactly(size_t count) const;
};

// The outputs of the op that made `record`, for these inputs. Every value is checked by the
// function that the user would call: what does not fit is an exception, as there, and an unknown
// kind std::invalid_argument.
std::vector<array> call_again(const Record& record, const RecordedCall& call);

// The kinds there are, for tests.
std::vector<std::string_view> recorded_kinds();

}  // namespace holdfast
