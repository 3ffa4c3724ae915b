// holdfast.core.array: a Python object that holds an array handle.
//
// The handle is replaced by assignment (`a[0] = 1`, `a += 1`) and never null.
#pragma once

#include <optional>

#include <holdfast/array.h>

#include "exec/replicas.h"
#include "python.h"

namespace holdfast::python {

struct ArrayObject {
  PyObject_HEAD array value;
  PyObject* weak_references;
};

extern PyTypeObject* array_type;

inline bool is_array(PyObject* object) {
  return Py_TYPE(object) == array_type || PyObject_TypeCheck(object, array_type);
}
inline array& value_of(PyObject* object) { return reinterpret_cast<ArrayObject*>(object)->value; }
PyObject* new_array(array value);

void add_array_type(PyObject* module);

// --- Python to arrays ---

// From anything that `array(...)` takes: scalars, nested lists, arrays, buffers, DLPack.
array array_from(PyObject* object, std::optional<Dtype> dtype);
// As above, but not from lists: operands and arguments.
array operand_from(PyObject* object);
// A scalar of Python's beside an array of `dtype`: it takes that dtype where its kind fits (weak).
array weak_scalar(PyObject* scalar, Dtype dtype);
bool is_scalar(PyObject* object);
// True if the object can become an array without being a list.
bool is_operand(PyObject* object);
// Both operands of an op: arrays promote, scalars are weak. None when one cannot be an operand.
std::optional<std::pair<array, array>> operands_from(PyObject* a, PyObject* b);
// A copy of a buffer's elements, or an array over its memory; none when the object has no buffer,
// or when the memory cannot be shared.
std::optional<array> array_from_buffer(PyObject* object, std::optional<Dtype> dtype,
                                       bool share_memory);

// --- arrays to Python ---

// Evaluates, waits, and copies elements that a device has to the host, without the GIL. `a` must be
// the caller's own handle: another thread may give an array object a new one meanwhile.
void materialise(array& a);
// Elements for another package, which may keep them for longer than the array lives, or than its
// bytes on the host are those of the array.
struct HostElements {
  void* address = nullptr;  // null: there are none
  exec::BufferOwner memory;
};
// Of a materialised array. With `writes`, a device that has the array copies it back at its next
// use of it.
HostElements elements_of(array& a, bool writes);
// Is the memory of the array the host's alone?
bool is_of_host(const array& a);
PyObject* item_of(array a);
PyObject* list_of(array a);
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* to_dlpack(array a);
array from_dlpack_capsule(PyObject* capsule);

// --- indexing ---

enum class Update { set, add, multiply, maximum, minimum };
array index(const array& a, PyObject* key);
// `a` with the value put to (or combined with what is at) the places that the key names.
array update(const array& a, PyObject* key, const array& value, Update how);
// A value for `update`, in the dtype of `a`.
array value_for(const array& a, PyObject* value);

}  // namespace holdfast::python
