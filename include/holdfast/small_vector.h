// SmallVector<T, N>: a vector that keeps up to N elements inside itself. Shapes and strides live in
// it, so that building a graph node needs no allocation for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <ostream>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast {

template <typename T, size_t N = 10>
class SmallVector {
 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  SmallVector() = default;
  // Trivial elements are left uninitialised.
  explicit SmallVector(size_t size) { resize_uninitialized(size); }
  SmallVector(size_t size, const T& value) {
    reserve(size);
    for (size_t i = 0; i < size; ++i) push_back(value);
  }
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  template <typename It, typename = typename std::iterator_traits<It>::iterator_category>
  SmallVector(It first, It last) {
    if constexpr (std::is_base_of_v<std::forward_iterator_tag,
                                    typename std::iterator_traits<It>::iterator_category>) {
      reserve(static_cast<size_t>(std::distance(first, last)));
    }
    for (; first != last; ++first) push_back(static_cast<T>(*first));
  }
  SmallVector(const SmallVector& other) {
    if (is_copied_whole && other.is_inline()) {
      copy_whole(other);
    } else {
      append(other.begin(), other.size_);
    }
  }
  SmallVector(SmallVector&& other) noexcept { take(std::move(other)); }
  ~SmallVector() {
    clear();
    release();
  }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.size_);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      clear();
      release();
      take(std::move(other));
    }
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    clear();
    append(values.begin(), values.size());
    return *this;
  }

  iterator begin() { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size_; }
  const_iterator cbegin() const { return data_; }
  const_iterator cend() const { return data_ + size_; }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& at(size_t i) { return data_[checked(i)]; }
  const T& at(size_t i) const { return data_[checked(i)]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<Args>(args)...);  // an argument may live in this vector
      grow(capacity_ * 2);
      return *new (data_ + size_++) T(std::move(value));
    }
    return *new (data_ + size_++) T(std::forward<Args>(args)...);
  }
  void pop_back(size_t count = 1) {
    for (; count > 0 && size_ > 0; --count) std::destroy_at(data_ + --size_);
  }

  iterator insert(const_iterator position, const T& value) {
    return insert(position, size_t{1}, value);
  }
  iterator insert(const_iterator position, T&& value) {
    size_t index = open_gap(position, 1);
    data_[index] = std::move(value);
    return data_ + index;
  }
  iterator insert(const_iterator position, size_t count, const T& value) {
    T copy = value;
    size_t index = open_gap(position, count);
    std::fill_n(data_ + index, count, copy);
    return data_ + index;
  }
  template <typename It, typename = typename std::iterator_traits<It>::iterator_category>
  iterator insert(const_iterator position, It first, It last) {
    std::vector<T> values(first, last);
    size_t index = open_gap(position, values.size());
    std::copy(values.begin(), values.end(), data_ + index);
    return data_ + index;
  }
  iterator erase(const_iterator position) { return erase(position, position + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    iterator target = data_ + (first - data_);
    iterator tail = std::move(data_ + (last - data_), end(), target);
    pop_back(static_cast<size_t>(end() - tail));
    return target;
  }

  void resize(size_t size) { resize(size, T{}); }
  void resize(size_t size, const T& value) {
    if (size < size_) pop_back(size_ - size);
    reserve(size);
    while (size_ < size) push_back(value);
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    // A loop: for a few elements it is faster than the call of memcmp that std::equal becomes.
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }
  friend bool operator!=(const SmallVector& a, const SmallVector& b) { return !(a == b); }

 private:
  // A few instructions for all of it, instead of a call for the elements in use.
  static constexpr bool is_copied_whole = std::is_trivially_copyable_v<T> && N * sizeof(T) <= 128;

  void copy_whole(const SmallVector& other) {
    std::memcpy(storage_, other.storage_, sizeof(storage_));
    size_ = other.size_;
  }

  T* inline_data() { return reinterpret_cast<T*>(storage_); }
  bool is_inline() const { return data_ == reinterpret_cast<const T*>(storage_); }
  size_t checked(size_t i) const {
    if (i >= size_) throw std::out_of_range("[SmallVector::at] index is out of range");
    return i;
  }
  void grow(size_t capacity) {
    capacity = std::max(capacity, N + 1);
    T* moved = static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t(alignof(T))));
    std::uninitialized_move(begin(), end(), moved);
    std::destroy(begin(), end());
    release();
    data_ = moved;
    capacity_ = capacity;
  }
  void release() {
    if (!is_inline()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVector&& other) {
    if (other.is_inline()) {
      if constexpr (is_copied_whole) {
        copy_whole(other);
      } else {
        std::uninitialized_move(other.begin(), other.end(), data_);
        size_ = other.size_;
      }
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }
  void append(const T* values, size_t count) {
    reserve(size_ + count);
    std::uninitialized_copy_n(values, count, data_ + size_);
    size_ += count;
  }
  void resize_uninitialized(size_t size) {
    if constexpr (std::is_trivially_default_constructible_v<T>) {
      reserve(size);
      size_ = size;
    } else {
      resize(size);
    }
  }
  size_t open_gap(const_iterator position, size_t count) {
    size_t index = static_cast<size_t>(position - data_);
    size_t tail = size_ - index;
    resize(size_ + count);
    std::move_backward(data_ + index, data_ + index + tail, data_ + size_);
    return index;
  }

  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) unsigned char storage_[N * sizeof(T)];
};

template <typename V>
inline constexpr bool is_vector_v = false;
template <typename T, typename A>
inline constexpr bool is_vector_v<std::vector<T, A>> = true;
template <typename T, size_t N>
inline constexpr bool is_vector_v<SmallVector<T, N>> = true;

// Prints any vector as (a,b,c).
template <typename V>
  requires is_vector_v<V>
std::ostream& operator<<(std::ostream& os, const V& values) {
  os << '(';
  const char* separator = "";
  for (const auto& value : values) {
    os << separator << value;
    separator = ",";
  }
  return os << ')';
}

}  // namespace holdfast
