#include "ops/accumulate.h"

#include <optional>

namespace holdfast {

namespace {

std::optional<array> added_in_place(const array& sum, const array& part) {
  if (!part.has_primitive()) return std::nullopt;
  auto* update = dynamic_cast<PartialUpdate*>(&part.primitive());
  if (update == nullptr || !is_zeros(part.inputs()[0])) return std::nullopt;
  std::shared_ptr<Primitive> addition = update->as_addition();
  if (addition == nullptr) return std::nullopt;
  std::vector<array> inputs = part.inputs();
  inputs[0] = sum;
  return array(part.shape(), part.dtype(), std::move(addition), std::move(inputs));
}

}  // namespace

array accumulate(const array& a, const array& b) {
  if (std::optional<array> sum = added_in_place(a, b)) return *sum;
  if (std::optional<array> sum = added_in_place(b, a)) return *sum;
  return add(a, b);
}

}  // namespace holdfast
