// Labels: names for a stretch of graph building, so that a late error says where the op came from.
#pragma once

#include <memory>
#include <string>

namespace holdfast::label {

using Label = std::shared_ptr<const std::string>;

// Ops built on this thread while the scope lives carry its name; nested scopes are joined with '/'.
class Scope {
 public:
  explicit Scope(std::string name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Label previous_;
};

// The calling thread's label; null outside every scope.
const Label& current();

}  // namespace holdfast::label
