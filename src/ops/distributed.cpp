#include <holdfast/distributed.h>

#include <stdexcept>

namespace holdfast::distributed {
namespace {

void check_backend(const char* function, const std::string& name) {
  for (const char* known : {"any", "mpi", "ring", "nccl", "jaccl"}) {
    if (name == known) return;
  }
  throw std::invalid_argument(std::string("[") + function + "] unknown back-end \"" + name +
                              "\"; there are any, mpi, ring, nccl and jaccl");
}

[[noreturn]] void throw_alone(const char* function, int other) {
  throw std::invalid_argument(std::string("[") + function + "] the group has one member, and " +
                              std::to_string(other) +
                              " is not another one; this build has no distributed back-end");
}

}  // namespace

Group Group::split(int, int) const { return *this; }

bool is_available() { return false; }
bool is_available(const std::string& bk) {
  check_backend("distributed::is_available", bk);
  return false;
}

Group init(bool strict, const std::string& bk) {
  check_backend("distributed::init", bk);
  if (strict) {
    throw std::runtime_error("[distributed::init] no back-end \"" + bk +
                             "\" in this build; without `strict` a group of one process is made");
  }
  return Group(std::make_shared<detail::GroupImpl>());
}
Group init(bool strict, const std::string& bk, const AllGatherFactory&) { return init(strict, bk); }
void clear_backends() {}

array all_sum(const array& x, std::optional<Group>, StreamOrDevice) { return x; }
array all_max(const array& x, std::optional<Group>, StreamOrDevice) { return x; }
array all_min(const array& x, std::optional<Group>, StreamOrDevice) { return x; }
array all_gather(const array& x, std::optional<Group>, StreamOrDevice) { return x; }
array sum_scatter(const array& x, std::optional<Group>, StreamOrDevice) { return x; }
array send(const array&, int dst, std::optional<Group>, StreamOrDevice) {
  throw_alone("distributed::send", dst);
}
array recv(Shape, Dtype, int src, std::optional<Group>, StreamOrDevice) {
  throw_alone("distributed::recv", src);
}
array recv_like(const array&, int src, std::optional<Group>, StreamOrDevice) {
  throw_alone("distributed::recv_like", src);
}

}  // namespace holdfast::distributed
