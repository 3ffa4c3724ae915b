#include "python.h"

#include <atomic>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

namespace holdfast::python {

Object Object::steal(PyObject* pointer) {
  if (!pointer) throw PythonError();
  Object object;
  object.pointer_ = pointer;
  return object;
}

PythonError::PythonError() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!type) {
    PyErr_SetString(PyExc_SystemError, "a function failed without an exception");
    PyErr_Fetch(&type, &value, &traceback);
  }
  type_ = Object::steal(type);
  value_ = Object::borrow(value);
  Py_XDECREF(value);
  traceback_ = Object::borrow(traceback);
  Py_XDECREF(traceback);
}

PythonError::PythonError(PyObject* type, const std::string& message)
    : type_(Object::borrow(type)), message_(message) {}

void PythonError::restore() {
  if (message_.empty()) {
    PyErr_Restore(type_.release(), value_.release(), traceback_.release());
  } else {
    PyErr_SetString(type_.get(), message_.c_str());
  }
}

void PythonError::restore_from(const std::string& function) {
  if (!message_.empty() && !message_.starts_with('[') && !message_.starts_with(function + "(")) {
    message_ = "[" + function + "] " + message_;
  }
  restore();
}

void raise(PyObject* type, const std::string& message) { throw PythonError(type, message); }

void raise_current_exception() noexcept {
  try {
    throw;
  } catch (PythonError& error) {
    error.restore();
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::domain_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::length_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    try {
      if (!raise_if_validation_error(error)) PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (PythonError& other) {
      other.restore();
    }
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an error without a description");
  }
}

namespace {

// References that other threads gave up. Never destroyed: workers may use it at any time.
struct Collected {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  std::atomic<bool> any{false};
};

Collected& collected() {
  static auto* instance = new Collected;
  return *instance;
}

int drop_pending(void*) {
  drop_collected();
  return 0;
}

}  // namespace

void drop_later(PyObject* object) noexcept {
  {
    std::lock_guard lock(collected().mutex);
    collected().objects.push_back(object);
  }
  // A full queue of the interpreter's is no loss: drop_collected is called elsewhere, too.
  if (!collected().any.exchange(true)) Py_AddPendingCall(drop_pending, nullptr);
}

void drop_collected() noexcept {
  if (!collected().any.load(std::memory_order_relaxed)) return;
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(collected().mutex);
    objects.swap(collected().objects);
    collected().any = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

std::string text_of(PyObject* text) {
  Py_ssize_t length = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text, &length);
  if (!characters) throw PythonError();
  return {characters, static_cast<size_t>(length)};
}

}  // namespace holdfast::python
