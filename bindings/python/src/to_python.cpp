// Arrays as Python's values: scalars, lists, buffers.
#include <utility>

#include <holdfast/ops.h>
#include <holdfast/transforms.h>

#include "array_type.h"

namespace holdfast::python {

bool is_of_host(const array& a) {
  if (!a.data_shared_ptr() || !a.buffer().ptr()) return true;
  const exec::Buffer& buffer = *exec::buffer_of(a.buffer());
  return !buffer.storage() || (exec::space_of(buffer).is_host() && !buffer.replicas());
}

void materialise(array& a) {
  // What was computed by now may have failed: then `wait` throws what went wrong.
  if (a.is_available() && is_of_host(a)) return a.wait();
  WithoutGil released;
  a.eval();
  a.wait();
  std::as_const(a).data<void>();
}

HostElements elements_of(array& a, bool writes) {
  if (a.size() == 0) return {};
  HostElements elements;
  elements.address = writes ? a.data<void>() : const_cast<void*>(std::as_const(a).data<void>());
  if (!is_of_host(a)) {
    exec::Buffer& original = *exec::buffer_of(a.buffer());
    elements.memory = std::move(exec::Replicas::find(original, exec::host_memory()).buffer);
  }
  return elements;
}

namespace {

template <typename T>
PyObject* number(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return PyBool_FromLong(value);
  else if constexpr (std::is_same_v<T, complex64_t>)
    return PyComplex_FromDoubles(value.real(), value.imag());
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return PyLong_FromLongLong(value);
  else if constexpr (std::is_integral_v<T>)
    return PyLong_FromUnsignedLongLong(value);
  else
    return PyFloat_FromDouble(static_cast<double>(value));
}

template <typename T>
PyObject* nested_list(const array& a, const T* first, size_t axis) {
  if (axis == a.ndim()) return number(*first);
  Object list = Object::steal(PyList_New(a.shape()[axis]));
  for (Py_ssize_t i = 0; i < a.shape()[axis]; ++i) {
    PyObject* item = nested_list(a, first + i * a.strides()[axis], axis + 1);
    if (!item) throw PythonError();
    PyList_SetItem(list.get(), i, item);
  }
  return list.release();
}

const char* format_of(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return "?";
    case Dtype::Val::uint8:
      return "B";
    case Dtype::Val::uint16:
      return "H";
    case Dtype::Val::uint32:
      return "I";
    case Dtype::Val::uint64:
      return "L";
    case Dtype::Val::int8:
      return "b";
    case Dtype::Val::int16:
      return "h";
    case Dtype::Val::int32:
      return "i";
    case Dtype::Val::int64:
      return "l";
    case Dtype::Val::float16:
      return "e";
    case Dtype::Val::float32:
      return "f";
    case Dtype::Val::float64:
      return "d";
    case Dtype::Val::complex64:
      return "Zf";
    case Dtype::Val::bfloat16:
      break;
  }
  return nullptr;
}

// What a buffer refers to. It has a handle of its own: `a[0] = 1` gives the array object another.
struct Exported {
  array value;
  std::vector<Py_ssize_t> shape, strides;
  HostElements elements;
};

// Of a device's array, this element is copied and no other.
template <typename T>
T element_of(array& a) {
  if (a.is_available() && is_of_host(a)) {
    a.wait();  // what was computed by now may have failed
    return *std::as_const(a).data<T>();
  }
  WithoutGil released;
  return a.item<T>();
}

}  // namespace

PyObject* item_of(array a) {
  if (a.size() != 1) {
    raise(PyExc_ValueError, "[item] only arrays of one element can be a scalar, got " +
                                std::to_string(a.size()) + " elements");
  }
  return dispatch_dtype(a.dtype(), [&](auto tag) -> PyObject* {
    return number(element_of<typename decltype(tag)::type>(a));
  });
}

PyObject* list_of(array a) {
  materialise(a);
  return dispatch_dtype(a.dtype(), [&](auto tag) -> PyObject* {
    return nested_list(a, std::as_const(a).data<typename decltype(tag)::type>(), 0);
  });
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded_status([&] {
    array a = value_of(self);
    const char* format = format_of(a.dtype());
    if (!format) {
      raise(PyExc_BufferError,
            "bfloat16 has no buffer format: convert to float32, or use view(uint16)");
    }
    materialise(a);
    auto exported = std::make_unique<Exported>(Exported{a, {}, {}, {}});
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if (!wants_strides && !a.flags().row_contiguous) {
      raise(PyExc_BufferError, "the array is not contiguous");
    }
    for (size_t i = 0; i < a.ndim(); ++i) {
      exported->shape.push_back(a.shape()[i]);
      exported->strides.push_back(static_cast<Py_ssize_t>(a.strides()[i]) *
                                  static_cast<Py_ssize_t>(a.itemsize()));
    }
    // What a device has is copied back after a write, so that only those who ask for it may.
    const bool is_writable = is_of_host(a) || (flags & PyBUF_WRITABLE) != 0;
    exported->elements = elements_of(a, is_writable);
    view->buf = exported->elements.address;
    view->len = static_cast<Py_ssize_t>(a.nbytes());
    view->itemsize = static_cast<Py_ssize_t>(a.itemsize());
    view->readonly = !is_writable;
    view->ndim = static_cast<int>(a.ndim());
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? exported->shape.data() : nullptr;
    view->strides = wants_strides ? exported->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported.release();
    view->obj = Py_NewRef(self);
  });
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

}  // namespace holdfast::python
