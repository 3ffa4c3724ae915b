#include <holdfast/label.h>

#include <utility>

#include "base/of_this_thread.h"

namespace holdfast::label {
namespace {

Label& mine() { return of_this_thread<Label>(); }

}  // namespace

Scope::Scope(std::string name) : previous_(mine()) {
  if (previous_) name = *previous_ + "/" + name;
  mine() = std::make_shared<const std::string>(std::move(name));
}

Scope::~Scope() { mine() = previous_; }

const Label& current() { return mine(); }

}  // namespace holdfast::label
