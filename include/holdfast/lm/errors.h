// What holdfast::lm throws beside what arrays throw.
#pragma once

#include <stdexcept>

namespace holdfast::lm {

// A model's files are missing, damaged, or of a kind that is not known. The message names the file.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One request cannot be served: its prompt is too long, an option is out of range, a limit is
// reached. Nothing else is disturbed.
class RequestError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace holdfast::lm
