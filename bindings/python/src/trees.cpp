#include "trees.h"

#include "array_type.h"

namespace holdfast::python {

namespace {

// Stands for an array: no program can have it in a tree.
PyObject* mark() {
  static PyObject* instance = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return instance;
}

PyObject* random_state_type = nullptr;

bool is_random_state(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == random_state_type;
}

void enter() {
  if (Py_EnterRecursiveCall(" in a tree of arrays")) throw PythonError();
}

// A tuple of the same type: named ones are made of their fields.
Object like_tuple(PyObject* original, Object items) {
  if (Py_TYPE(original) == &PyTuple_Type) return items;
  if (!PyObject_HasAttrString(original, "_fields")) return items;
  return Object::steal(
      PyObject_Call(reinterpret_cast<PyObject*>(Py_TYPE(original)), items.get(), nullptr));
}

// The tree with `change` applied to its leaves.
template <typename F>
Object mapped(PyObject* tree, const F& change) {
  if (PyList_Check(tree) || PyTuple_Check(tree)) {
    enter();
    bool is_list = PyList_Check(tree);
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    Object result = Object::steal(is_list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item =
          mapped(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), change).release();
      if (is_list)
        PyList_SetItem(result.get(), i, item);
      else
        PyTuple_SetItem(result.get(), i, item);
    }
    Py_LeaveRecursiveCall();
    return is_list ? result : like_tuple(tree, std::move(result));
  }
  if (PyDict_Check(tree)) {
    enter();
    Object result = Object::steal(PyDict_New());
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(tree, &position, &key, &value)) {
      Object item = mapped(value, change);
      if (PyDict_SetItem(result.get(), key, item.get()) != 0) throw PythonError();
    }
    Py_LeaveRecursiveCall();
    return result;
  }
  return change(tree);
}

}  // namespace

void set_random_state_type(PyObject* type) { random_state_type = Py_NewRef(type); }

void collect_arrays(PyObject* tree, std::vector<array>& arrays) {
  if (is_array(tree)) {
    arrays.push_back(value_of(tree));
  } else if (PyList_Check(tree) || PyTuple_Check(tree)) {
    enter();
    bool is_list = PyList_Check(tree);
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    for (Py_ssize_t i = 0; i < count; ++i) {
      collect_arrays(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), arrays);
    }
    Py_LeaveRecursiveCall();
  } else if (PyDict_Check(tree)) {
    enter();
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(tree, &position, &key, &value)) collect_arrays(value, arrays);
    Py_LeaveRecursiveCall();
  } else if (is_random_state(tree)) {
    arrays.push_back(value_of(Object::steal(PySequence_GetItem(tree, 0)).get()));
  }
}

Object take_arrays(PyObject* tree, std::vector<array>& arrays) {
  return mapped(tree, [&](PyObject* leaf) {
    if (!is_array(leaf)) return Object::borrow(leaf);
    arrays.push_back(value_of(leaf));
    return Object::borrow(mark());
  });
}

Object put_arrays(PyObject* structure, const std::vector<array>& arrays, size_t& next) {
  return mapped(structure, [&](PyObject* leaf) {
    if (leaf != mark()) return Object::borrow(leaf);
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    return Object::steal(new_array(arrays[next++]));
  });
}

void replace_arrays(PyObject* tree, const std::vector<array>& arrays, size_t& next) {
  auto replace = [&](PyObject* item) -> Object {
    if (!is_array(item)) {
      replace_arrays(item, arrays, next);
      return {};
    }
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    return Object::steal(new_array(arrays[next++]));
  };
  if (PyList_Check(tree)) {
    enter();
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i) {
      if (Object made = replace(PyList_GetItem(tree, i))) PyList_SetItem(tree, i, made.release());
    }
    Py_LeaveRecursiveCall();
  } else if (PyTuple_Check(tree)) {
    enter();
    for (Py_ssize_t i = 0; i < PyTuple_Size(tree); ++i) {
      PyObject* item = PyTuple_GetItem(tree, i);
      // A tuple cannot be changed: the array object itself gets the new value.
      if (is_array(item)) {
        Object made = replace(item);
        value_of(item) = value_of(made.get());
      } else {
        replace_arrays(item, arrays, next);
      }
    }
    Py_LeaveRecursiveCall();
  } else if (PyDict_Check(tree)) {
    enter();
    Py_ssize_t position = 0;
    PyObject *key, *value;
    // Values of keys that are there may be set while a dict is walked.
    while (PyDict_Next(tree, &position, &key, &value)) {
      if (Object made = replace(value)) {
        if (PyDict_SetItem(tree, key, made.get()) != 0) throw PythonError();
      }
    }
    Py_LeaveRecursiveCall();
  } else if (is_random_state(tree)) {
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    Object made = Object::steal(new_array(arrays[next++]));
    if (PySequence_SetItem(tree, 0, made.get()) != 0) throw PythonError();
  }
}

}  // namespace holdfast::python
