#include <holdfast/array.h>
#include <holdfast/eval.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include <holdfast/tracing.h>
#include "exec/allocator.h"
#include "exec/queue.h"
#include "graph/encoder_scope.h"
#include "graph/node.h"
#include "graph/op.h"

namespace holdfast {

using detail::Node;

// --- construction ---

array::Data::~Data() {
  if (!buffer.ptr()) return;
  exec::Buffer* owned = exec::buffer_of(buffer);
  // A deleter of the user's waits for the command lists, as the memory does.
  d ? owned->release_owner_with(std::move(d)) : owned->release_owner();
}

namespace {

// Owns the buffer from the first moment: it is not lost when there is no memory for the rest.
std::shared_ptr<array::Data> make_data(allocator::Buffer buffer, Deleter deleter = {}) {
  return std::make_shared<array::Data>(array::Data(buffer, std::move(deleter)));
}

}  // namespace

detail::Node* array::allocate_leaf(Shape shape, Dtype dtype) {
  auto node = std::make_unique<Node>(std::move(shape), dtype);
  detail::set_row_contiguous(*node);
  node->data = make_data(
      allocator::Buffer(exec::Allocator::get().allocate_idle(node->size * dtype.size(), "array")));
  node->status.store(Node::available, std::memory_order_release);
  return node.release();
}

array::array(const std::complex<float>& value, Dtype dtype) : array(allocate_leaf({}, dtype)) {
  complex64_t converted(value);
  fill(&converted);
}

array::array(std::initializer_list<float> data)
    : array(allocate_leaf(Shape{static_cast<ShapeElem>(data.size())}, float32)) {
  fill(data.begin());
}

array::array(std::initializer_list<int> data, Dtype dtype)
    : array(allocate_leaf(Shape{static_cast<ShapeElem>(data.size())}, dtype)) {
  fill(data.begin());
}

array::array(void* data, Shape shape, Dtype dtype, const std::function<void(void*)>& deleter)
    : node_(nullptr) {
  auto node = std::make_unique<Node>(std::move(shape), dtype);
  detail::set_row_contiguous(*node);
  if (!data && node->size > 0) {
    throw std::invalid_argument(
        "[array] cannot adopt a null pointer for an array that has elements");
  }
  allocator::Buffer buffer(
      exec::Allocator::get().adopt(data, node->size * dtype.size(), deleter ? deleter : nullptr));
  try {
    node->data = std::make_shared<Data>(buffer);
  } catch (...) {
    exec::buffer_of(buffer)->release_owner();
    throw;
  }
  node->status.store(Node::available, std::memory_order_release);
  node_ = node.release();
}

array::array(allocator::Buffer data, Shape shape, Dtype dtype, Deleter deleter) : node_(nullptr) {
  auto node = std::make_unique<Node>(std::move(shape), dtype);
  detail::set_row_contiguous(*node);
  size_t needed = node->size * dtype.size();
  if (needed > 0 && (!data.ptr() || exec::buffer_of(data)->size() < needed)) {
    throw std::invalid_argument("[array] the buffer has fewer bytes than the shape needs (" +
                                std::to_string(needed) + ")");
  }
  node->data = std::make_shared<Data>(data, std::move(deleter));
  node->status.store(Node::available, std::memory_order_release);
  node_ = node.release();
}

namespace {

void check_dtypes(const Dtype& dtype, const std::shared_ptr<Primitive>& primitive,
                  const std::vector<array>& inputs) {
  if (!primitive || primitive->device() != Device::gpu) return;
  bool has_double = dtype == float64;
  for (const array& input : inputs) has_double |= input.dtype() == float64;
  if (has_double) {
    throw std::invalid_argument(
        std::string("[") + primitive->name() +
        "] float64 is not supported on the gpu; use float32 or a cpu stream");
  }
}

}  // namespace

array detail::make_checked(Shape shape, Dtype dtype, std::shared_ptr<Primitive> primitive,
                           std::vector<array> inputs) {
  if (primitive && primitive->device() == Device::gpu) check_dtypes(dtype, primitive, inputs);
  auto node = std::make_unique<Node>(std::move(shape), dtype);
  node->primitive = std::move(primitive);
  const bool traces = in_tracing();
  for (const array& input : inputs) {
    const Node* from = input.node();  // throws where it was moved from
    if (traces) node->tracer = std::max(node->tracer, from->tracer);
  }
  node->inputs = std::move(inputs);
  return array(node.release());
}

array::array(Shape shape, Dtype dtype, std::shared_ptr<Primitive> primitive,
             std::vector<array> inputs)
    : node_(nullptr) {
  if (primitive && primitive->traits().is_of_library) {
    check_dtypes(dtype, primitive, inputs);
    static_cast<detail::Op&>(*primitive).check(inputs, {&shape, 1}, {&dtype, 1});
  }
  *this = detail::make_checked(std::move(shape), dtype, std::move(primitive), std::move(inputs));
}

std::vector<array> array::make_arrays(std::vector<Shape> shapes, const std::vector<Dtype>& dtypes,
                                      const std::shared_ptr<Primitive>& primitive,
                                      const std::vector<array>& inputs) {
  if (shapes.size() != dtypes.size()) {
    throw std::invalid_argument("[array::make_arrays] expected a dtype for each of " +
                                std::to_string(shapes.size()) + " shapes, got " +
                                std::to_string(dtypes.size()));
  }
  if (primitive && primitive->traits().is_of_library) {
    for (const Dtype& dtype : dtypes) check_dtypes(dtype, primitive, inputs);
    static_cast<detail::Op&>(*primitive).check(inputs, shapes, dtypes);
  }
  return detail::make_all_checked(std::move(shapes), dtypes, primitive, inputs);
}

std::vector<array> detail::make_all_checked(std::vector<Shape> shapes,
                                            const std::vector<Dtype>& dtypes,
                                            const std::shared_ptr<Primitive>& primitive,
                                            const std::vector<array>& inputs) {
  std::vector<array> outputs;
  outputs.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    outputs.push_back(make_checked(std::move(shapes[i]), dtypes[i], primitive, inputs));
  }
  if (outputs.size() < 2) return outputs;
  auto group = make_ref<SiblingGroup>();
  for (array& output : outputs) {
    group->members.push_back({output.node(), output.shape(), output.dtype()});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].node()->siblings = group;
    outputs[i].node()->position = static_cast<uint16_t>(i);
  }
  return outputs;
}

array array::unsafe_weak_copy(const array& other) {
  auto node = std::make_unique<Node>(other.shape(), other.dtype());
  node->strides = other.strides();
  node->flags = other.flags();
  node->data_size = other.data_size();
  node->offset = other.offset();
  // Shares the memory, but not the count that decides donation.
  exec::Buffer* buffer = exec::buffer_of(other.buffer());
  buffer->retain_owner();
  node->data = make_data(allocator::Buffer(buffer));
  node->event = other.event();
  node->status.store(static_cast<uint8_t>(other.status()), std::memory_order_release);
  return array(node.release());
}

void array::check_count(size_t count) const {
  if (count == size()) return;
  throw std::invalid_argument("[array] the shape needs " + std::to_string(size()) +
                              " elements, the list has " + std::to_string(count));
}

// --- everyday members ---

size_t array::size() const { return node()->size; }
const Shape& array::shape() const { return node()->shape; }
const Strides& array::strides() const { return node()->strides; }
Dtype array::dtype() const { return node()->dtype; }

namespace {

size_t checked_dim(int dim, size_t ndim, const char* member) {
  int n = static_cast<int>(ndim);
  if (dim < -n || dim >= n) {
    throw std::out_of_range(std::string("[array::") + member + "] dimension " +
                            std::to_string(dim) + " is out of range for an array with " +
                            std::to_string(n) + " dimensions");
  }
  return static_cast<size_t>(dim < 0 ? dim + n : dim);
}

}  // namespace

ShapeElem array::shape(int dim) const { return node()->shape[checked_dim(dim, ndim(), "shape")]; }
int64_t array::strides(int dim) const {
  return node()->strides.at(checked_dim(dim, ndim(), "strides"));
}

void array::eval() {
  if (node()->status.load(std::memory_order_acquire) == Node::available) return;
  holdfast::eval(std::vector<array>{*this});
}

void array::check_item(bool may_evaluate) {
  if (size() != 1) {
    throw std::invalid_argument("[array::item] needs an array of one element, got " +
                                std::to_string(size()));
  }
  if (may_evaluate) {
    eval();
  } else if (status() == unscheduled) {
    throw std::invalid_argument("[array::item] a const array must be evaluated first");
  } else {
    wait();
  }
}

namespace {

// Outside of an op's encoding who asks for the address may read at once.
[[gnu::noinline, gnu::cold]] void tell_layers_of_access(const array& a) {
  if (a.size() == 0 || EncoderScope::current()) return;
  auto [begin, end] = byte_interval(a);
  exec::layers::slow::on_host_access(*exec::buffer_of(a.buffer()), begin, end);
}

// What went wrong with the array's data, as far as commands have run; null: nothing.
exec::Failure* failure_of(const Node& node) {
  if (!node.data || !node.data->buffer.ptr()) return nullptr;
  return exec::buffer_of(node.data->buffer)->failure();
}

}  // namespace

// Who did not wait, or caught what `wait` threw, does not read what was never written.
void array::note_host_access() const {
  if (exec::layers::want(exec::Layer::host_accesses)) [[unlikely]]
    tell_layers_of_access(*this);
  if (exec::Failure* failure = failure_of(*node()); failure && !EncoderScope::current())
    failure->raise();
}

void* array::data_address(bool writes) const {
  if (!node()->data) return nullptr;
  note_host_access();
  exec::Buffer& buffer = *exec::buffer_of(node()->data->buffer);
  exec::layers::on_address(buffer);
  return static_cast<char*>(exec::host_address(buffer, writes)) + node()->offset;
}

void array::read_first(void* target, size_t bytes) const {
  note_host_access();
  exec::read_bytes(*exec::buffer_of(node()->data->buffer), static_cast<size_t>(offset()), target,
                   bytes);
}

// --- graph ---

std::uintptr_t array::primitive_id() const {
  return reinterpret_cast<std::uintptr_t>(node()->primitive.get());
}
Primitive& array::primitive() const { return *node()->primitive; }
std::shared_ptr<Primitive>& array::primitive_ptr() const { return node()->primitive; }
bool array::has_primitive() const { return node()->primitive != nullptr; }
const std::vector<array>& array::inputs() const { return node()->inputs; }
std::vector<array>& array::inputs() { return node()->inputs; }
uint16_t array::sibling_position() const { return node()->position; }

std::vector<array> array::outputs() const {
  std::vector<array> result;
  if (!node()->siblings) {
    result.push_back(*this);
    return result;
  }
  detail::SiblingGroup& group = *node()->siblings;
  result.reserve(group.members.size());
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (i == node()->position) {
      result.push_back(*this);
      continue;
    }
    Node* sibling = nullptr;
    {
      std::lock_guard guard(group.lock);
      Node* found = group.members[i].node;
      if (found && found->retain_unless_gone()) sibling = found;
    }
    if (sibling) {
      result.push_back(array(sibling));
      continue;
    }
    array made = detail::make_checked(group.members[i].shape, group.members[i].dtype,
                                      node()->primitive, node()->inputs);
    made.node_->siblings = node()->siblings;
    made.node_->position = static_cast<uint16_t>(i);
    std::lock_guard guard(group.lock);
    group.members[i].node = made.node_;
    result.push_back(std::move(made));
  }
  return result;
}

std::vector<array> array::siblings() const {
  std::vector<array> others = outputs();
  others.erase(others.begin() + node()->position);
  return others;
}

void array::set_siblings(std::vector<array> siblings, uint16_t position) {
  auto group = make_ref<detail::SiblingGroup>();
  for (array& sibling : siblings) {
    group->members.push_back({sibling.node_, sibling.shape(), sibling.dtype()});
  }
  group->members.insert(group->members.begin() + position, {node_, shape(), dtype()});
  node()->siblings = group;
  node()->position = position;
}

void array::detach() {
  std::vector<array> inputs;
  std::shared_ptr<Primitive> primitive;
  Ref<detail::SiblingGroup> group;
  {
    std::lock_guard guard(node()->lock);
    inputs.swap(node()->inputs);
    primitive.swap(node()->primitive);
    group = std::move(node()->siblings);
  }
  if (group) {
    std::lock_guard guard(group->lock);
    if (group->members[node()->position].node == node_)
      group->members[node()->position].node = nullptr;
  }
  node()->position = 0;
}

bool array::is_donatable() const {
  return EncoderScope::allows_donation() &&
         detail::is_donatable_by(*this, 1, EncoderScope::current());
}

// --- data ---

const array::Flags& array::flags() const { return node()->flags; }
size_t array::data_size() const { return node()->data_size; }
allocator::Buffer& array::buffer() { return node()->data->buffer; }
const allocator::Buffer& array::buffer() const { return node()->data->buffer; }
size_t array::buffer_size() const { return allocator::allocator().size(buffer()); }
int64_t array::offset() const { return node()->offset; }
const std::shared_ptr<array::Data>& array::data_shared_ptr() const { return node()->data; }

void array::set_data(allocator::Buffer buffer, Deleter d) {
  node()->data = make_data(buffer, std::move(d));
  detail::set_row_contiguous(*node());
}

void array::set_data(allocator::Buffer buffer, size_t data_size, Strides strides, Flags flags,
                     Deleter d) {
  set_data(buffer, data_size, std::move(strides), flags, 0, std::move(d));
}

void array::set_data(allocator::Buffer buffer, size_t data_size, Strides strides, Flags flags,
                     int64_t offset, Deleter d) {
  node()->data = make_data(buffer, std::move(d));
  node()->data_size = data_size;
  node()->strides = std::move(strides);
  node()->flags = flags;
  node()->offset = offset;
}

void array::copy_shared_buffer(const array& other) {
  copy_shared_buffer(other, other.strides(), other.flags(), other.data_size());
}

void array::copy_shared_buffer(const array& other, const Strides& strides, Flags flags,
                               size_t data_size, int64_t offset) {
  node()->data = other.node()->data;
  node()->strides = strides;
  node()->flags = flags;
  node()->data_size = data_size;
  node()->offset = other.offset() + offset * static_cast<int64_t>(itemsize());
}

// --- status ---

array::Status array::status() const {
  switch (node()->status.load(std::memory_order_acquire)) {
    case Node::evaluated:
      return evaluated;
    case Node::available:
      return available;
    default:
      return unscheduled;
  }
}

void array::set_status(Status status) {
  node()->status.store(static_cast<uint8_t>(status), std::memory_order_release);
}

bool array::is_available() const {
  Status now = status();
  return now == available || (now == evaluated && node()->event.is_signaled());
}

void array::wait() {
  if (status() != evaluated) return;
  node()->event.wait();
  if (exec::Failure* failure = failure_of(*node())) failure->raise();
  set_status(available);
}

bool array::wait_for(std::chrono::nanoseconds timeout) {
  if (status() != evaluated) return true;
  if (!node()->event.wait_for(timeout)) return false;
  wait();
  return true;
}

Event& array::event() const { return node()->event; }
void array::attach_event(Event event) const { node()->event = event; }
void array::detach_event() const { node()->event = Event(); }
void array::set_tracer(bool is_tracer) {
  node()->tracer = is_tracer ? static_cast<uint16_t>(std::max(1, detail::tracing_depth())) : 0;
}
bool array::is_tracer() const { return node()->tracer && detail::in_tracing(); }

}  // namespace holdfast
