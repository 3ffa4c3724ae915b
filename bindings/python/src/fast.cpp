// holdfast.core.fast, with kernels of one's own.
#include <holdfast/fast.h>

#include <holdfast/ops.h>

#include "arguments.h"
#include "array_type.h"
#include "dtype_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

float real32(Arguments& a, int place) { return static_cast<float>(a.real(place)); }

PyObject* make_rope(Arguments& a) {
  array x = a.array_at(0);
  std::optional<float> base = a.optional_real(3);
  std::optional<array> frequencies = a.optional_array(6);
  int dims = a.integer(1);
  bool traditional = a.truth(2);
  if (PyBool_Check(a.object(5)))
    raise(PyExc_ValueError, "[rope] offset must be an int or an array of ints, got a bool");
  if (is_integer(a.object(5)) && !is_array(a.object(5))) {
    return give(fast::rope(x, dims, traditional, base, real32(a, 4), a.integer(5), frequencies,
                           a.stream(7)));
  }
  return give(fast::rope(x, dims, traditional, base, real32(a, 4), a.operand_at(5), frequencies,
                         a.stream(7)));
}

PyObject* make_attention(Arguments& a) {
  std::string mode;
  std::optional<array> mask;
  if (PyUnicode_Check(a.object(4))) {
    mode = a.text(4);
    if (mode != "causal") {
      raise(PyExc_ValueError,
            "[scaled_dot_product_attention] mask must be \"causal\" or an array, "
            "got \"" +
                mode + "\"");
    }
  } else {
    mask = a.optional_array(4);
  }
  return give(fast::scaled_dot_product_attention(a.array_at(0), a.array_at(1), a.array_at(2),
                                                 real32(a, 3), mode, mask, a.optional_array(5),
                                                 a.truth(6), a.stream(7)));
}

// The negative logarithm of softmax(logits) at the targets.
PyObject* make_cross_entropy(Arguments& a) {
  array logits = a.array_at(0), targets = a.array_at(1);
  StreamOrDevice s = a.stream(2);
  if (logits.ndim() == 0)
    raise(PyExc_ValueError, "[cross_entropy] logits must have one dimension or more, got none");
  array chosen = squeeze(take_along_axis(logits, expand_dims(targets, -1, s), -1, s), -1, s);
  return give(subtract(logsumexp(logits, -1, false, s), chosen, s));
}

// --- kernels ---

// What metal_kernel returns: a callable.
struct KernelObject {
  PyObject_HEAD fast::CustomKernelFunction* function;
};
PyTypeObject* kernel_type = nullptr;

std::vector<Shape> shapes_at(Arguments& a, int place) {
  std::vector<Shape> shapes;
  if (!PySequence_Check(a.object(place))) a.refuse(place, "a sequence of shapes");
  Object items = as_sequence(a.object(place));
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!PySequence_Check(item.get())) a.refuse(place, "a sequence of shapes");
    Shape shape;
    Object sizes = as_sequence(item.get());
    for (Py_ssize_t k = 0; k < PySequence_Size(sizes.get()); ++k) {
      shape.push_back(to_int(Object::steal(PySequence_GetItem(sizes.get(), k)).get()));
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<Dtype> dtypes_at(Arguments& a, int place) {
  std::vector<Dtype> dtypes;
  if (!PySequence_Check(a.object(place))) a.refuse(place, "a sequence of dtypes");
  Object items = as_sequence(a.object(place));
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!is_dtype(item.get())) a.refuse(place, "a sequence of dtypes");
    dtypes.push_back(dtype_from(item.get()));
  }
  return dtypes;
}

std::vector<std::pair<std::string, fast::TemplateArg>> template_at(Arguments& a, int place) {
  std::vector<std::pair<std::string, fast::TemplateArg>> arguments;
  if (a.is_none(place)) return arguments;
  const char* expected = "a sequence of (name, int, bool or dtype)";
  if (!PySequence_Check(a.object(place))) a.refuse(place, expected);
  Object items = as_sequence(a.object(place));
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!PySequence_Check(item.get()) || PySequence_Size(item.get()) != 2)
      a.refuse(place, expected);
    Object name = Object::steal(PySequence_GetItem(item.get(), 0));
    Object value = Object::steal(PySequence_GetItem(item.get(), 1));
    fast::TemplateArg argument;
    if (PyBool_Check(value.get()))
      argument = value.get() == Py_True;
    else if (is_dtype(value.get()))
      argument = dtype_from(value.get());
    else if (is_integer(value.get()))
      argument = to_int(value.get());
    else
      a.refuse(place, expected);
    arguments.emplace_back(text_of(name.get()), argument);
  }
  return arguments;
}

PyObject* run_kernel(Arguments& a) {
  auto* kernel = reinterpret_cast<KernelObject*>(a.object(0));
  if (!PySequence_Check(a.object(1))) a.refuse(1, "a sequence of arrays and scalars");
  std::vector<array> inputs;
  Object items = as_sequence(a.object(1));
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    inputs.push_back(operand_from(Object::steal(PySequence_GetItem(items.get(), i)).get()));
  }
  return give_list((*kernel->function)(inputs, shapes_at(a, 2), dtypes_at(a, 3), a.triple(4),
                                       a.triple(5), template_at(a, 6), a.optional_real(7),
                                       a.truth(8), a.stream(9)));
}

constexpr Row kernel_row = {
    "kernel",
    "(self, *, inputs, output_shapes, output_dtypes, grid, threadgroup, template=None, "
    "init_value=None, verbose=False, stream=None)",
    "Runs the kernel over a grid of threads.", "", run_kernel};

Object template_value(const fast::TemplateArg& value) {
  if (const int* number = std::get_if<int>(&value)) return Object::steal(PyLong_FromLong(*number));
  if (const bool* flag = std::get_if<bool>(&value)) return Object::steal(PyBool_FromLong(*flag));
  return Object::steal(new_reference(std::get<Dtype>(value)));
}

PyObject* info_of_kernel(Arguments& a) {
  auto* kernel = reinterpret_cast<KernelObject*>(a.object(0));
  Object list = Object::steal(PyList_New(0));
  auto text_or_none = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  for (const fast::KernelInfo& info : fast::kernel_info(*kernel->function)) {
    Object arguments = Object::steal(PyDict_New());
    for (const auto& [name, value] : info.template_args) {
      if (PyDict_SetItemString(arguments.get(), name.c_str(), template_value(value).get()) != 0)
        throw PythonError();
    }
    Object row = Object::steal(
        Py_BuildValue("{s:s,s:z,s:s,s:d,s:z,s:O,s:s}", "code", info.code.c_str(), "reason",
                      text_or_none(info.reason), "from", info.from.c_str(), "milliseconds",
                      info.milliseconds, "missing_barrier", text_or_none(info.missing_barrier),
                      "template", arguments.get(), "signature", info.signature.c_str()));
    if (PyList_Append(list.get(), row.get()) != 0) throw PythonError();
  }
  return list.release();
}

constexpr Row kernel_methods[] = {
    {"info", "(self)",
     "What became of the kernel, a dict for each kind of inputs and template arguments that it was "
     "called with, the last one first: code (\"widened\", or \"reference\": one thread at a time, "
     "slowly), the reason for that, where it came from (compiler, disk, library), how many "
     "milliseconds that took, a missing barrier, the template arguments, the generated signature.",
     "", info_of_kernel},
};

PyObject* call_kernel(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const Signature& signature = *new Signature(parse_signature(kernel_row.signature));
  // By keyword only, but for the kernel itself.
  return call_row(kernel_row, signature, self, arguments, keywords);
}

void delete_kernel(PyObject* self) {
  delete reinterpret_cast<KernelObject*>(self)->function;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* new_kernel(fast::CustomKernelFunction function) {
  KernelObject* object = PyObject_New(KernelObject, kernel_type);
  if (!object) throw PythonError();
  object->function = new fast::CustomKernelFunction(std::move(function));
  return reinterpret_cast<PyObject*>(object);
}

// {"math_mode": "safe" | "relaxed" | "fast", "guard": bool}, or None.
fast::CompileOptions options_at(Arguments& a, int place) {
  if (a.is_none(place)) return {};
  if (!PyDict_Check(a.object(place))) a.refuse(place, "a dict or None");
  fast::CompileOptions options;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(a.object(place), &position, &key, &value)) {
    std::string name = text_of(key);
    if (name == "guard") {
      if (!PyBool_Check(value)) raise(PyExc_ValueError, "[metal_kernel] guard must be a bool");
      options.guard = value == Py_True;
      continue;
    }
    if (name != "math_mode") {
      raise(PyExc_ValueError, "[metal_kernel] there is no compile option " + name);
    }
    std::string mode = text_of(value);
    if (mode == "safe")
      options.math_mode = fast::MathMode::Safe;
    else if (mode == "relaxed")
      options.math_mode = fast::MathMode::Relaxed;
    else if (mode == "fast")
      options.math_mode = fast::MathMode::Fast;
    else
      raise(PyExc_ValueError,
            "[metal_kernel] math_mode must be safe, relaxed or fast, got " + mode);
  }
  return options;
}

#define STREAM "*, stream=None)"
constexpr Row rows[] = {
    {"rms_norm", "(x, weight, eps, " STREAM,
     "x / sqrt(mean(x^2) + eps) * weight, along the last axis.",
     "mx.fast.rms_norm(mx.array([1.0, 2.0]), mx.ones(2), 1e-5)\n"
     "mx.fast.rms_norm(mx.array([1.0, 2.0]), None, 1e-5)",
     [](Arguments& a) {
       return give(fast::rms_norm(a.array_at(0), a.optional_array(1), real32(a, 2), a.stream(3)));
     }},
    {"layer_norm", "(x, weight, bias, eps, " STREAM,
     "(x - mean) / sqrt(var + eps) * weight + bias, along the last axis.",
     "mx.fast.layer_norm(mx.array([1.0, 2.0]), mx.ones(2), mx.ones(2), 1e-5)\n"
     "mx.fast.layer_norm(mx.array([1.0, 2.0]), None, None, 1e-5)",
     [](Arguments& a) {
       return give(fast::layer_norm(a.array_at(0), a.optional_array(1), a.optional_array(2),
                                    real32(a, 3), a.stream(4)));
     }},
    {"rope", "(a, dims, *, traditional, base, scale, offset, freqs=None, stream=None)",
     "Rotary position embedding of the first `dims` features.",
     "mx.fast.rope(mx.ones((1, 2, 3, 4)), 4, traditional=False, base=100.0, scale=1.0, offset=0)\n"
     "mx.fast.rope(mx.ones((1, 1, 2, 4)), 4, traditional=True, base=100.0, scale=0.5, "
     "offset=mx.array([3]))",
     make_rope},
    {"scaled_dot_product_attention",
     "(q, k, v, *, scale, mask=None, sinks=None, force_fused=False, stream=None)",
     "softmax(scale * q k^T + mask) v. The mask is \"causal\", bool, or added to the scores.",
     "mx.fast.scaled_dot_product_attention(mx.ones((1, 2, 3, 4)), mx.ones((1, 1, 3, 4)), "
     "mx.ones((1, 1, 3, 4)), scale=0.5, mask=\"causal\")",
     make_attention},
    {"cross_entropy", "(logits, targets, " STREAM,
     "The negative logarithm of softmax(logits) at the targets, along the last axis.",
     "mx.fast.cross_entropy(mx.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), mx.array([0, 2]))",
     make_cross_entropy},
    {"metal_kernel",
     "(name, input_names, output_names, source, header='', ensure_row_contiguous=True, "
     "atomic_outputs=False, compile_options=None)",
     "A kernel in the Metal Shading Language: `source` is the body of the function. Call the "
     "result "
     "with inputs=, template=, grid=, threadgroup=, output_shapes=, output_dtypes=, init_value=, "
     "verbose=, stream=; it returns a list of arrays.",
     "mx.fast.metal_kernel(\"twice\", [\"x\"], [\"y\"], \"uint i = thread_position_in_grid.x; y[i] "
     "= 2 * "
     "x[i];\")(inputs=[mx.arange(4)], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], "
     "output_dtypes=[mx.int32])",
     [](Arguments& a) {
       return new_kernel(fast::metal_kernel(a.text(0), a.texts(1), a.texts(2), a.text(3), a.text(4),
                                            a.truth(5), a.truth(6), options_at(a, 7)));
     }},
    {"cuda_kernel",
     "(name, input_names, output_names, source, header='', ensure_row_contiguous=True, "
     "shared_memory=0)",
     "A kernel in CUDA C++: raises, since no CUDA device is built in.", "",
     [](Arguments& a) {
       return new_kernel(fast::cuda_kernel(a.text(0), a.texts(1), a.texts(2), a.text(3), a.text(4),
                                           a.truth(5), a.integer(6)));
     }},
    {"precompiled_cuda_kernel",
     "(*, name, compiled_source, inputs, output_shapes, output_dtypes, scalars, grid, threadgroup, "
     "shared_memory=0, init_value=None, ensure_row_contiguous=False, stream=None)",
     "A compiled CUDA kernel: raises, since no CUDA device is built in.", "",
     [](Arguments& a) {
       return give_list(fast::precompiled_cuda_kernel(
           a.text(0), "", a.arrays(2), shapes_at(a, 3), dtypes_at(a, 4), {}, a.triple(6),
           a.triple(7), a.integer(8), a.optional_real(9), a.truth(10), a.stream(11)));
     }},
};
#undef STREAM

}  // namespace

void add_fast(PyObject* module) {
  static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A kernel that metal_kernel made.")},
                                {Py_tp_call, reinterpret_cast<void*>(call_kernel)},
                                {Py_tp_methods, Methods<kernel_methods>::methods("CustomKernel")},
                                {Py_tp_dealloc, reinterpret_cast<void*>(delete_kernel)},
                                {0, nullptr}};
  static PyType_Spec spec = {"holdfast.core.fast.CustomKernel", sizeof(KernelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  kernel_type = reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&spec)).release());
  add_rows<rows>(module);
}

}  // namespace holdfast::python
