#include "dtype_type.h"

#include <string>

#include "arguments.h"
#include "signature.h"

namespace holdfast::python {

namespace {

struct DtypeObject {
  PyObject_HEAD Dtype::Val value;
};

PyTypeObject* dtype_type = nullptr;
PyObject* dtype_objects[dtype_count];

Dtype value_of(PyObject* self) { return dtype_of(reinterpret_cast<DtypeObject*>(self)->value); }

// The module that names of dtypes are printed with: mlx.core in programs written for MLX.
std::string printed_module = "holdfast.core";

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("%s.%s", printed_module.c_str(), dtype_name(value_of(self)));
}

// Equal objects are identical, so Python's own comparison would do; only the hash is MLX's.
Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(value_of(self).val()); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((a == b) == (op == Py_EQ));
}

PyObject* size(PyObject* self, void*) { return PyLong_FromLong(value_of(self).size()); }

// By its name in the module: unpickling gives the same object.
PyObject* reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(value_of(self) == bool_ ? "bool_" : dtype_name(value_of(self)));
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "there are no dtypes but those of the module");
  return nullptr;
}

PyGetSetDef properties[] = {{"size", size, nullptr, "Bytes of an element.", nullptr}, {}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("The type of an array's elements: holdfast.core.float32, …")},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {}};
PyType_Spec spec = {"holdfast.core.Dtype", sizeof(DtypeObject), 0, Py_TPFLAGS_DEFAULT, slots};

constexpr Row rows[] = {
    {"_set_printed_module", "(name)", "For the package itself.", "",
     [](Arguments& a) {
       printed_module = a.text(0);
       return give_none();
     }},
};

}  // namespace

void add_dtypes(PyObject* module) {
  add_rows<rows>(module);
  dtype_type = reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "Dtype", reinterpret_cast<PyObject*>(dtype_type));
  for (int i = 0; i < dtype_count; ++i) {
    auto value = static_cast<Dtype::Val>(i);
    auto* object = PyObject_New(DtypeObject, dtype_type);
    if (!object) throw PythonError();
    object->value = value;
    dtype_objects[i] = reinterpret_cast<PyObject*>(object);
    const char* name = value == Dtype::Val::bool_ ? "bool_" : dtype_name(value);
    PyModule_AddObjectRef(module, name, dtype_objects[i]);
  }
}

PyObject* dtype_object(Dtype dtype) { return dtype_objects[static_cast<int>(dtype.val())]; }

bool is_dtype(PyObject* object) { return Py_TYPE(object) == dtype_type; }

Dtype dtype_from(PyObject* object) {
  if (!is_dtype(object)) {
    raise(PyExc_TypeError, "expected a dtype, such as float32, got " + type_name(object));
  }
  return value_of(object);
}

}  // namespace holdfast::python
