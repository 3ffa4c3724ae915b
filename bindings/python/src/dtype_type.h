// holdfast.core.Dtype: 14 objects, one for each dtype.
#pragma once

#include <holdfast/dtype.h>

#include "python.h"

namespace holdfast::python {

void add_dtypes(PyObject* module);
// Borrowed: dtype objects live as long as the module.
PyObject* dtype_object(Dtype dtype);
inline PyObject* new_reference(Dtype dtype) {
  PyObject* object = dtype_object(dtype);
  Py_INCREF(object);
  return object;
}
bool is_dtype(PyObject* object);
// TypeError unless it is one.
Dtype dtype_from(PyObject* object);

}  // namespace holdfast::python
