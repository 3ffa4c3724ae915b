// Groups of processes. For now every group has one member: collective operations return their
// input, and asking for more members is an error that says so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/array.h>
#include <holdfast/stream.h>

namespace holdfast::distributed {

namespace detail {
class GroupImpl {};
}  // namespace detail

class Group {
 public:
  Group(std::shared_ptr<detail::GroupImpl> group) : group_(std::move(group)) {}
  int rank() const { return 0; }
  int size() const { return 1; }
  Group split(int color, int key = -1) const;
  const std::shared_ptr<detail::GroupImpl>& raw_group() const { return group_; }

 private:
  std::shared_ptr<detail::GroupImpl> group_;
};

using AllGatherFn = std::function<void(const char*, char*, size_t)>;
using AllGatherFactory = std::function<AllGatherFn(int, int)>;

bool is_available();
bool is_available(const std::string& bk);
// A group of this process alone; with `strict`, std::runtime_error, since no back-end is there.
Group init(bool strict = false, const std::string& bk = "any");
Group init(bool strict, const std::string& bk, const AllGatherFactory& factory);
void clear_backends();

array all_sum(const array& x, std::optional<Group> group = std::nullopt, StreamOrDevice s = {});
array all_max(const array& x, std::optional<Group> group = std::nullopt, StreamOrDevice s = {});
array all_min(const array& x, std::optional<Group> group = std::nullopt, StreamOrDevice s = {});
array all_gather(const array& x, std::optional<Group> group = std::nullopt, StreamOrDevice s = {});
array sum_scatter(const array& x, std::optional<Group> group = std::nullopt, StreamOrDevice s = {});
array send(const array& x, int dst, std::optional<Group> group = std::nullopt,
           StreamOrDevice s = {});
array recv(Shape shape, Dtype dtype, int src, std::optional<Group> group = std::nullopt,
           StreamOrDevice s = {});
array recv_like(const array& x, int src, std::optional<Group> group = std::nullopt,
                StreamOrDevice s = {});

}  // namespace holdfast::distributed
