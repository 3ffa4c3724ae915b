// The type of arrays: life, operators, properties.
#include "array_type.h"

#include <cstddef>
#include <new>
#include <sstream>

#include <holdfast/ops.h>
#include <holdfast/utils.h>
#include <structmember.h>

#include "arguments.h"
#include "array_methods.h"
#include "dtype_type.h"

namespace holdfast::python {

PyTypeObject* array_type = nullptr;

PyObject* new_array(array value) {
  ArrayObject* object = PyObject_New(ArrayObject, array_type);
  if (!object) throw PythonError();
  new (&object->value) array(std::move(value));
  object->weak_references = nullptr;
  return reinterpret_cast<PyObject*>(object);
}

namespace {

void deallocate(PyObject* self) {
  auto* object = reinterpret_cast<ArrayObject*>(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  object->value.~array();
  PyTypeObject* type = Py_TYPE(self);
  if (type == array_type)
    PyObject_Free(self);
  else
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"val", "dtype", nullptr};
  PyObject *value = nullptr, *dtype = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O", const_cast<char**>(names), &value,
                                   &dtype)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    std::optional<Dtype> wanted;
    if (dtype != Py_None) wanted = dtype_from(dtype);
    array made = array_from(value, wanted);
    if (type == array_type) return new_array(std::move(made));
    auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    Object object = Object::steal(allocate(type, 0));
    new (&reinterpret_cast<ArrayObject*>(object.get())->value) array(std::move(made));
    return object.release();
  });
}

// --- operators ---

using Binary = array (*)(array, array, StreamOrDevice);

// Lists, strings and None are refused as MLX does; other objects may have an operator of their own.
bool is_surely_wrong(PyObject* other) {
  return PyList_Check(other) || PyTuple_Check(other) || PyUnicode_Check(other) ||
         PyDict_Check(other) || other == Py_None;
}

PyObject* refuse_operand(const char* name, PyObject* a, PyObject* b) {
  PyObject* wrong = is_array(a) ? b : a;
  if (!is_surely_wrong(wrong)) Py_RETURN_NOTIMPLEMENTED;
  raise(wrong == Py_None ? PyExc_TypeError : PyExc_ValueError,
        std::string("[") + name + "] expected an array or a scalar, got " + type_name(wrong));
}

template <Binary function, const char* name>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(a) == array_type && Py_TYPE(b) == array_type) {
      return new_array(function(value_of(a), value_of(b), {}));
    }
    std::optional<std::pair<array, array>> both = operands_from(a, b);
    if (!both) return refuse_operand(name, a, b);
    return new_array(function(std::move(both->first), std::move(both->second), {}));
  });
}

// The object keeps its identity: `b = a; a += 1` changes what b shows.
template <Binary function, const char* name>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    std::optional<std::pair<array, array>> both = operands_from(a, b);
    if (!both) return refuse_operand(name, a, b);
    value_of(a) = function(std::move(both->first), std::move(both->second), {});
    return Py_NewRef(a);
  });
}

template <array (*function)(array, StreamOrDevice)>
PyObject* unary(PyObject* self) {
  return guarded([&] { return new_array(function(value_of(self), {})); });
}

// Bits are not for floating-point scalars.
template <Binary function, const char* name>
PyObject* bits(PyObject* a, PyObject* b) {
  if (PyFloat_Check(a) || PyFloat_Check(b) || PyComplex_Check(a) || PyComplex_Check(b)) {
    PyErr_Format(PyExc_ValueError, "[%s] floating-point operands are not allowed", name);
    return nullptr;
  }
  return binary<function, name>(a, b);
}
template <Binary function, const char* name>
PyObject* bits_in_place(PyObject* a, PyObject* b) {
  if (PyFloat_Check(b) || PyComplex_Check(b)) {
    PyErr_Format(PyExc_ValueError, "[%s] floating-point operands are not allowed", name);
    return nullptr;
  }
  return in_place<function, name>(a, b);
}

PyObject* power_operator(PyObject* a, PyObject* b, PyObject*) {
  static constexpr char name[] = "power";
  return binary<&power, name>(a, b);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) {
  static constexpr char name[] = "power";
  return in_place<&power, name>(a, b);
}

PyObject* matrix_product(PyObject* a, PyObject* b) {
  if (!is_array(a) || !is_array(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return new_array(matmul(value_of(a), value_of(b))); });
}
PyObject* matrix_product_in_place(PyObject* a, PyObject* b) {
  if (!is_array(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    value_of(a) = matmul(value_of(a), value_of(b));
    return Py_NewRef(a);
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static constexpr Binary functions[] = {&less,      &less_equal, &equal,
                                         &not_equal, &greater,    &greater_equal};
  return guarded([&]() -> PyObject* {
    std::optional<std::pair<array, array>> both = operands_from(a, b);
    if (both) return new_array(functions[op](std::move(both->first), std::move(both->second), {}));
    // Something that is no number is not equal to an array.
    if (op == Py_EQ) Py_RETURN_FALSE;
    if (op == Py_NE) Py_RETURN_TRUE;
    return refuse_operand("compare", a, b);
  });
}

Object item_object(PyObject* self) { return Object::steal(item_of(value_of(self))); }

int truth(PyObject* self) {
  int result = -1;
  return guarded_status([&] { result = PyObject_IsTrue(item_object(self).get()); }) ? -1 : result;
}

PyObject* as_float(PyObject* self) {
  return guarded([&] { return PyNumber_Float(item_object(self).get()); });
}

PyObject* as_int(PyObject* self) {
  return guarded([&] { return PyNumber_Long(item_object(self).get()); });
}

PyObject* as_index(PyObject* self) {
  return guarded([&] {
    const array& a = value_of(self);
    if (a.ndim() != 0 || !issubdtype(a.dtype(), integer)) {
      raise(PyExc_TypeError, "only integer arrays of no dimensions can be an index");
    }
    return item_object(self).release();
  });
}

// --- containers ---

Py_ssize_t length(PyObject* self) {
  const array& a = value_of(self);
  if (a.ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of an array of no dimensions");
    return -1;
  }
  return a.shape()[0];
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&] { return new_array(index(value_of(self), key)); });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_status([&] {
    if (!value) raise(PyExc_TypeError, "elements of an array cannot be deleted");
    array& a = value_of(self);
    a = update(a, key, value_for(a, value), Update::set);
  });
}

// --- text ---

PyObject* text(PyObject* self) {
  return guarded([&] {
    array a = value_of(self);
    materialise(a);
    std::ostringstream out;
    out << a;
    return PyUnicode_FromString(out.str().c_str());
  });
}

Py_hash_t identity_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4);
}

// --- properties ---

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return give_shape(value_of(self).shape()); });
}
PyObject* get_dtype(PyObject* self, void*) { return new_reference(value_of(self).dtype()); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromSize_t(value_of(self).ndim()); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromSize_t(value_of(self).size()); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(value_of(self).itemsize());
}
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(value_of(self).nbytes()); }
PyObject* get_real(PyObject* self, void*) {
  return guarded([&] { return new_array(real(value_of(self))); });
}
PyObject* get_imag(PyObject* self, void*) {
  return guarded([&] { return new_array(imag(value_of(self))); });
}
PyObject* get_transposed(PyObject* self, void*) {
  return guarded([&] { return new_array(transpose(value_of(self))); });
}
PyObject* get_matrix_transposed(PyObject* self, void*) {
  return guarded([&] { return new_array(swapaxes(value_of(self), -2, -1)); });
}
PyObject* get_at(PyObject* self, void*) {
  return guarded([&] { return new_array_at(self, nullptr); });
}

PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "The dimensions, as a tuple of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of an element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"real", get_real, nullptr, "The real part.", nullptr},
    {"imag", get_imag, nullptr, "The imaginary part.", nullptr},
    {"T", get_transposed, nullptr, "All axes in reverse order.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "The last two axes exchanged.", nullptr},
    {"at", get_at, nullptr,
     "Updates at places: a.at[index].add(x) adds also where an index repeats.", nullptr},
    {}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY, nullptr},
    {}};

template <typename F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

#define HOLDFAST_NAME(function) constexpr char name_of_##function[] = #function;
HOLDFAST_NAME(add)
HOLDFAST_NAME(subtract)
HOLDFAST_NAME(multiply)
HOLDFAST_NAME(divide)
HOLDFAST_NAME(floor_divide)
HOLDFAST_NAME(remainder)
HOLDFAST_NAME(bitwise_and)
HOLDFAST_NAME(bitwise_or)
HOLDFAST_NAME(bitwise_xor)
HOLDFAST_NAME(left_shift)
HOLDFAST_NAME(right_shift)
#undef HOLDFAST_NAME

PyObject* positive_operator(PyObject* self) {
  return guarded([&] { return new_array(value_of(self)); });
}

}  // namespace

void add_array_type(PyObject* module) {
#define HOLDFAST_OPERATOR(slot_name, in_place_slot, function)    \
  {slot_name, slot(binary<&function, name_of_##function>)}, {    \
    in_place_slot, slot(in_place<&function, name_of_##function>) \
  }
#define HOLDFAST_BITS(slot_name, in_place_slot, function)             \
  {slot_name, slot(bits<&function, name_of_##function>)}, {           \
    in_place_slot, slot(bits_in_place<&function, name_of_##function>) \
  }
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("array(val, dtype=None)\n--\n\nAn N-dimensional array, from a "
                                    "scalar, nested lists, another array or a buffer.\n\n"
                                    "Example:\n\n    >>> mx.array([[1, 2], [3, 4]])\n")},
      {Py_tp_new, slot(construct)},
      {Py_tp_dealloc, slot(deallocate)},
      {Py_tp_repr, slot(text)},
      {Py_tp_hash, slot(identity_hash)},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_iter, slot(new_array_iterator)},
      {Py_tp_getset, properties},
      {Py_tp_members, members},
      {Py_tp_methods, array_methods(module)},
      {Py_bf_getbuffer, slot(get_buffer)},
      {Py_bf_releasebuffer, slot(release_buffer)},
      {Py_mp_length, slot(length)},
      {Py_mp_subscript, slot(get_item)},
      {Py_mp_ass_subscript, slot(set_item)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_float, slot(as_float)},
      {Py_nb_int, slot(as_int)},
      {Py_nb_index, slot(as_index)},
      {Py_nb_negative, slot(unary<&negative>)},
      {Py_nb_positive, slot(positive_operator)},
      {Py_nb_absolute, slot(unary<&abs>)},
      {Py_nb_invert, slot(unary<&bitwise_invert>)},
      {Py_nb_power, slot(power_operator)},
      {Py_nb_inplace_power, slot(power_in_place)},
      {Py_nb_matrix_multiply, slot(matrix_product)},
      {Py_nb_inplace_matrix_multiply, slot(matrix_product_in_place)},
      HOLDFAST_OPERATOR(Py_nb_add, Py_nb_inplace_add, add),
      HOLDFAST_OPERATOR(Py_nb_subtract, Py_nb_inplace_subtract, subtract),
      HOLDFAST_OPERATOR(Py_nb_multiply, Py_nb_inplace_multiply, multiply),
      HOLDFAST_OPERATOR(Py_nb_true_divide, Py_nb_inplace_true_divide, divide),
      HOLDFAST_OPERATOR(Py_nb_floor_divide, Py_nb_inplace_floor_divide, floor_divide),
      HOLDFAST_OPERATOR(Py_nb_remainder, Py_nb_inplace_remainder, remainder),
      HOLDFAST_BITS(Py_nb_and, Py_nb_inplace_and, bitwise_and),
      HOLDFAST_BITS(Py_nb_or, Py_nb_inplace_or, bitwise_or),
      HOLDFAST_BITS(Py_nb_xor, Py_nb_inplace_xor, bitwise_xor),
      HOLDFAST_BITS(Py_nb_lshift, Py_nb_inplace_lshift, left_shift),
      HOLDFAST_BITS(Py_nb_rshift, Py_nb_inplace_rshift, right_shift),
      {0, nullptr}};
#undef HOLDFAST_OPERATOR
#undef HOLDFAST_BITS
  PyType_Spec spec = {"holdfast.core.array", sizeof(ArrayObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  array_type = reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "array", reinterpret_cast<PyObject*>(array_type));
  add_array_helpers(module);
}

}  // namespace holdfast::python
