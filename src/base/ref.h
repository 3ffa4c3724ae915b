// Shared ownership with the count inside the object: one word, no control block, and a raw pointer
// can become an owner again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/sync.h"

namespace holdfast {

// The base of objects held by Ref<T>. An object starts with one reference, which belongs to whoever
// created it (make_ref, or Ref<T>::adopt). Nothing here is virtual: Ref<T> calls T::retain and
// T::release, and a type that does more at its end (returns to a pool) declares its own release(),
// using drop_reference().
class RefCounted {
 public:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  // The caller holds a reference already, so that the object cannot end meanwhile.
  void retain() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

  // True when this was the last reference: the caller then destroys the object. Everything done
  // before by the other owners is visible. (One acquire-release decrement and no fence, which
  // ThreadSanitizer would not understand.)
  [[nodiscard]] bool drop_reference() const noexcept {
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  // Takes a reference unless the last one is gone: for tables that find an object without owning
  // it. The table's own lock must keep the memory alive during the call.
  [[nodiscard]] bool retain_unless_gone() const noexcept {
    uint32_t count = references_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // True when the caller's reference is the only one, and everything done by former owners is
  // visible.
  bool is_unique() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

  // A snapshot, for tests and reports.
  uint32_t reference_count() const noexcept { return references_.load(std::memory_order_relaxed); }

 protected:
  ~RefCounted() = default;

 private:
  mutable sync::Atomic<uint32_t> references_{1};
};

namespace detail {

// T::release where T has one, else delete at the last reference.
template <class T>
void release_reference(T* object) noexcept {
  if constexpr (requires { object->release(); }) {
    object->release();
  } else if (object->drop_reference()) {
    delete object;
  }
}

}  // namespace detail

// An owner of a T that is RefCounted (or has retain() and release() of its own). A Ref is as
// thread-safe as a raw pointer; the object's count may be changed by any thread.
template <class T>
class Ref {
 public:
  constexpr Ref() noexcept = default;
  constexpr Ref(std::nullptr_t) noexcept {}

  // Adds a reference to an object that someone else keeps alive during the call.
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_) object_->retain();
  }

  // Takes over a reference that the caller owns: that of a new object, or one given up by detach().
  [[nodiscard]] static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }

  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(other.detach()) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) noexcept : Ref(other.get()) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}

  // By value: the old object is released last, after this Ref already holds the new one.
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  ~Ref() {
    if (object_) detail::release_reference(object_);
  }

  // Gives up ownership: the caller must release or adopt.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }

  // Moves the reference out, leaving this Ref empty.
  [[nodiscard]] Ref steal() noexcept { return adopt(detach()); }

  void reset() noexcept { *this = Ref(); }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  template <class U>
  bool operator==(const Ref<U>& other) const noexcept {
    return object_ == other.get();
  }
  bool operator==(const T* other) const noexcept { return object_ == other; }
  bool operator==(std::nullptr_t) const noexcept { return object_ == nullptr; }

 private:
  T* object_ = nullptr;
};

// A new T and its first owner.
template <class T, class... Arguments>
[[nodiscard]] Ref<T> make_ref(Arguments&&... arguments) {
  return Ref<T>::adopt(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace holdfast

template <class T>
struct std::hash<holdfast::Ref<T>> {
  size_t operator()(const holdfast::Ref<T>& ref) const noexcept {
    return std::hash<T*>()(ref.get());
  }
};
