// Arrays from Python's values: scalars, nested lists, buffers (NumPy and others).
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include <holdfast/ops.h>

#include "arguments.h"
#include "array_type.h"

namespace holdfast::python {

namespace {

// --- scalars ---

struct Integer {
  int64_t value;
  bool unsigned_only;  // 2^63 or more: `value` holds the bits
};

Integer integer_from(PyObject* number) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (!overflow) {
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    return {value, false};
  }
  unsigned long long large = PyLong_AsUnsignedLongLong(number);
  if (large == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_OverflowError, "[array] an integer does not fit 64 bits");
  }
  return {static_cast<int64_t>(large), true};
}

Dtype default_dtype(const Integer& number) {
  if (number.unsigned_only) return uint64;
  bool small = number.value >= std::numeric_limits<int32_t>::min() &&
               number.value <= std::numeric_limits<int32_t>::max();
  return small ? int32 : int64;
}

array array_of(const Integer& number, Dtype dtype) {
  if (number.unsigned_only) return array(static_cast<uint64_t>(number.value), dtype);
  return array(number.value, dtype);
}

complex64_t complex_from(PyObject* number) {
  return complex64_t(static_cast<float>(PyComplex_RealAsDouble(number)),
                     static_cast<float>(PyComplex_ImagAsDouble(number)));
}

array array_from_scalar(PyObject* scalar, std::optional<Dtype> dtype) {
  if (PyBool_Check(scalar)) return array(scalar == Py_True, dtype.value_or(bool_));
  if (PyLong_Check(scalar)) {
    Integer number = integer_from(scalar);
    return array_of(number, dtype.value_or(default_dtype(number)));
  }
  if (PyFloat_Check(scalar)) return array(PyFloat_AsDouble(scalar), dtype.value_or(float32));
  return array(complex_from(scalar), dtype.value_or(complex64));
}

// NumPy's scalars are not Python's (but for float64), and have a buffer that is not wanted here.
bool is_numpy_scalar(PyObject* object) {
  static PyObject* generic = nullptr;
  if (!generic) {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* numpy = PyDict_GetItemString(modules, "numpy");
    if (!numpy) return false;
    generic = PyObject_GetAttrString(numpy, "generic");
    if (!generic) {
      PyErr_Clear();
      return false;
    }
  }
  return PyObject_IsInstance(object, generic) == 1;
}

// --- lists ---

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }
// Borrowed.
PyObject* item_of_list(PyObject* list, Py_ssize_t place) {
  return PyList_Check(list) ? PyList_GetItem(list, place) : PyTuple_GetItem(list, place);
}

// What the elements of a nested list are, from narrow to wide.
enum class Kind { boolean, integer, real, complex };

struct ListContents {
  Shape shape;
  Kind kind = Kind::boolean;
  bool any = false;            // has an element
  bool large = false;          // an integer beyond 32 bits
  bool unsigned_only = false;  // one of 2^63 or more
  bool negative = false;
  bool has_arrays = false;

  // The first elements tell the shape, and all others must have it.
  explicit ListContents(PyObject* list) {
    for (PyObject* first = list; is_list(first); first = item_of_list(first, 0)) {
      Py_ssize_t count = PySequence_Size(first);
      if (count > std::numeric_limits<ShapeElem>::max()) {
        raise(PyExc_OverflowError, "[array] a list has more than 2^31 elements");
      }
      shape.push_back(static_cast<ShapeElem>(count));
      if (count == 0) break;
      if (shape.size() > 64) raise(PyExc_ValueError, "[array] lists are nested too deeply");
    }
    look_at(list, 0);
  }

 private:
  void look_at(PyObject* list, size_t depth) {
    Py_ssize_t count = PySequence_Size(list);
    if (shape[depth] != count) raise_ragged();
    bool innermost = depth + 1 == shape.size();
    for (Py_ssize_t i = 0; i < count && !has_arrays; ++i) {
      PyObject* item = item_of_list(list, i);
      if (is_array(item)) {
        has_arrays = true;
      } else if (is_list(item)) {
        if (innermost) raise_ragged();
        look_at(item, depth + 1);
      } else {
        if (!innermost) raise_ragged();
        look_at_scalar(item);
      }
    }
  }
  void look_at_scalar(PyObject* item) {
    any = true;
    if (PyBool_Check(item)) return;
    if (PyLong_Check(item)) {
      Integer number = integer_from(item);
      kind = std::max(kind, Kind::integer);
      large |= default_dtype(number) != int32;
      unsigned_only |= number.unsigned_only;
      negative |= number.value < 0 && !number.unsigned_only;
    } else if (PyFloat_Check(item)) {
      kind = std::max(kind, Kind::real);
    } else if (PyComplex_Check(item)) {
      kind = Kind::complex;
    } else {
      raise(PyExc_ValueError, "[array] a list holds a " + type_name(item) +
                                  "; expected numbers, arrays, or lists of these");
    }
  }
  [[noreturn]] void raise_ragged() {
    raise(PyExc_ValueError, "[array] lists at the same depth must have the same length");
  }
};

// Calls `take` with each element of a nested list, in order.
template <typename F>
void for_each_scalar(PyObject* list, const F& take) {
  Py_ssize_t count = PySequence_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = item_of_list(list, i);
    if (is_list(item))
      for_each_scalar(item, take);
    else
      take(item);
  }
}

template <typename T, typename F>
array filled(PyObject* list, const ListContents& contents, Dtype dtype, const F& convert) {
  size_t count = 1;
  for (ShapeElem dimension : contents.shape) count *= static_cast<size_t>(dimension);
  std::unique_ptr<T[]> values(new T[count]);
  size_t place = 0;
  for_each_scalar(list, [&](PyObject* item) {
    if (place < count) values[place++] = convert(item);
  });
  return array(values.get(), contents.shape, dtype);
}

double real_from(PyObject* number) {
  if (PyFloat_Check(number)) return PyFloat_AsDouble(number);
  double value = PyLong_AsDouble(number);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

array array_from_list(PyObject* list, std::optional<Dtype> dtype) {
  ListContents contents(list);
  if (contents.has_arrays) {
    std::vector<array> parts;
    for (Py_ssize_t i = 0; i < PySequence_Size(list); ++i) {
      Object item = Object::steal(PySequence_GetItem(list, i));
      parts.push_back(array_from(item.get(), dtype));
    }
    return stack(parts);
  }
  if (!contents.any)
    return array(static_cast<float*>(nullptr), contents.shape, dtype.value_or(float32));
  switch (contents.kind) {
    case Kind::boolean:
      return filled<bool>(list, contents, dtype.value_or(bool_),
                          [](PyObject* item) { return item == Py_True; });
    case Kind::integer: {
      if (contents.unsigned_only && contents.negative) {
        raise(PyExc_OverflowError, "[array] the integers of a list do not fit 64 bits");
      }
      auto convert = [](PyObject* item) { return integer_from(item).value; };
      if (contents.unsigned_only) {
        return filled<uint64_t>(list, contents, dtype.value_or(uint64), convert);
      }
      return filled<int64_t>(list, contents, dtype.value_or(contents.large ? int64 : int32),
                             convert);
    }
    case Kind::real:
      return filled<double>(list, contents, dtype.value_or(float32), real_from);
    case Kind::complex:
      break;
  }
  return filled<complex64_t>(list, contents, dtype.value_or(complex64), [](PyObject* item) {
    return PyComplex_Check(item) ? complex_from(item)
                                 : complex64_t(static_cast<float>(real_from(item)), 0.0f);
  });
}

// --- buffers ---

class Buffer {
 public:
  static std::shared_ptr<Buffer> of(PyObject* object) {
    auto buffer = std::make_shared<Buffer>();
    if (PyObject_GetBuffer(object, &buffer->view, PyBUF_FULL_RO) != 0) {
      PyErr_Clear();
      return nullptr;
    }
    buffer->held_ = true;
    return buffer;
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view);
  }
  Py_buffer view{};

 private:
  bool held_ = false;
};

struct Element {
  Dtype dtype;
  bool complex128 = false;
};

// What struct's format characters stand for here.
std::optional<Element> element_of(const Py_buffer& view) {
  std::string_view format = view.format ? view.format : "B";
  if (!format.empty() && std::string_view("@=<|").find(format[0]) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  if (format == "Zf" || format == "F") return Element{complex64};
  if (format == "Zd" || format == "D") return Element{complex64, true};
  if (format.size() != 1) return std::nullopt;
  bool is_signed = std::string_view("bhilqn").find(format[0]) != std::string_view::npos;
  bool is_unsigned = std::string_view("BHILQN").find(format[0]) != std::string_view::npos;
  if (format == "?") return Element{bool_};
  if (format == "e") return Element{float16};
  if (format == "f") return Element{float32};
  if (format == "d") return Element{float64};
  if (is_signed || is_unsigned) {
    switch (view.itemsize) {
      case 1:
        return Element{is_signed ? int8 : uint8};
      case 2:
        return Element{is_signed ? int16 : uint16};
      case 4:
        return Element{is_signed ? int32 : uint32};
      case 8:
        return Element{is_signed ? int64 : uint64};
    }
  }
  return std::nullopt;
}

// One contiguous copy of the elements.
array copied(const Py_buffer& view, const Shape& shape, const Element& element) {
  size_t bytes = static_cast<size_t>(view.len);
  if (element.complex128) {
    std::vector<double> parts(bytes / sizeof(double));
    if (PyBuffer_ToContiguous(parts.data(), &view, view.len, 'C') != 0) throw PythonError();
    std::vector<complex64_t> values(parts.size() / 2);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          complex64_t(static_cast<float>(parts[2 * i]), static_cast<float>(parts[2 * i + 1]));
    }
    return array(values.begin(), shape);
  }
  array result(allocator::malloc(bytes), shape, element.dtype);
  if (PyBuffer_IsContiguous(&view, 'C')) {
    if (bytes > (size_t{1} << 20)) {
      WithoutGil released;
      std::memcpy(result.data<char>(), view.buf, bytes);
    } else if (bytes > 0) {
      std::memcpy(result.data<char>(), view.buf, bytes);
    }
  } else if (PyBuffer_ToContiguous(result.data<char>(), &view, view.len, 'C') != 0) {
    throw PythonError();
  }
  return result;
}

// NumPy has no bfloat16 of its own; packages add one, whose arrays have no buffer.
std::optional<array> from_bfloat16(PyObject* object) {
  Object dtype = Object::borrow(nullptr);
  if (PyObject* found = PyObject_GetAttrString(object, "dtype")) {
    dtype = Object::steal(found);
  } else {
    PyErr_Clear();
    return std::nullopt;
  }
  Object name = Object::steal(PyObject_Str(dtype.get()));
  if (text_of(name.get()) != "bfloat16") return std::nullopt;
  Object bits = Object::steal(PyObject_CallMethod(object, "view", "s", "uint16"));
  std::optional<array> values = array_from_buffer(bits.get(), std::nullopt, false);
  if (!values) return std::nullopt;
  return view(*values, bfloat16);
}

}  // namespace

std::optional<array> array_from_buffer(PyObject* object, std::optional<Dtype> dtype,
                                       bool share_memory) {
  std::shared_ptr<Buffer> buffer = PyObject_CheckBuffer(object) ? Buffer::of(object) : nullptr;
  if (!buffer) return share_memory ? std::nullopt : from_bfloat16(object);
  const Py_buffer& source = buffer->view;
  std::optional<Element> element = element_of(source);
  if (!element) {
    if (std::optional<array> values = from_bfloat16(object)) return values;
    raise(PyExc_ValueError, "[array] cannot make an array of elements of format \"" +
                                std::string(source.format ? source.format : "") + "\"");
  }
  Shape shape;
  for (int i = 0; i < source.ndim; ++i) {
    if (source.shape[i] > std::numeric_limits<ShapeElem>::max()) {
      raise(PyExc_OverflowError, "[array] a dimension does not fit 32 bits");
    }
    shape.push_back(static_cast<ShapeElem>(source.shape[i]));
  }
  // float64 is asked for by name only.
  Dtype wanted = dtype.value_or(element->dtype == float64 ? float32 : element->dtype);
  bool aligned = reinterpret_cast<uintptr_t>(source.buf) %
                     static_cast<size_t>(source.itemsize > 0 ? source.itemsize : 1) ==
                 0;
  if (share_memory && wanted == element->dtype && !element->complex128 && source.len > 0 &&
      aligned && PyBuffer_IsContiguous(&source, 'C')) {
    // The memory goes back when the last work that reads it has completed, on whatever thread.
    auto* exporter = new Object(Object::steal(PyMemoryView_FromObject(object)));
    return array(source.buf, shape, wanted, [exporter](void*) {
      drop_later(exporter->release());
      delete exporter;
    });
  }
  if (share_memory) return std::nullopt;
  // What the host holds is converted there: a GPU has no float64.
  return astype(copied(source, shape, *element), wanted, Device::cpu);
}

bool is_scalar(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object);
}

array weak_scalar(PyObject* scalar, Dtype dtype) {
  if (PyBool_Check(scalar)) return array(scalar == Py_True);
  if (PyLong_Check(scalar)) {
    Integer number = integer_from(scalar);
    if (dtype == bool_) return array_of(number, default_dtype(number));
    if (issubdtype(dtype, integer)) {
      iinfo limits(dtype);
      bool fits = number.unsigned_only
                      ? dtype == uint64
                      : number.value >= limits.min &&
                            (number.value < 0 || static_cast<uint64_t>(number.value) <= limits.max);
      if (!fits) {
        Object text = Object::steal(PyObject_Str(scalar));
        raise(PyExc_ValueError,
              text_of(text.get()) + " does not fit the dtype " + dtype_name(dtype));
      }
    }
    return array_of(number, dtype);
  }
  if (PyFloat_Check(scalar)) {
    return array(PyFloat_AsDouble(scalar), issubdtype(dtype, inexact) ? dtype : float32);
  }
  return array(complex_from(scalar));
}

bool is_operand(PyObject* object) {
  return is_array(object) || is_scalar(object) || is_numpy_scalar(object) ||
         PyObject_HasAttrString(object, "__mlx_array__") ||
         (PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !PyByteArray_Check(object)) ||
         PyObject_HasAttrString(object, "__dlpack__");
}

array operand_from(PyObject* object) {
  if (is_list(object) || !is_operand(object)) {
    raise(PyExc_ValueError, "expected an array or a scalar, got " + type_name(object));
  }
  return array_from(object, std::nullopt);
}

array array_from(PyObject* object, std::optional<Dtype> dtype) {
  drop_collected();
  if (is_scalar(object)) return array_from_scalar(object, dtype);
  if (is_list(object)) return array_from_list(object, dtype);
  if (is_array(object)) {
    const array& value = value_of(object);
    return dtype && *dtype != value.dtype() ? astype(value, *dtype) : value;
  }
  if (PyObject_HasAttrString(object, "__mlx_array__")) {
    Object made = Object::steal(PyObject_CallMethod(object, "__mlx_array__", nullptr));
    if (!is_array(made.get())) {
      raise(PyExc_ValueError, "[array] __mlx_array__ returned a " + type_name(made.get()));
    }
    return array_from(made.get(), dtype);
  }
  if (std::optional<array> values = array_from_buffer(object, dtype, false)) return *values;
  if (PyObject_HasAttrString(object, "__dlpack__")) {
    Object capsule = Object::steal(PyObject_CallMethod(object, "__dlpack__", nullptr));
    array values = from_dlpack_capsule(capsule.get());
    if (values.dtype() == float64 && !dtype) dtype = float32;
    return copy(dtype ? astype(values, *dtype, Device::cpu) : values, Device::cpu);
  }
  raise(object == Py_None ? PyExc_TypeError : PyExc_ValueError,
        "[array] cannot make an array of a " + type_name(object));
}

std::optional<std::pair<array, array>> operands_from(PyObject* a, PyObject* b) {
  bool a_is_array = is_array(a), b_is_array = is_array(b);
  if (a_is_array && b_is_array) return std::pair(value_of(a), value_of(b));
  Object a_item, b_item;  // NumPy's scalars as Python's
  auto plain = [](PyObject* object, Object& item) {
    if (is_scalar(object) || !is_numpy_scalar(object)) return object;
    item = Object::steal(PyObject_CallMethod(object, "item", nullptr));
    return is_scalar(item.get()) ? item.get() : object;
  };
  if (a_is_array) {
    b = plain(b, b_item);
    if (is_scalar(b)) return std::pair(value_of(a), weak_scalar(b, value_of(a).dtype()));
  }
  if (b_is_array) {
    a = plain(a, a_item);
    if (is_scalar(a)) return std::pair(weak_scalar(a, value_of(b).dtype()), value_of(b));
  }
  if (!is_operand(a) || !is_operand(b)) return std::nullopt;
  bool a_is_scalar = is_scalar(a), b_is_scalar = is_scalar(b);
  array first = array_from(a, std::nullopt), second = array_from(b, std::nullopt);
  if (a_is_scalar != b_is_scalar) {
    if (a_is_scalar) return std::pair(weak_scalar(a, second.dtype()), second);
    return std::pair(first, weak_scalar(b, first.dtype()));
  }
  return std::pair(std::move(first), std::move(second));
}

}  // namespace holdfast::python
