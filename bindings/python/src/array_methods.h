// The methods of arrays, and the small types that belong to them.
#pragma once

#include "python.h"

namespace holdfast::python {

// Most do what the function of the same name in the module does, which must be there already.
PyMethodDef* array_methods(PyObject* module);
// ArrayAt and ArrayIterator.
void add_array_helpers(PyObject* module);
// What `a.at` gives; `a.at[key]` when a key is given.
PyObject* new_array_at(PyObject* array, PyObject* key);
PyObject* new_array_iterator(PyObject* array);

}  // namespace holdfast::python
