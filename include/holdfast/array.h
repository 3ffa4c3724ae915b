// array: a shared handle to a node of the lazy graph.
//
// Copying an array shares the node. A node is a leaf (it has data) or the output of a primitive
// (it gets data when it is evaluated). Shape and dtype never change; strides, flags and data are
// set once, by evaluation. One that was moved from may be assigned, copied and destroyed; whatever
// else is asked of it throws std::invalid_argument.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/allocator.h>
#include <holdfast/dtype.h>
#include <holdfast/event.h>
#include <holdfast/small_vector.h>

namespace holdfast {

class Primitive;

using ShapeElem = int32_t;
using Shape = SmallVector<ShapeElem>;
using Strides = SmallVector<int64_t>;
using Deleter = std::function<void(allocator::Buffer)>;

namespace detail {
struct Node;
// The part of a node that handles touch: everything else is in src/graph/node.h.
struct NodeCount {
  std::atomic<uint32_t> references{1};
};
void destroy_node(NodeCount* node) noexcept;
[[noreturn]] void throw_moved_from();
}  // namespace detail

class array {
 public:
  struct Flags {
    // No gaps in the memory range [offset, offset + data_size).
    bool contiguous : 1;
    bool row_contiguous : 1;
    bool col_contiguous : 1;
  };

  // What arrays that share memory share. Its use count alone decides donation.
  struct Data {
    allocator::Buffer buffer;
    Deleter d;  // empty: allocator::free
    explicit Data(allocator::Buffer b, Deleter deleter = {}) : buffer(b), d(std::move(deleter)) {}
    Data(Data&& other) noexcept
        : buffer(std::exchange(other.buffer, allocator::Buffer(nullptr))), d(std::move(other.d)) {}
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
    // The deleter runs once the last command list that uses the buffer has completed.
    ~Data();
  };

  enum Status {
    unscheduled,  // not evaluated
    evaluated,    // encoded; the data is there when event() is signaled
    available,    // the data is there
  };

  // --- construction ---

  template <typename T>
    requires std::is_convertible_v<T, complex64_t>
  explicit array(T value, Dtype dtype = TypeToDtype<T>());
  explicit array(const std::complex<float>& value, Dtype dtype = complex64);

  // Copies `shape`'s number of elements from the iterator, converting each to `dtype`.
  template <typename It>
    requires requires { typename std::iterator_traits<It>::iterator_category; }
  explicit array(It data, Shape shape,
                 Dtype dtype = TypeToDtype<typename std::iterator_traits<It>::value_type>());

  template <typename T>
  explicit array(std::initializer_list<T> data, Dtype dtype = TypeToDtype<T>());
  // Not templates, so that array({}) and array({}, dtype) are empty arrays.
  explicit array(std::initializer_list<float> data);
  explicit array(std::initializer_list<int> data, Dtype dtype);
  template <typename T>
  explicit array(std::initializer_list<T> data, Shape shape, Dtype dtype = TypeToDtype<T>());

  // Adopts `data`; the deleter is called exactly once, after the last use.
  explicit array(void* data, Shape shape, Dtype dtype, const std::function<void(void*)>& deleter);
  // Shares the buffer.
  explicit array(allocator::Buffer data, Shape shape, Dtype dtype, Deleter deleter = {});

  // A node of the graph.
  array(Shape shape, Dtype dtype, std::shared_ptr<Primitive> primitive, std::vector<array> inputs);
  static std::vector<array> make_arrays(std::vector<Shape> shapes, const std::vector<Dtype>& dtypes,
                                        const std::shared_ptr<Primitive>& primitive,
                                        const std::vector<array>& inputs);
  // An array over the same data that does not own it, detached from the graph.
  static array unsafe_weak_copy(const array& other);

  array(const array& other) noexcept : node_(other.node_) { retain(); }
  array(array&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  ~array() { release(); }
  array& operator=(const array& other) & {
    array copy(other);
    std::swap(node_, copy.node_);
    return *this;
  }
  array& operator=(array&& other) & noexcept {
    if (this != &other) {
      release();
      node_ = std::exchange(other.node_, nullptr);
    }
    return *this;
  }
  array& operator=(const array&) && = delete;
  array& operator=(array&&) && = delete;

  // --- everyday members ---

  size_t size() const;
  size_t nbytes() const { return size() * itemsize(); }
  size_t itemsize() const { return dtype().size(); }
  size_t ndim() const { return shape().size(); }
  const Shape& shape() const;
  ShapeElem shape(int dim) const;  // negative counts from the end; std::out_of_range
  const Strides& strides() const;  // in elements
  int64_t strides(int dim) const;
  Dtype dtype() const;

  void eval();

  // Evaluates and reads the bytes as T; the array must have one element. No conversion.
  template <typename T>
  T item();
  // As above for an array that was evaluated before; throws when it was not.
  template <typename T>
  T item() const;

  // The elements' address for the host; the array must be evaluated. Waits only for an array in the
  // memory of a device, which is copied. What the host may write is copied back at the device's
  // next use of it: prefer the address of a const array.
  template <typename T>
  T* data() {
    return static_cast<T*>(data_address(true));
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_address(false));
  }

  class ArrayIterator;
  ArrayIterator begin() const;
  ArrayIterator end() const;

  // --- graph and buffer, for primitives and transforms ---

  std::uintptr_t id() const { return reinterpret_cast<std::uintptr_t>(node_); }
  std::uintptr_t primitive_id() const;
  Primitive& primitive() const;
  std::shared_ptr<Primitive>& primitive_ptr() const;
  bool has_primitive() const;
  // References into the node: not to be used while another thread evaluates it.
  const std::vector<array>& inputs() const;
  std::vector<array>& inputs();

  // The other outputs of the same primitive, in its order; made anew where they were dropped.
  std::vector<array> siblings() const;
  uint16_t sibling_position() const;
  void set_siblings(std::vector<array> siblings, uint16_t position);
  // This and its siblings in the primitive's order.
  std::vector<array> outputs() const;
  // Drops primitive, inputs and siblings.
  void detach();

  // Are node and data owned by this handle alone?
  bool is_donatable() const;

  const Flags& flags() const;
  // Elements in the backing range: 1 for a broadcast scalar.
  size_t data_size() const;
  allocator::Buffer& buffer();
  const allocator::Buffer& buffer() const;
  size_t buffer_size() const;
  int64_t offset() const;  // in bytes
  const std::shared_ptr<Data>& data_shared_ptr() const;

  void set_data(allocator::Buffer buffer, Deleter d = {});
  void set_data(allocator::Buffer buffer, size_t data_size, Strides strides, Flags flags,
                Deleter d);
  void set_data(allocator::Buffer buffer, size_t data_size, Strides strides, Flags flags,
                int64_t offset = 0, Deleter d = {});
  void copy_shared_buffer(const array& other);
  // `offset` in elements, relative to `other`'s.
  void copy_shared_buffer(const array& other, const Strides& strides, Flags flags, size_t data_size,
                          int64_t offset = 0);
  // Makes this handle refer to `other`'s node.
  void overwrite_descriptor(const array& other) { *this = other; }

  Status status() const;
  void set_status(Status status);
  bool is_available() const;
  // Waits for the data; throws what went wrong while it was computed.
  void wait();
  // False when the timeout passed first.
  bool wait_for(std::chrono::nanoseconds timeout);
  Event& event() const;
  void attach_event(Event event) const;
  void detach_event() const;

  void set_tracer(bool is_tracer);
  // True only while some transform is tracing.
  bool is_tracer() const;

  // For src/graph: takes over one reference.
  explicit array(detail::Node* node) noexcept : node_(node) {}
  detail::Node* node() const {
    if (!node_) [[unlikely]]
      detail::throw_moved_from();
    return node_;
  }

 private:
  void retain() const noexcept {
    if (node_) count()->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (node_ && count()->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      detail::destroy_node(count());
    }
    node_ = nullptr;
  }
  // Node's first base is NodeCount (checked in node.h).
  detail::NodeCount* count() const { return reinterpret_cast<detail::NodeCount*>(node_); }

  void note_host_access() const;
  void* data_address(bool writes) const;
  // A leaf with uninitialised memory of its own.
  static detail::Node* allocate_leaf(Shape shape, Dtype dtype);
  template <typename It>
  void fill(It first);
  void check_count(size_t count) const;
  void check_item(bool may_evaluate);
  template <typename T>
  T read_item() const {
    T value;
    read_first(&value, sizeof(T));
    return value;
  }
  // The first bytes of an array that was waited for.
  void read_first(void* target, size_t bytes) const;

  detail::Node* node_;
};

class array::ArrayIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using difference_type = size_t;
  using value_type = const array;
  using reference = value_type;

  explicit ArrayIterator(const array& arr, int index = 0);
  reference operator*() const;
  ArrayIterator& operator+(difference_type count) {
    index_ += static_cast<int>(count);
    return *this;
  }
  ArrayIterator& operator++() {
    ++index_;
    return *this;
  }
  friend bool operator==(const ArrayIterator& a, const ArrayIterator& b) {
    return a.array_.id() == b.array_.id() && a.index_ == b.index_;
  }
  friend bool operator!=(const ArrayIterator& a, const ArrayIterator& b) { return !(a == b); }

 private:
  const array& array_;
  int index_;
};

// --- templates ---

// Constructors delegate, so that what they made is released when filling it throws.

template <typename T>
  requires std::is_convertible_v<T, complex64_t>
array::array(T value, Dtype dtype) : array(allocate_leaf(Shape{}, dtype)) {
  fill(&value);
}

template <typename It>
  requires requires { typename std::iterator_traits<It>::iterator_category; }
array::array(It data, Shape shape, Dtype dtype) : array(allocate_leaf(std::move(shape), dtype)) {
  fill(data);
}

template <typename T>
array::array(std::initializer_list<T> data, Dtype dtype)
    : array(allocate_leaf(Shape{static_cast<ShapeElem>(data.size())}, dtype)) {
  fill(data.begin());
}

template <typename T>
array::array(std::initializer_list<T> data, Shape shape, Dtype dtype)
    : array(allocate_leaf(std::move(shape), dtype)) {
  check_count(data.size());
  fill(data.begin());
}

template <typename T>
T array::item() {
  check_item(true);
  return read_item<T>();
}

template <typename T>
T array::item() const {
  const_cast<array*>(this)->check_item(false);
  return read_item<T>();
}

// Converts one element; out-of-range and NaN to integers are defined: saturated, NaN becomes 0.
template <typename To, typename From>
To convert_element(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, complex64_t> ||
                       std::is_same_v<From, std::complex<float>>) {
    if constexpr (std::is_same_v<To, complex64_t>)
      return complex64_t(value);
    else if constexpr (std::is_same_v<To, bool>)
      return value.real() != 0.0f || value.imag() != 0.0f;
    else
      return convert_element<To>(value.real());
  } else if constexpr (std::is_same_v<From, float16_t> || std::is_same_v<From, bfloat16_t>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (value != value) return To(0);
    // The limits as powers of two are exact in every floating type.
    constexpr int digits = std::numeric_limits<To>::digits;
    const From above = From(2) * static_cast<From>(uint64_t{1} << (digits - 1));
    if (value >= above) return std::numeric_limits<To>::max();
    if (std::is_signed_v<To> ? value < -above : value <= From(-1))
      return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename It>
void array::fill(It first) {
  using From = typename std::iterator_traits<It>::value_type;
  size_t count = size();
  dispatch_dtype(dtype(), [&](auto tag) {
    using To = typename decltype(tag)::type;
    To* target = data<To>();
    for (size_t i = 0; i < count; ++i, ++first) {
      target[i] = convert_element<To>(static_cast<From>(*first));
    }
  });
}

template <typename T>
inline constexpr bool is_array_v = std::is_same_v<std::remove_cvref_t<T>, array>;
template <typename... T>
inline constexpr bool is_arrays_v = (is_array_v<T> && ...);
template <typename... T>
using enable_for_arrays_t = std::enable_if_t<is_arrays_v<T...>>;

}  // namespace holdfast
