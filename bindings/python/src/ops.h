// The tables of functions, a file a family.
#pragma once

#include "python.h"

namespace holdfast::python {

// Each adds its functions to a module.
void add_elementwise(PyObject* module);
void add_shape_ops(PyObject* module);
void add_reductions(PyObject* module);
void add_products(PyObject* module);
void add_random(PyObject* module);
void add_linalg(PyObject* module);
void add_fft(PyObject* module);
void add_fast(PyObject* module);
void add_language_models(PyObject* module);  // into fast
void add_memory(PyObject* module);
void add_files(PyObject* module);
void add_transforms(PyObject* module);
void add_export(PyObject* module);
void add_validation(PyObject* module);

}  // namespace holdfast::python
