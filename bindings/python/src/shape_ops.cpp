// Creation, shape, selection.
#include <cmath>

#include <holdfast/ops.h>
#include <holdfast/utils.h>

#include "arguments.h"
#include "array_type.h"
#include "dtype_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

bool is_whole(PyObject* number) { return number == Py_None || is_integer(number); }

double number_from(PyObject* number, double default_value) {
  if (number == Py_None) return default_value;
  double value = PyFloat_AsDouble(number);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

// arange(stop), arange(start, stop, step), arange(stop, step=…), arange(start=…, stop=…)
PyObject* make_range(Arguments& a) {
  PyObject *start = a.object(0), *stop = a.object(1), *step = a.object(2);
  if (start == Py_None && stop == Py_None) a.refuse(1, "a number");
  if (stop == Py_None) std::swap(start, stop);
  if (PyBool_Check(stop) && start == Py_None) {
    raise(PyExc_ValueError, "[arange] expected a number, got a bool");
  }
  bool whole = is_whole(start) && is_whole(stop) && is_whole(step);
  double first = number_from(start, 0), last = number_from(stop, 0), by = number_from(step, 1);
  Dtype dtype = a.dtype(3, whole ? int32 : float32);
  if (whole && a.is_none(3) && (std::abs(first) >= 2147483648.0 || std::abs(last) > 2147483648.0)) {
    dtype = int64;
  }
  return give(arange(first, last, by, dtype, a.stream(4)));
}

std::optional<int> axis_or_flat(Arguments& a, int place) { return a.optional_integer(place); }

// Scalars and host data are converted to the dtype at once: by way of float32, float64 would lose
// digits.
array values_for(Arguments& a, int place, Dtype dtype) {
  PyObject* values = a.object(place);
  if (is_array(values) || !is_operand(values)) return a.operand_at(place);
  if (PyLong_Check(values) && !PyBool_Check(values))
    return astype(weak_scalar(values, dtype), dtype);
  return array_from(values, dtype);
}

PyObject* make_full(Arguments& a) {
  if (a.is_none(2)) return give(full(a.shape(0), a.operand_at(1), a.stream(3)));
  Dtype dtype = a.dtype(2);
  return give(full(a.shape(0), values_for(a, 1, dtype), dtype, a.stream(3)));
}

PyObject* make_pad(Arguments& a) {
  array x = a.array_at(0);
  PyObject* width = a.object(1);
  std::vector<std::pair<int, int>> widths;
  bool nested = !is_integer(width) && PySequence_Check(width) && PySequence_Size(width) > 0 &&
                !is_integer(Object::steal(PySequence_GetItem(width, 0)).get());
  if (!nested) {
    std::vector<int> both = a.integers(1);
    if (both.size() == 1) both.push_back(both[0]);
    if (both.size() != 2) a.refuse(1, "an int, two ints, or two ints for each axis");
    widths.assign(x.ndim(), {both[0], both[1]});
  } else {
    for (Py_ssize_t i = 0; i < PySequence_Size(width); ++i) {
      Object item = Object::steal(PySequence_GetItem(width, i));
      if (!PySequence_Check(item.get()) || PySequence_Size(item.get()) < 1 ||
          PySequence_Size(item.get()) > 2) {
        a.refuse(1, "an int, two ints, or two ints for each axis");
      }
      int low = to_int(Object::steal(PySequence_GetItem(item.get(), 0)).get());
      int high = PySequence_Size(item.get()) == 1
                     ? low
                     : to_int(Object::steal(PySequence_GetItem(item.get(), 1)).get());
      widths.emplace_back(low, high);
    }
    if (widths.size() == 1) widths.resize(x.ndim(), widths.front());  // one pair: for each axis
  }
  return give(pad(x, widths, a.operands(0, 3).second, a.text(2), a.stream(4)));
}

PyObject* make_split(Arguments& a) {
  if (is_integer(a.object(1))) {
    return give_list(split(a.array_at(0), a.integer(1), a.integer(2), a.stream(3)));
  }
  return give_list(split(a.array_at(0), a.shape(1), a.integer(2), a.stream(3)));
}

PyObject* make_take(Arguments& a) {
  array x = a.array_at(0);
  std::optional<int> axis = a.optional_integer(2);
  PyObject* indices = a.object(1);
  if (is_integer(indices) && !is_array(indices)) {
    return give(axis ? take(x, a.integer(1), *axis, a.stream(3))
                     : take(x, a.integer(1), a.stream(3)));
  }
  array places = PyList_Check(indices) ? array_from(indices, std::nullopt) : a.array_at(1);
  return give(axis ? take(x, places, *axis, a.stream(3)) : take(x, places, a.stream(3)));
}

PyObject* make_roll(Arguments& a) {
  array x = a.array_at(0);
  Shape shift = a.shape(1);
  std::optional<std::vector<int>> axes = a.optional_integers(2);
  if (!axes) return give(roll(x, shift, a.stream(3)));
  // Several shifts of one axis add up; one shift is that of all axes.
  if (is_integer(a.object(2))) return give(roll(x, shift, axes->front(), a.stream(3)));
  if (is_integer(a.object(1))) return give(roll(x, shift.front(), *axes, a.stream(3)));
  return give(roll(x, shift, *axes, a.stream(3)));
}

template <std::vector<array> (*several)(const std::vector<array>&, StreamOrDevice)>
PyObject* at_least(Arguments& a) {
  std::vector<array> results = several(a.rest_arrays(), a.stream(0));
  if (results.size() == 1) return give(std::move(results[0]));
  return give_list(std::move(results));
}

template <array (*function)(int, StreamOrDevice)>
PyObject* window(Arguments& a) {
  return give(function(a.integer(0), a.stream(1)));
}

// The distinct elements in order. Nothing in the graph has a size that depends on values, so the
// caller says how many there may be; further places hold the fill value, or the smallest element.
PyObject* make_unique(Arguments& a) {
  array x = a.array_at(0);
  int size = a.integer(1);
  StreamOrDevice s = a.stream(6);
  array flat = flatten(x, s);
  int n = static_cast<int>(flat.size());
  if (n == 0) raise(PyExc_ValueError, "[unique] expected at least one element");
  if (!a.is_none(1) && a.integer(1) < 0) {
    raise(PyExc_ValueError,
          "[unique] expected a size of at least 0, got " + std::to_string(a.integer(1)));
  }
  array order = argsort(flat, s);
  array sorted = take(flat, order, 0, s);
  array first = array(true);
  if (n > 1) {
    array changes = not_equal(slice(sorted, Shape{1}, Shape{n}, s),
                              slice(sorted, Shape{0}, Shape{n - 1}, s), s);
    first = concatenate({reshape(first, Shape{1}, s), changes}, s);
  } else {
    first = reshape(first, Shape{1}, s);
  }
  array group = subtract(cumsum(astype(first, int32, s), 0, false, true, s), array(1), s);
  // Where group k begins: the number of sorted elements of smaller groups.
  array numbers = arange(0, size, 1, s);
  array begin = searchsorted(group, numbers, "left", s);
  array end = searchsorted(group, numbers, "right", s);
  array there = less(begin, array(static_cast<uint32_t>(n)), s);
  array place = where(there, begin, array(static_cast<uint32_t>(0)), s);
  array values = take(sorted, place, 0, s);
  if (!a.is_none(5))
    values = where(there, values, astype(a.operands(0, 5).second, x.dtype(), s), s);
  std::vector<array> results{values};
  if (a.truth(2)) results.push_back(take(order, place, 0, s));
  if (a.truth(3)) {
    array inverse =
        put_along_axis(zeros(Shape{n}, uint32, s), order, astype(group, uint32, s), 0, s);
    results.push_back(reshape(inverse, x.shape(), s));
  }
  if (a.truth(4)) results.push_back(astype(subtract(end, begin, s), int32, s));
  if (results.size() == 1) return give(std::move(results[0]));
  return give_tuple(std::move(results));
}

#define STREAM "*, stream=None)"
constexpr Row rows[] = {
    {"arange", "(start=None, stop=None, step=None, dtype=None, " STREAM,
     "Numbers from start (0), by step (1), before stop.",
     "mx.arange(5)\nmx.arange(2, 8, 2)\nmx.arange(0, 1, 0.25)\nmx.arange(3, dtype=mx.float16)",
     make_range},
    {"linspace", "(start, stop, num=50, endpoint=True, dtype=None, stream=None)",
     "Evenly spaced numbers from start to stop.",
     "mx.linspace(0, 1, 5)\nmx.linspace(0, 1, 4, endpoint=False)",
     [](Arguments& a) {
       int num = a.is_none(2) ? 50 : a.integer(2);
       return give(
           linspace(a.real(0), a.real(1), num, a.truth(3), a.dtype(4, float32), a.stream(5)));
     }},
    {"full", "(shape, vals, dtype=None, " STREAM, "An array with the given value everywhere.",
     "mx.full((2, 2), 3)\nmx.full(3, 1.5, mx.float16)", make_full},
    {"full_like", "(a, vals, dtype=None, " STREAM, "A value everywhere, in the shape of a.",
     "mx.full_like(mx.array([1, 2]), 7)",
     [](Arguments& a) {
       array like = a.array_at(0);
       Dtype dtype = a.dtype(2, like.dtype());
       return give(full_like(like, values_for(a, 1, dtype), dtype, a.stream(3)));
     }},
    {"zeros", "(shape, dtype=None, " STREAM, "Zeros; float32 unless a dtype is named.",
     "mx.zeros((2, 3))\nmx.zeros(2, mx.int8)",
     [](Arguments& a) { return give(zeros(a.shape(0), a.dtype(1, float32), a.stream(2))); }},
    {"zeros_like", "(a, /, dtype=None, " STREAM, "Zeros in the shape of a.",
     "mx.zeros_like(mx.array([1, 2]))",
     [](Arguments& a) {
       array like = a.array_at(0);
       return give(zeros_like(like, a.dtype(1, like.dtype()), a.stream(2)));
     }},
    {"ones", "(shape, dtype=None, " STREAM, "Ones; float32 unless a dtype is named.",
     "mx.ones((2, 3))\nmx.ones(2, mx.int8)",
     [](Arguments& a) { return give(ones(a.shape(0), a.dtype(1, float32), a.stream(2))); }},
    {"ones_like", "(a, /, dtype=None, " STREAM, "Ones in the shape of a.",
     "mx.ones_like(mx.array([1, 2]))",
     [](Arguments& a) {
       array like = a.array_at(0);
       return give(ones_like(like, a.dtype(1, like.dtype()), a.stream(2)));
     }},
    {"empty", "(shape, dtype=None, " STREAM, "An array to be filled: zeros.",
     "mx.empty((2, 3)).shape",
     [](Arguments& a) { return give(zeros(a.shape(0), a.dtype(1, float32), a.stream(2))); }},
    {"empty_like", "(a, /, dtype=None, " STREAM, "An array to be filled, in the shape of a: zeros.",
     "mx.empty_like(mx.array([1, 2])).shape",
     [](Arguments& a) {
       array like = a.array_at(0);
       return give(zeros_like(like, a.dtype(1, like.dtype()), a.stream(2)));
     }},
    {"eye", "(n, m=None, k=0, dtype=None, " STREAM, "n rows, m columns, ones on the k-th diagonal.",
     "mx.eye(3)\nmx.eye(2, 3, 1, mx.int32)",
     [](Arguments& a) {
       int m = a.is_none(1) ? a.integer(0) : a.integer(1);
       return give(eye(a.integer(0), m, a.integer(2), a.dtype(3, float32), a.stream(4)));
     }},
    {"identity", "(n, dtype=None, " STREAM, "A square matrix with ones on its diagonal.",
     "mx.identity(2)",
     [](Arguments& a) { return give(identity(a.integer(0), a.dtype(1, float32), a.stream(2))); }},
    {"tri", "(n, m=None, k=0, dtype=None, " STREAM, "Ones on and below the k-th diagonal.",
     "mx.tri(3)\nmx.tri(2, 3, 1)",
     [](Arguments& a) {
       int m = a.is_none(1) ? a.integer(0) : a.integer(1);
       return give(tri(a.integer(0), m, a.integer(2), a.dtype(3, float32), a.stream(4)));
     }},
    {"tril", "(x, k=0, " STREAM, "Zeros above the k-th diagonal.", "mx.tril(mx.ones((3, 3)), -1)",
     [](Arguments& a) { return give(tril(a.array_at(0), a.integer(1), a.stream(2))); }},
    {"triu", "(x, k=0, " STREAM, "Zeros below the k-th diagonal.", "mx.triu(mx.ones((3, 3)), 1)",
     [](Arguments& a) { return give(triu(a.array_at(0), a.integer(1), a.stream(2))); }},
    {"meshgrid", "(*arrays, sparse=False, indexing='xy', stream=None)",
     "The coordinates of a grid.",
     "mx.meshgrid(mx.arange(2), mx.arange(3))\n"
     "mx.meshgrid(mx.arange(2), mx.arange(3), sparse=True, indexing=\"ij\")",
     [](Arguments& a) {
       return give_tuple(meshgrid(a.rest_arrays(), a.truth(0), a.text(1), a.stream(2)));
     }},
    {"hanning", "(M, " STREAM, "The Hann window of M samples.", "mx.hanning(5)", window<&hanning>},
    {"hamming", "(M, " STREAM, "The Hamming window of M samples.", "mx.hamming(5)",
     window<&hamming>},
    {"bartlett", "(M, " STREAM, "The Bartlett window of M samples.", "mx.bartlett(5)",
     window<&bartlett>},
    {"blackman", "(M, " STREAM, "The Blackman window of M samples.", "mx.blackman(5)",
     window<&blackman>},

    {"astype", "(a, /, dtype, " STREAM, "Converted to another dtype.",
     "mx.astype(mx.array([1.7, 2.0]), mx.int32)",
     [](Arguments& a) { return give(astype(a.array_at(0), a.dtype(1), a.stream(2))); }},
    {"view", "(a, dtype, " STREAM, "The same bytes as another dtype.",
     "mx.view(mx.array([1.0, 2.0]), mx.int32)",
     [](Arguments& a) { return give(view(a.array_at(0), a.dtype(1), a.stream(2))); }},
    {"contiguous", "(a, /, allow_col_major=False, " STREAM,
     "Row-major in memory; copied only if it must be.", "mx.contiguous(mx.ones((2, 3)).T)",
     [](Arguments& a) { return give(contiguous(a.array_at(0), a.truth(1), a.stream(2))); }},
    {"as_strided", "(a, /, shape=None, strides=None, offset=0, " STREAM,
     "A view into the elements of a, with any strides that stay inside.",
     "mx.as_strided(mx.arange(6), (3, 2), (1, 2), 0)",
     [](Arguments& a) {
       array x = a.array_at(0);
       Shape shape = a.is_none(1) ? x.shape() : a.shape(1);
       Strides strides;
       if (a.is_none(2)) {
         strides = Strides(shape.size(), 1);
         for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
       } else {
         for (int stride : a.integers(2)) strides.push_back(stride);
       }
       return give(as_strided(x, shape, strides, a.size(3), a.stream(4)));
     }},
    {"depends", "(inputs, dependencies)",
     "The inputs, which are available only when the dependencies are.",
     "mx.depends(mx.array(1), mx.array(2))\nmx.depends([mx.array(1)], [mx.array(2)])",
     [](Arguments& a) {
       bool one = is_array(a.object(0));
       std::vector<array> inputs = one ? std::vector<array>{a.array_at(0)} : a.arrays(0);
       std::vector<array> others =
           is_array(a.object(1)) ? std::vector<array>{a.array_at(1)} : a.arrays(1);
       std::vector<array> results = depends(inputs, others);
       return one ? give(std::move(results[0])) : give_list(std::move(results));
     }},

    {"reshape", "(a, /, shape, " STREAM, "The same elements in another shape; one -1 is inferred.",
     "mx.reshape(mx.arange(6), (2, -1))",
     [](Arguments& a) { return give(reshape(a.array_at(0), a.shape(1), a.stream(2))); }},
    {"flatten", "(a, /, start_axis=0, end_axis=-1, " STREAM, "Neighbouring axes as one.",
     "mx.flatten(mx.ones((2, 3, 4)), 1).shape",
     [](Arguments& a) {
       return give(flatten(a.array_at(0), a.integer(1), a.integer(2), a.stream(3)));
     }},
    {"unflatten", "(a, /, axis, shape, " STREAM, "One axis as several.",
     "mx.unflatten(mx.ones((2, 6)), 1, (3, -1)).shape",
     [](Arguments& a) {
       return give(unflatten(a.array_at(0), a.integer(1), a.shape(2), a.stream(3)));
     }},
    {"squeeze", "(a, /, axis=None, " STREAM, "Without axes of length one.",
     "mx.squeeze(mx.ones((1, 2, 1))).shape\nmx.squeeze(mx.ones((1, 2, 1)), 0).shape",
     [](Arguments& a) {
       auto axes = a.optional_integers(1);
       return give(axes ? squeeze(a.array_at(0), *axes, a.stream(2))
                        : squeeze(a.array_at(0), a.stream(2)));
     }},
    {"expand_dims", "(a, /, axis, " STREAM, "With axes of length one at the places given.",
     "mx.expand_dims(mx.ones(2), (0, 2)).shape",
     [](Arguments& a) { return give(expand_dims(a.array_at(0), a.integers(1), a.stream(2))); }},
    {"transpose", "(a, /, axes=None, " STREAM, "Axes in another order; by default reversed.",
     "mx.transpose(mx.ones((2, 3, 4)), (1, 2, 0)).shape\nmx.transpose(mx.ones((2, 3))).shape",
     [](Arguments& a) {
       auto axes = a.optional_integers(1);
       return give(axes ? transpose(a.array_at(0), *axes, a.stream(2))
                        : transpose(a.array_at(0), a.stream(2)));
     }},
    {"permute_dims", "(a, /, axes=None, " STREAM, "Axes in another order; by default reversed.",
     "mx.permute_dims(mx.ones((2, 3, 4)), (1, 2, 0)).shape",
     [](Arguments& a) {
       auto axes = a.optional_integers(1);
       return give(axes ? transpose(a.array_at(0), *axes, a.stream(2))
                        : transpose(a.array_at(0), a.stream(2)));
     }},
    {"matrix_transpose", "(a, /, " STREAM, "The last two axes exchanged.",
     "mx.matrix_transpose(mx.ones((2, 3, 4))).shape",
     [](Arguments& a) {
       array matrix = a.array_at(0);
       if (matrix.ndim() < 2) {
         raise(PyExc_ValueError, "[matrix_transpose] expected two dimensions or more, got " +
                                     std::to_string(matrix.ndim()));
       }
       return give(swapaxes(matrix, -2, -1, a.stream(1)));
     }},
    {"swapaxes", "(a, /, axis1, axis2, " STREAM, "Two axes exchanged.",
     "mx.swapaxes(mx.ones((2, 3, 4)), 0, 2).shape",
     [](Arguments& a) {
       return give(swapaxes(a.array_at(0), a.integer(1), a.integer(2), a.stream(3)));
     }},
    {"moveaxis", "(a, /, source, destination, " STREAM, "One axis at another place.",
     "mx.moveaxis(mx.ones((2, 3, 4)), 0, -1).shape",
     [](Arguments& a) {
       return give(moveaxis(a.array_at(0), a.integer(1), a.integer(2), a.stream(3)));
     }},
    {"broadcast_to", "(a, /, shape, " STREAM, "Repeated, without a copy, to fill a shape.",
     "mx.broadcast_to(mx.array([1, 2]), (2, 2))",
     [](Arguments& a) { return give(broadcast_to(a.array_at(0), a.shape(1), a.stream(2))); }},
    {"broadcast_arrays", "(*arrays, stream=None)", "All arrays in the shape they broadcast to.",
     "mx.broadcast_arrays(mx.ones(2), mx.ones((3, 1)))",
     [](Arguments& a) { return give_list(broadcast_arrays(a.rest_arrays(), a.stream(0))); }},
    {"broadcast_shapes", "(*shapes)", "The shape that arrays of these shapes broadcast to.",
     "mx.broadcast_shapes((1, 2), (3, 1))",
     [](Arguments& a) {
       if (a.rest().empty()) raise(PyExc_ValueError, "[broadcast_shapes] expected a shape");
       Shape all;
       for (PyObject* item : a.rest()) {
         if (!PySequence_Check(item) || PyUnicode_Check(item)) {
           raise(PyExc_ValueError,
                 "[broadcast_shapes] expected sequences of ints, got " + type_name(item));
         }
         Shape shape;
         Object items = as_sequence(item);
         for (Py_ssize_t i = 0; i < PySequence_Size(items.get()); ++i) {
           shape.push_back(to_int(Object::steal(PySequence_GetItem(items.get(), i)).get()));
         }
         all = broadcast_shapes(all, shape);
       }
       return give_shape(all);
     }},
    {"atleast_1d", "(*arys, stream=None)", "With one axis or more.", "mx.atleast_1d(mx.array(1))",
     at_least<&atleast_1d>},
    {"atleast_2d", "(*arys, stream=None)", "With two axes or more.",
     "mx.atleast_2d(mx.array(1), mx.ones(2))", at_least<&atleast_2d>},
    {"atleast_3d", "(*arys, stream=None)", "With three axes or more.",
     "mx.atleast_3d(mx.ones((2, 2))).shape", at_least<&atleast_3d>},
    {"flip", "(a, /, axis=None, " STREAM, "Backwards along some axes, or all.",
     "mx.flip(mx.arange(4))\nmx.flip(mx.array([[1, 2], [3, 4]]), 1)",
     [](Arguments& a) {
       auto axes = a.optional_integers(1);
       return give(axes ? flip(a.array_at(0), *axes, a.stream(2))
                        : flip(a.array_at(0), a.stream(2)));
     }},
    {"roll", "(a, /, shift, axis=None, " STREAM, "Elements moved along, the last to the front.",
     "mx.roll(mx.arange(4), 1)\nmx.roll(mx.array([[1, 2], [3, 4]]), (1, 1), (0, 1))", make_roll},
    {"pad", "(a, pad_width, mode='constant', constant_values=0, " STREAM,
     "Elements added before and behind each axis.",
     "mx.pad(mx.ones((1, 2)), ((0, 0), (1, 2)))\nmx.pad(mx.arange(3), 2, mode=\"edge\")\n"
     "mx.pad(mx.ones(2), (1, 2), constant_values=5)",
     make_pad},
    {"tile", "(a, reps, /, " STREAM, "The whole array, several times along each axis.",
     "mx.tile(mx.array([1, 2]), (2, 2))",
     [](Arguments& a) { return give(tile(a.array_at(0), a.integers(1), a.stream(2))); }},
    {"repeat", "(array, repeats, axis=None, " STREAM, "Each element several times.",
     "mx.repeat(mx.array([[1, 2], [3, 4]]), 2, 1)\nmx.repeat(mx.array([1, 2]), 2)",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 2);
       return give(axis ? repeat(a.array_at(0), a.integer(1), *axis, a.stream(3))
                        : repeat(a.array_at(0), a.integer(1), a.stream(3)));
     }},
    {"diagonal", "(a, offset=0, axis1=0, axis2=1, stream=None)", "The diagonal of two axes.",
     "mx.diagonal(mx.array([[1, 2], [3, 4]]), 1)",
     [](Arguments& a) {
       return give(diagonal(a.array_at(0), a.integer(1), a.integer(2), a.integer(3), a.stream(4)));
     }},
    {"diag", "(a, /, k=0, " STREAM, "The diagonal of a matrix, or the matrix of a diagonal.",
     "mx.diag(mx.array([1, 2]))\nmx.diag(mx.array([[1, 2], [3, 4]]))",
     [](Arguments& a) { return give(diag(a.array_at(0), a.integer(1), a.stream(2))); }},
    {"trace", "(a, /, offset=0, axis1=0, axis2=1, dtype=None, " STREAM, "The sum of a diagonal.",
     "mx.trace(mx.array([[1, 2], [3, 4]]))",
     [](Arguments& a) {
       auto dtype = a.optional_dtype(4);
       array x = a.array_at(0);
       return give(dtype ? trace(x, a.integer(1), a.integer(2), a.integer(3), *dtype, a.stream(5))
                         : trace(x, a.integer(1), a.integer(2), a.integer(3), a.stream(5)));
     }},

    {"split", "(a, /, indices_or_sections, axis=0, " STREAM,
     "Cut into equal parts, or at the places given.",
     "mx.split(mx.arange(6), 3)\nmx.split(mx.arange(6), [1, 3])", make_split},
    {"unstack", "(x, /, *, axis=0, stream=None)", "The slices along an axis.",
     "mx.unstack(mx.array([[1, 2], [3, 4]]), axis=1)",
     [](Arguments& a) { return give_tuple(unstack(a.array_at(0), a.integer(1), a.stream(2))); }},
    {"concatenate", "(arrays, axis=0, " STREAM, "Arrays joined along an axis; None: all flattened.",
     "mx.concatenate([mx.ones((1, 2)), mx.zeros((2, 2))])\n"
     "mx.concatenate([mx.ones((1, 2)), mx.zeros(2)], axis=None)",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 1);
       return give(axis ? concatenate(a.arrays(0), *axis, a.stream(2))
                        : concatenate(a.arrays(0), a.stream(2)));
     }},
    {"concat", "(arrays, axis=0, " STREAM, "Arrays joined along an axis; None: all flattened.",
     "mx.concat([mx.ones((1, 2)), mx.zeros((2, 2))])",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 1);
       return give(axis ? concatenate(a.arrays(0), *axis, a.stream(2))
                        : concatenate(a.arrays(0), a.stream(2)));
     }},
    {"stack", "(arrays, axis=0, " STREAM, "Arrays of one shape along a new axis.",
     "mx.stack([mx.ones(2), mx.zeros(2)], axis=1)",
     [](Arguments& a) {
       return give(stack(a.arrays(0), a.is_none(1) ? 0 : a.integer(1), a.stream(2)));
     }},
    {"take", "(a, /, indices, axis=None, " STREAM, "The slices that the indices name.",
     "mx.take(mx.array([[1, 2], [3, 4]]), mx.array([1, 0]), axis=1)\n"
     "mx.take(mx.arange(6), mx.array([5, 0]))\nmx.take(mx.array([[1, 2], [3, 4]]), 1, 0)",
     make_take},
    {"take_along_axis", "(a, /, indices, axis=-1, " STREAM,
     "For each place, the element that the index there names.",
     "mx.take_along_axis(mx.array([[1, 2], [3, 4]]), mx.array([[1], [0]]), axis=1)",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 2);
       array x = a.array_at(0), places = a.array_at(1);
       return give(axis ? take_along_axis(x, places, *axis, a.stream(3))
                        : take_along_axis(flatten(x), places, 0, a.stream(3)));
     }},
    {"put_along_axis", "(a, /, indices, values, axis=None, " STREAM,
     "Values put where take_along_axis would take them.",
     "mx.put_along_axis(mx.zeros((2, 2)), mx.array([[1], [0]]), mx.ones((2, 1)), axis=1)",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 3);
       array x = a.array_at(0);
       if (axis) {
         return give(put_along_axis(x, a.array_at(1), a.operands(0, 2).second, *axis, a.stream(4)));
       }
       return give(reshape(
           put_along_axis(flatten(x), a.array_at(1), a.operands(0, 2).second, 0, a.stream(4)),
           x.shape()));
     }},
    {"slice", "(a, start_indices, axes, slice_size, " STREAM,
     "A slice whose start is an array, read when it is evaluated.",
     "mx.slice(mx.arange(6), mx.array([2]), (0,), (3,))",
     [](Arguments& a) {
       return give(slice(a.array_at(0), a.array_at(1), a.integers(2), a.shape(3), a.stream(4)));
     }},
    {"slice_update", "(a, update, start_indices, axes, " STREAM,
     "With a slice replaced, whose start is an array.",
     "mx.slice_update(mx.arange(6), mx.array([8, 9]), mx.array([2]), (0,))",
     [](Arguments& a) {
       return give(
           slice_update(a.array_at(0), a.array_at(1), a.array_at(2), a.integers(3), a.stream(4)));
     }},
    {"sort", "(a, /, axis=-1, " STREAM, "Ascending, NaN last; None: of the flattened array.",
     "mx.sort(mx.array([[3, 1], [0, 2]]))\nmx.sort(mx.array([[3, 1], [0, 2]]), axis=None)",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 1);
       return give(axis ? sort(a.array_at(0), *axis, a.stream(2))
                        : sort(a.array_at(0), a.stream(2)));
     }},
    {"argsort", "(a, /, axis=-1, " STREAM, "The indices that sort.",
     "mx.argsort(mx.array([3, 1, 2]))",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 1);
       return give(axis ? argsort(a.array_at(0), *axis, a.stream(2))
                        : argsort(a.array_at(0), a.stream(2)));
     }},
    {"partition", "(a, /, kth, axis=-1, " STREAM,
     "Nothing before place kth is larger than what stands there, nothing behind smaller.",
     "mx.partition(mx.array([3, 1, 2, 0]), 1)[1]",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 2);
       return give(axis ? partition(a.array_at(0), a.integer(1), *axis, a.stream(3))
                        : partition(a.array_at(0), a.integer(1), a.stream(3)));
     }},
    {"argpartition", "(a, /, kth, axis=-1, " STREAM, "The indices that partition.",
     "mx.argpartition(mx.array([3, 1, 2, 0]), 1)[1]",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 2);
       return give(axis ? argpartition(a.array_at(0), a.integer(1), *axis, a.stream(3))
                        : argpartition(a.array_at(0), a.integer(1), a.stream(3)));
     }},
    {"topk", "(a, /, k, axis=-1, " STREAM, "The k largest elements, in no promised order.",
     "mx.sort(mx.topk(mx.array([3, 1, 2, 0]), 2))",
     [](Arguments& a) {
       auto axis = axis_or_flat(a, 2);
       return give(axis ? topk(a.array_at(0), a.integer(1), *axis, a.stream(3))
                        : topk(a.array_at(0), a.integer(1), a.stream(3)));
     }},
    {"searchsorted", "(sorted_sequence, values, /, side='left', " STREAM,
     "Where each value would be put into a sorted sequence.",
     "mx.searchsorted(mx.array([1, 3, 5]), mx.array([0, 3, 9]))\n"
     "mx.searchsorted(mx.array([1, 3, 5]), mx.array([0, 3, 9]), side=\"right\")",
     [](Arguments& a) {
       return give(searchsorted(a.array_at(0), a.array_at(1), a.text(2), a.stream(3)));
     }},
    {"unique",
     "(a, /, size, return_index=False, return_inverse=False, return_counts=False, "
     "fill_value=None, " STREAM,
     "The distinct elements in order, `size` of them; with their first indices, the place of each "
     "element among them, and how often each appears, where asked for.",
     "mx.unique(mx.array([3, 1, 2, 1]), 3)\nmx.unique(mx.array([3, 1, 2, 1]), 4, True, True, "
     "True)\n"
     "mx.unique(mx.array([3, 1, 2, 1]), 5, fill_value=-1)",
     make_unique},
    {"result_type", "(*arrays_and_dtypes)", "The dtype that these promote to.",
     "mx.result_type(mx.int32, mx.float16)",
     [](Arguments& a) {
       if (a.rest().empty()) {
         raise(PyExc_ValueError, "[result_type] expected an array or a dtype");
       }
       Dtype result = bool_;
       for (PyObject* item : a.rest()) {
         result =
             promote_types(result, is_dtype(item) ? dtype_from(item) : operand_from(item).dtype());
       }
       return new_reference(result);
     }},
};
#undef STREAM

}  // namespace

void add_shape_ops(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
