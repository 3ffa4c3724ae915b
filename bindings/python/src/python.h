// The CPython API (its stable part, so that one build serves every interpreter from 3.11 on), owned
// references, and the way of errors between the two languages.
#pragma once

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::python {

// An owned reference, or none. The GIL must be held wherever one is copied or destroyed.
class Object {
 public:
  Object() = default;
  Object(const Object& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
  Object(Object&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Object() { Py_XDECREF(pointer_); }

  // Takes over a new reference; a null pointer means that Python has raised: PythonError.
  static Object steal(PyObject* pointer);
  static Object borrow(PyObject* pointer) {
    Object object;
    Py_XINCREF(pointer);
    object.pointer_ = pointer;
    return object;
  }

  PyObject* get() const { return pointer_; }
  // Gives the reference away, as what a C function returns.
  PyObject* release() { return std::exchange(pointer_, nullptr); }
  explicit operator bool() const { return pointer_ != nullptr; }

 private:
  PyObject* pointer_ = nullptr;
};

// A Python exception on its way through C++. Not a std::exception, so that nobody wraps it.
class PythonError {
 public:
  // Takes what Python has raised.
  PythonError();
  // An error of ours.
  PythonError(PyObject* type, const std::string& message);
  void restore();
  // One of ours that does not begin with the name of a function gets that of `function`.
  void restore_from(const std::string& function);

 private:
  Object type_, value_, traceback_;
  std::string message_;  // empty: not ours
};

// Throws a Python exception of the given type.
[[noreturn]] void raise(PyObject* type, const std::string& message);

// Raises what the validator found as holdfast.validation.ValidationError, with its report; false:
// it is another error. Throws PythonError.
bool raise_if_validation_error(const std::exception& error);

// In a catch block: raises the current C++ exception in Python. std::invalid_argument is
// ValueError, std::out_of_range IndexError, std::overflow_error OverflowError, std::bad_alloc
// MemoryError, everything else RuntimeError.
void raise_current_exception() noexcept;

// Runs `function`, which returns a PyObject* or throws.
template <typename F>
PyObject* guarded(F&& function) noexcept {
  try {
    return function();
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}
// The same for functions that return 0, or -1 when Python has raised.
template <typename F>
int guarded_status(F&& function) noexcept {
  try {
    function();
    return 0;
  } catch (...) {
    raise_current_exception();
    return -1;
  }
}

// Other Python threads run while one lives. No Python object may be touched then.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Gives a reference back from any thread, without the GIL: the interpreter does it soon. So no
// worker ever waits for the GIL.
void drop_later(PyObject* object) noexcept;
// An object that C++ may copy, keep and destroy on any thread.
inline std::shared_ptr<PyObject> shared(PyObject* object) {
  return {Py_NewRef(object), [](PyObject* held) { drop_later(held); }};
}
// Gives back what has been collected by drop_later. The GIL must be held.
void drop_collected() noexcept;

// The text of a str; TypeError otherwise.
std::string text_of(PyObject* text);
inline std::string type_name(PyObject* object) {
  Object name = Object::steal(PyType_GetName(Py_TYPE(object)));
  return text_of(name.get());
}
inline Object attribute(PyObject* object, const char* name) {
  return Object::steal(PyObject_GetAttrString(object, name));
}

}  // namespace holdfast::python
