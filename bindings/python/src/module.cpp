// The extension module, holdfast._native: holds the modules of functions, of which the package
// makes holdfast.core and its parts.
#include <holdfast/utils.h>

#include "array_type.h"
#include "device_types.h"
#include "dtype_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

Object add_module(PyObject* parent, const char* name) {
  std::string full = std::string("holdfast.core") + (*name ? "." : "") + name;
  Object module = Object::steal(PyModule_New(full.c_str()));
  PyModule_AddObjectRef(parent, *name ? name : "core", module.get());
  return module;
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace holdfast::python

PyMODINIT_FUNC PyInit__native() {
  using namespace holdfast::python;
  return guarded([]() -> PyObject* {
    Object native = Object::steal(PyModule_Create(&definition));
    Object core = add_module(native.get(), "");
    add_dtypes(core.get());
    add_device_types(core.get());
    add_elementwise(core.get());
    add_shape_ops(core.get());
    add_reductions(core.get());
    add_products(core.get());
    add_memory(core.get());
    add_files(core.get());
    add_transforms(core.get());
    add_export(core.get());
    add_array_type(core.get());
    holdfast::get_global_formatter().capitalize_bool = true;
    add_random(add_module(native.get(), "random").get());
    add_linalg(add_module(native.get(), "linalg").get());
    add_fft(add_module(native.get(), "fft").get());
    Object fast = add_module(native.get(), "fast");
    add_fast(fast.get());
    add_language_models(fast.get());
    add_validation(add_module(native.get(), "validation").get());
    return native.release();
  });
}
