// The arguments of one call, converted by place. A wrong one is a TypeError (or what MLX raises)
// that names function and parameter.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/array.h>
#include <holdfast/stream.h>

#include "signature.h"

namespace holdfast::python {

class Arguments {
 public:
  Arguments(const Row& row, const Signature& signature, PyObject* const* values,
            std::span<PyObject* const> rest)
      : row_(row), signature_(signature), values_(values), rest_(rest) {}

  PyObject* object(int place) const { return values_[place]; }
  bool is_none(int place) const { return values_[place] == Py_None; }
  // The positional arguments behind the named ones ("*shape").
  std::span<PyObject* const> rest() const { return rest_; }

  // An array, or what becomes one: a scalar, a buffer, an object with `__mlx_array__`. Not a list.
  array array_at(int place) const;
  // The same for functions of numbers: what is neither is a ValueError there, as in MLX.
  array operand_at(int place) const;
  std::optional<array> optional_array(int place) const;
  // A scalar takes the dtype of the array beside it (weak promotion).
  std::pair<array, array> operands(int first, int second) const;
  std::vector<array> arrays(int place) const;  // a sequence of arrays
  std::vector<array> rest_arrays() const;

  int integer(int place) const;
  std::optional<int> optional_integer(int place) const;
  double real(int place) const;
  std::optional<float> optional_real(int place) const;
  bool truth(int place) const;
  std::string text(int place) const;
  std::vector<std::string> texts(int place) const;
  size_t size(int place) const;

  // An int or a sequence of ints.
  std::vector<int> integers(int place) const;
  // None: no value.
  std::optional<std::vector<int>> optional_integers(int place) const;
  Shape shape(int place) const;
  // The shape given as several arguments, or as one sequence.
  Shape rest_shape() const;
  // An int for both (all three), or as many ints.
  std::pair<int, int> pair(int place) const;
  std::tuple<int, int, int> triple(int place) const;

  Dtype dtype(int place) const;
  Dtype dtype(int place, Dtype default_dtype) const;  // for None
  std::optional<Dtype> optional_dtype(int place) const;
  StreamOrDevice stream(int place) const;

  // TypeError: "[sum] axis must be an int or a sequence of ints, got str".
  [[noreturn]] void refuse(int place, const std::string& expected) const;

 private:
  const Row& row_;
  const Signature& signature_;
  PyObject* const* values_;
  std::span<PyObject* const> rest_;
};

// --- results ---

PyObject* give(array a);  // a new array object
PyObject* give_list(std::vector<array> arrays);
PyObject* give_tuple(std::vector<array> arrays);
PyObject* give_tuple(std::pair<array, array> arrays);
PyObject* give_shape(const Shape& shape);
inline PyObject* give_none() { return Py_NewRef(Py_None); }

// An int that fits; no value when it is none, TypeError or OverflowError raised as PythonError.
int to_int(PyObject* object);
bool is_integer(PyObject* object);
// The elements of a list or tuple, or of anything that can be iterated over.
Object as_sequence(PyObject* object);
// The arrays of a sequence. `refuse` throws, for an element that is none.
std::vector<array> arrays_of(PyObject* sequence,
                             const std::function<void(PyObject* element)>& refuse);
// An int or a sequence of ints; no value when it is neither.
std::optional<std::vector<int>> integers_of(PyObject* object);

}  // namespace holdfast::python
