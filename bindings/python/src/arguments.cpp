#include "arguments.h"

#include <limits>

#include "array_type.h"
#include "device_types.h"
#include "dtype_type.h"

namespace holdfast::python {

void Arguments::refuse(int place, const std::string& expected) const {
  raise(PyExc_TypeError, "[" + std::string(row_.name) + "] " +
                             text_of(signature_.parameters[static_cast<size_t>(place)].name.get()) +
                             " must be " + expected + ", got " + type_name(values_[place]));
}

array Arguments::array_at(int place) const {
  PyObject* value = values_[place];
  if (is_array(value)) return value_of(value);
  if (PyList_Check(value) || PyTuple_Check(value) || !is_operand(value)) refuse(place, "an array");
  return operand_from(value);
}

array Arguments::operand_at(int place) const {
  PyObject* value = values_[place];
  if (is_array(value)) return value_of(value);
  if (value == Py_None) refuse(place, "an array or a scalar");
  return operand_from(value);
}

std::optional<array> Arguments::optional_array(int place) const {
  if (is_none(place)) return std::nullopt;
  return array_at(place);
}

std::pair<array, array> Arguments::operands(int first, int second) const {
  if (is_none(first)) refuse(first, "an array or a scalar");
  if (is_none(second)) refuse(second, "an array or a scalar");
  std::optional<std::pair<array, array>> both = operands_from(values_[first], values_[second]);
  if (both) return std::move(*both);
  int wrong = is_operand(values_[first]) ? second : first;
  raise(PyExc_ValueError, "[" + std::string(row_.name) + "] expected an array or a scalar, got " +
                              type_name(values_[wrong]));
}

std::vector<array> arrays_of(PyObject* sequence, const std::function<void(PyObject*)>& refuse) {
  Object items = as_sequence(sequence);
  std::vector<array> arrays;
  Py_ssize_t count = PySequence_Size(items.get());
  arrays.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!is_array(item.get())) refuse(item.get());
    arrays.push_back(value_of(item.get()));
  }
  return arrays;
}

std::vector<array> Arguments::arrays(int place) const {
  if (!PySequence_Check(values_[place])) refuse(place, "a sequence of arrays");
  return arrays_of(values_[place], [&](PyObject*) { refuse(place, "a sequence of arrays"); });
}

std::vector<array> Arguments::rest_arrays() const {
  std::vector<array> arrays;
  for (PyObject* value : rest_) {
    arrays.push_back(is_array(value) ? value_of(value) : operand_from(value));
  }
  return arrays;
}

namespace {

// A sequence with a length: NumPy's arrays are sequences, but those of no dimensions have none.
bool has_items(PyObject* object) {
  if (is_array(object)) return value_of(object).ndim() > 0;
  if (PyLong_Check(object) || PyUnicode_Check(object) || !PySequence_Check(object)) return false;
  if (PySequence_Size(object) >= 0) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

bool is_integer(PyObject* object) {
  return PyLong_Check(object) || (PyIndex_Check(object) && !has_items(object));
}

int to_int(PyObject* object) {
  Object number = Object::steal(PyNumber_Index(object));
  int overflow = 0;
  long value = PyLong_AsLongAndOverflow(number.get(), &overflow);
  if (overflow || value > std::numeric_limits<int>::max() ||
      value < std::numeric_limits<int>::min()) {
    Object text = Object::steal(PyObject_Str(number.get()));
    raise(PyExc_OverflowError,
          "the integer " + text_of(text.get()) +
              " is outside of the range of 32 bits, -2147483648 to 2147483647");
  }
  return static_cast<int>(value);
}

Object as_sequence(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return Object::borrow(object);
  return Object::steal(PySequence_List(object));
}

int Arguments::integer(int place) const {
  if (!is_integer(values_[place])) refuse(place, "an int");
  return to_int(values_[place]);
}

std::optional<int> Arguments::optional_integer(int place) const {
  if (is_none(place)) return std::nullopt;
  return integer(place);
}

size_t Arguments::size(int place) const {
  if (!is_integer(values_[place])) refuse(place, "an int");
  Object number = Object::steal(PyNumber_Index(values_[place]));
  size_t value = PyLong_AsSize_t(number.get());
  if (value == static_cast<size_t>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_OverflowError, "an integer is negative or does not fit 64 bits");
  }
  return value;
}

double Arguments::real(int place) const {
  double value = PyFloat_AsDouble(values_[place]);
  if (value == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    refuse(place, "a number");
  }
  return value;
}

std::optional<float> Arguments::optional_real(int place) const {
  if (is_none(place)) return std::nullopt;
  return static_cast<float>(real(place));
}

bool Arguments::truth(int place) const {
  int value = PyObject_IsTrue(values_[place]);
  if (value < 0) throw PythonError();
  return value == 1;
}

std::string Arguments::text(int place) const {
  if (!PyUnicode_Check(values_[place])) refuse(place, "a str");
  return text_of(values_[place]);
}

std::vector<std::string> Arguments::texts(int place) const {
  if (!PySequence_Check(values_[place]) || PyUnicode_Check(values_[place])) {
    refuse(place, "a sequence of str");
  }
  Object items = as_sequence(values_[place]);
  std::vector<std::string> result;
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!PyUnicode_Check(item.get())) refuse(place, "a sequence of str");
    result.push_back(text_of(item.get()));
  }
  return result;
}

namespace {

// Of an int or a sequence of ints; arrays of integers are either.
template <typename Numbers>
bool numbers_from(PyObject* object, Numbers& numbers) {
  if (!has_items(object)) {
    if (!is_integer(object)) return false;
    numbers.push_back(to_int(object));
    return true;
  }
  Object items = as_sequence(object);
  for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
    Object item = Object::steal(PySequence_GetItem(items.get(), i));
    if (!is_integer(item.get())) return false;
    numbers.push_back(to_int(item.get()));
  }
  return true;
}

constexpr const char* ints = "an int or a sequence of ints";

}  // namespace

std::optional<std::vector<int>> integers_of(PyObject* object) {
  std::vector<int> numbers;
  if (!numbers_from(object, numbers)) return std::nullopt;
  return numbers;
}

std::vector<int> Arguments::integers(int place) const {
  std::optional<std::vector<int>> numbers = integers_of(values_[place]);
  if (!numbers) refuse(place, ints);
  return std::move(*numbers);
}

std::optional<std::vector<int>> Arguments::optional_integers(int place) const {
  if (is_none(place)) return std::nullopt;
  return integers(place);
}

Shape Arguments::shape(int place) const {
  Shape shape;
  if (!numbers_from(values_[place], shape)) refuse(place, ints);
  return shape;
}

Shape Arguments::rest_shape() const {
  Shape shape;
  if (rest_.size() == 1) {
    if (!numbers_from(rest_[0], shape)) {
      raise(PyExc_TypeError,
            "[" + std::string(row_.name) + "] expected ints, got " + type_name(rest_[0]));
    }
  } else {
    for (PyObject* item : rest_) shape.push_back(to_int(item));
  }
  return shape;
}

std::pair<int, int> Arguments::pair(int place) const {
  std::vector<int> numbers = integers(place);
  if (numbers.size() == 1) numbers.resize(2, numbers[0]);
  if (numbers.size() != 2) refuse(place, "an int or two ints");
  return {numbers[0], numbers[1]};
}

std::tuple<int, int, int> Arguments::triple(int place) const {
  std::vector<int> numbers = integers(place);
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  if (numbers.size() != 3) refuse(place, "an int or three ints");
  return {numbers[0], numbers[1], numbers[2]};
}

Dtype Arguments::dtype(int place) const {
  if (!is_dtype(values_[place])) refuse(place, "a dtype");
  return dtype_from(values_[place]);
}

Dtype Arguments::dtype(int place, Dtype default_dtype) const {
  return is_none(place) ? default_dtype : dtype(place);
}

std::optional<Dtype> Arguments::optional_dtype(int place) const {
  if (is_none(place)) return std::nullopt;
  return dtype(place);
}

StreamOrDevice Arguments::stream(int place) const {
  if (is_none(place)) return {};
  std::optional<StreamOrDevice> stream = stream_from(values_[place]);
  if (!stream) refuse(place, "a Stream, a Device, a DeviceType or None");
  return *stream;
}

PyObject* give(array a) { return new_array(std::move(a)); }

PyObject* give_list(std::vector<array> arrays) {
  Object list = Object::steal(PyList_New(static_cast<Py_ssize_t>(arrays.size())));
  for (size_t i = 0; i < arrays.size(); ++i) {
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), new_array(std::move(arrays[i])));
  }
  return list.release();
}

PyObject* give_tuple(std::vector<array> arrays) {
  Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
  for (size_t i = 0; i < arrays.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), new_array(std::move(arrays[i])));
  }
  return tuple.release();
}

PyObject* give_tuple(std::pair<array, array> arrays) {
  return give_tuple(std::vector<array>{std::move(arrays.first), std::move(arrays.second)});
}

PyObject* give_shape(const Shape& shape) {
  Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(shape[i]));
  }
  return tuple.release();
}

}  // namespace holdfast::python
