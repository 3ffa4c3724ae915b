// ArrayAt and ArrayIterator.
#include <holdfast/ops.h>

#include "arguments.h"
#include "array_methods.h"
#include "array_type.h"

namespace holdfast::python {

namespace {

// `a.at`, and with a key `a.at[key]`. Arrays do not refer back to it; a key, or an attribute of a
// subclass, may.
struct AtObject {
  PyObject_HEAD PyObject* array;
  PyObject* key;  // null before [...]
};
struct IteratorObject {
  PyObject_HEAD PyObject* array;
  Py_ssize_t next;
};

PyTypeObject* at_type = nullptr;
PyTypeObject* iterator_type = nullptr;

template <typename T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<T*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object->array);
  if constexpr (std::is_same_v<T, AtObject>) Py_VISIT(object->key);
  return 0;
}
template <typename T>
int clear(PyObject* self) {
  auto* object = reinterpret_cast<T*>(self);
  if constexpr (std::is_same_v<T, AtObject>) Py_CLEAR(object->key);
  Py_CLEAR(object->array);
  return 0;
}
template <typename T>
void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear<T>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}
// Not tracked yet, and without its members.
template <typename T>
T* make(PyTypeObject* type) {
  T* object = PyObject_GC_New(T, type);
  if (!object) throw PythonError();
  return object;
}

PyObject* select(PyObject* self, PyObject* key) {
  return guarded([&] { return new_array_at(reinterpret_cast<AtObject*>(self)->array, key); });
}

// The update `how`, with `change` applied to the value first.
template <Update how, typename Change>
PyObject* updated(Arguments& a, const Change& change) {
  auto* at = reinterpret_cast<AtObject*>(a.object(0));
  if (!at->key) raise(PyExc_ValueError, "[at] give the places first: x.at[0].add(4)");
  const array& target = value_of(at->array);
  return give(update(target, at->key, change(value_for(target, a.object(1))), how));
}
array same(array value) { return value; }

constexpr Row at_rows[] = {
    {"add", "(self, value)", "Adds the value at the places; where a place repeats, again.",
     "mx.zeros(3).at[mx.array([0, 0, 1])].add(1)",
     [](Arguments& a) { return updated<Update::add>(a, same); }},
    {"subtract", "(self, value)", "Subtracts the value at the places.",
     "mx.zeros(3).at[mx.array([0, 0, 1])].subtract(1)",
     [](Arguments& a) {
       return updated<Update::add>(a, [](array v) { return negative(std::move(v)); });
     }},
    {"multiply", "(self, value)", "Multiplies with the value at the places.",
     "mx.ones(3).at[1:].multiply(2)",
     [](Arguments& a) { return updated<Update::multiply>(a, same); }},
    {"divide", "(self, value)", "Divides by the value at the places.",
     "mx.ones(3).at[mx.array([0, 0, 1])].divide(2)",
     [](Arguments& a) {
       return updated<Update::multiply>(a, [](array v) { return reciprocal(v); });
     }},
    {"maximum", "(self, value)", "The larger of element and value at the places.",
     "mx.zeros(3).at[mx.array([0, 1])].maximum(mx.array([3.0, -4.0]))",
     [](Arguments& a) { return updated<Update::maximum>(a, same); }},
    {"minimum", "(self, value)", "The smaller of element and value at the places.",
     "mx.zeros(3).at[mx.array([0, 1])].minimum(mx.array([3.0, -4.0]))",
     [](Arguments& a) { return updated<Update::minimum>(a, same); }},
};

PyObject* next(PyObject* self) {
  auto* iterator = reinterpret_cast<IteratorObject*>(self);
  return guarded([&]() -> PyObject* {
    const array& a = value_of(iterator->array);
    if (iterator->next >= a.shape()[0]) return nullptr;
    return new_array(take(a, static_cast<int>(iterator->next++), 0));
  });
}
PyObject* itself(PyObject* self) { return Py_NewRef(self); }

template <typename F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyObject* new_array_at(PyObject* array, PyObject* key) {
  auto* object = make<AtObject>(at_type);
  object->array = Py_NewRef(array);
  object->key = Py_XNewRef(key);
  PyObject_GC_Track(object);
  return reinterpret_cast<PyObject*>(object);
}

PyObject* new_array_iterator(PyObject* array) {
  if (value_of(array).ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over an array of no dimensions");
    return nullptr;
  }
  return guarded([&] {
    auto* object = make<IteratorObject>(iterator_type);
    object->array = Py_NewRef(array);
    object->next = 0;
    PyObject_GC_Track(object);
    return reinterpret_cast<PyObject*>(object);
  });
}

void add_array_helpers(PyObject* module) {
  PyType_Slot at_slots[] = {
      {Py_tp_doc, const_cast<char*>("What a.at gives: updates of an array at places.")},
      {Py_tp_dealloc, slot(deallocate<AtObject>)},
      {Py_tp_traverse, slot(traverse<AtObject>)},
      {Py_tp_clear, slot(clear<AtObject>)},
      {Py_mp_subscript, slot(select)},
      {Py_tp_methods, Methods<at_rows>::methods("ArrayAt")},
      {0, nullptr}};
  PyType_Spec at_spec = {
      "holdfast.core.ArrayAt", sizeof(AtObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, at_slots};
  at_type = reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&at_spec)).release());
  PyModule_AddObjectRef(module, "ArrayAt", reinterpret_cast<PyObject*>(at_type));

  PyType_Slot iterator_slots[] = {
      {Py_tp_doc, const_cast<char*>("The slices of an array along its first axis.")},
      {Py_tp_dealloc, slot(deallocate<IteratorObject>)},
      {Py_tp_traverse, slot(traverse<IteratorObject>)},
      {Py_tp_clear, slot(clear<IteratorObject>)},
      {Py_tp_iter, slot(itself)},
      {Py_tp_iternext, slot(next)},
      {0, nullptr}};
  PyType_Spec iterator_spec = {
      "holdfast.core.ArrayIterator", sizeof(IteratorObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, iterator_slots};
  iterator_type =
      reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&iterator_spec)).release());
  PyModule_AddObjectRef(module, "ArrayIterator", reinterpret_cast<PyObject*>(iterator_type));
}

}  // namespace holdfast::python
