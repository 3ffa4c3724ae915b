// Ops called again as a file of functions recorded them.
#pragma once

#include <string_view>
#include <vector>

#include "graph/record.h"

namespace holdfast {

// The outputs of the op that made `record`, for these inputs. Every value is checked by the
// function that the user would call: what does not fit is an exception, as there, and an unknown
// kind std::invalid_argument.
std::vector<array> call_again(const Record& record, const RecordedCall& call);

// The kinds there are, for tests.
std::vector<std::string_view> recorded_kinds();

}  // namespace holdfast
