// a[key] and a[key] = value, with NumPy's rules.
//
// A key is a tuple of items (or one of them). Each consumes an axis: an int, a slice, an array of
// integers; a bool array consumes as many as it has, and stands for the places where it holds; None
// makes a new axis; an ellipsis stands for as many full slices as are missing. Where there are
// arrays, ints count as arrays too, all broadcast, and their common shape takes the place of their
// axes, or stands first if something is between them.
#include <algorithm>
#include <limits>

#include <holdfast/ops.h>
#include <holdfast/tracing.h>
#include <holdfast/utils.h>

#include "arguments.h"
#include "array_type.h"

namespace holdfast::python {

namespace {

constexpr int to_the_end = std::numeric_limits<int>::max();

struct Item {
  enum Kind { integer, range, indices, new_axis } kind;
  int axis = 0;                                // which one it consumes
  int start = 0, stop = to_the_end, step = 1;  // as they were given, cut to the range of an int
  int first = 0;                               // integer: the index, not negative; range: start
  int count = 0;                               // range: how many
  bool full = false;                           // range: the whole axis, forwards
  std::optional<array> values = std::nullopt;  // indices
};

struct Key {
  std::vector<Item> items;
  bool has_arrays = false;
};

// In a trace for any shape the sizes of `a` are those of an example.
bool has_open_shape(const array& a) { return detail::in_dynamic_tracing() && a.is_tracer(); }

void refuse_open_shape(const array& a, const char* what) {
  if (!has_open_shape(a)) return;
  raise(PyExc_ValueError, std::string(what) +
                              " computes with the sizes of the array, which a trace for any shape "
                              "does not know; compile or export the function without shapeless");
}

int checked_index(PyObject* number, int size, int axis) {
  int index = to_int(number);
  int place = index < 0 ? index + size : index;
  if (place < 0 || place >= size) {
    raise(PyExc_IndexError, "index " + std::to_string(index) + " is out of range for axis " +
                                std::to_string(axis) + " with " + std::to_string(size) +
                                " elements");
  }
  return place;
}

Item integer_item(PyObject* number, int size, int axis) {
  Item item{Item::integer, axis};
  item.first = checked_index(number, size, axis);
  item.start = to_int(number);
  item.stop = item.start == -1 ? to_the_end : item.start + 1;
  return item;
}

Item range_item(PyObject* slice, int size, int axis, bool is_open) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) != 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    raise(PyExc_ValueError, "slice indices must be ints or None");
  }
  Item item{Item::range, axis};
  // A step beyond the end reaches one element, like the largest step that fits.
  constexpr Py_ssize_t largest = to_the_end, smallest = std::numeric_limits<int>::min();
  item.step = static_cast<int>(std::clamp(step, -largest, largest));
  item.start = static_cast<int>(std::clamp(start, smallest, largest));
  item.stop = static_cast<int>(std::clamp(stop, smallest, largest));
  item.count = static_cast<int>(PySlice_AdjustIndices(size, &start, &stop, step));
  item.first = static_cast<int>(start);
  item.full = item.first == 0 && item.step == 1 &&
              (is_open ? item.stop == to_the_end && item.start == 0 : item.count == size);
  return item;
}

// The places where a mask holds, one array for each of its axes. Reads the mask.
std::vector<array> places_of(array mask) {
  materialise(mask);
  array dense = contiguous(mask);
  materialise(dense);
  const bool* holds = std::as_const(dense).data<bool>();
  std::vector<std::vector<int32_t>> places(mask.ndim());
  for (size_t i = 0; i < mask.size(); ++i) {
    if (!holds[i]) continue;
    size_t rest = i;
    for (size_t axis = mask.ndim(); axis-- > 0;) {
      auto size = static_cast<size_t>(mask.shape()[axis]);
      places[axis].push_back(static_cast<int32_t>(rest % size));
      rest /= size;
    }
  }
  std::vector<array> result;
  for (const auto& list : places) {
    result.push_back(array(list.data(), Shape{static_cast<ShapeElem>(list.size())}));
  }
  return result;
}

// An array for anything that indexes like one: arrays, lists, NumPy's.
std::optional<array> index_array(PyObject* item) {
  if (is_array(item)) return value_of(item);
  if (PyList_Check(item)) return array_from(item, std::nullopt);
  if (!PyFloat_Check(item) && !PyUnicode_Check(item) && !PyBytes_Check(item) &&
      PyObject_CheckBuffer(item)) {
    return array_from_buffer(item, std::nullopt, false);
  }
  return std::nullopt;
}

void check_index_dtype(const array& values) {
  if (!issubdtype(values.dtype(), integer)) {
    raise(PyExc_ValueError, std::string("arrays of indices must be integers or bool, got ") +
                                dtype_name(values.dtype()));
  }
}

Key parse_key(const array& a, PyObject* key) {
  bool is_tuple = PyTuple_Check(key);
  Py_ssize_t count = is_tuple ? PyTuple_Size(key) : 1;
  auto item_at = [&](Py_ssize_t i) { return is_tuple ? PyTuple_GetItem(key, i) : key; };

  int ndim = static_cast<int>(a.ndim());
  // How many axes the items consume; the ellipsis, or the end, takes the rest.
  int consumed = 0;
  bool has_ellipsis = false;
  std::vector<std::optional<array>> arrays(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = item_at(i);
    if (item == Py_None) continue;
    if (item == Py_Ellipsis) {
      if (has_ellipsis) raise(PyExc_ValueError, "a key can have one ellipsis only");
      has_ellipsis = true;
      continue;
    }
    int axes = 1;
    if (!PyLong_Check(item) && !PySlice_Check(item)) {
      auto& values = arrays[static_cast<size_t>(i)];
      values = index_array(item);
      if (values && values->dtype() == bool_) axes = static_cast<int>(values->ndim());
    }
    consumed += axes;
  }
  if (consumed > ndim) {
    raise(PyExc_ValueError, "too many indices: " + std::to_string(consumed) + " for an array of " +
                                std::to_string(ndim) + " dimensions");
  }

  Key result;
  int axis = 0;
  auto full_ranges = [&](int n) {
    for (int i = 0; i < n; ++i, ++axis) {
      Item item{Item::range, axis};
      item.count = a.shape()[static_cast<size_t>(axis)];
      item.full = true;
      result.items.push_back(std::move(item));
    }
  };
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = item_at(i);
    if (item == Py_None) {
      result.items.push_back(Item{Item::new_axis});
    } else if (item == Py_Ellipsis) {
      full_ranges(ndim - consumed);
    } else if (PySlice_Check(item)) {
      int size = a.shape()[static_cast<size_t>(axis)];
      result.items.push_back(range_item(item, size, axis++, has_open_shape(a)));
    } else if (std::optional<array>& values = arrays[static_cast<size_t>(i)]) {
      result.has_arrays = true;
      auto add = [&](array indices) {
        Item place{Item::indices, axis++};
        place.values = std::move(indices);
        result.items.push_back(std::move(place));
      };
      if (values->dtype() == bool_) {
        for (size_t k = 0; k < values->ndim(); ++k) {
          if (values->shape()[k] != a.shape()[static_cast<size_t>(axis) + k]) {
            raise(PyExc_ValueError, "a bool index must have the shape of the axes that it indexes");
          }
        }
        for (array& places : places_of(*values)) add(std::move(places));
      } else {
        if (values->size() == 0 && PyList_Check(item)) values = astype(*values, int32);
        check_index_dtype(*values);
        add(*values);
      }
    } else if (PyIndex_Check(item) && !PyBool_Check(item)) {
      result.items.push_back(integer_item(item, a.shape()[static_cast<size_t>(axis)], axis));
      ++axis;
    } else {
      raise(PyExc_ValueError, "cannot index an array with a " + type_name(item));
    }
  }
  full_ranges(ndim - axis);
  return result;
}

struct Ranges {
  Shape start, stop, step;
  bool full = true;
};

// The ranges of all axes, as they were given; ints are ranges of one, arrays take the whole axis.
Ranges ranges_of(const Key& key) {
  Ranges ranges;
  for (const Item& item : key.items) {
    if (item.kind == Item::new_axis) continue;
    if (item.kind == Item::integer || (item.kind == Item::range && !item.full)) ranges.full = false;
    bool is_whole = item.kind == Item::indices;
    ranges.start.push_back(is_whole ? 0 : item.start);
    ranges.stop.push_back(is_whole ? to_the_end : item.stop);
    ranges.step.push_back(is_whole ? 1 : item.step);
  }
  return ranges;
}

// The dimensions that a key without arrays gives.
Shape basic_shape(const Key& key) {
  Shape shape;
  for (const Item& item : key.items) {
    if (item.kind == Item::new_axis) shape.push_back(1);
    if (item.kind == Item::range) shape.push_back(item.count);
  }
  return shape;
}

array basic_index(const array& a, const Key& key) {
  Ranges ranges = ranges_of(key);
  array result = ranges.full ? a : slice(a, ranges.start, ranges.stop, ranges.step);
  std::vector<int> dropped, made;
  int axis = 0, place = 0;
  for (const Item& item : key.items) {
    if (item.kind == Item::new_axis) {
      made.push_back(place++);
    } else {
      if (item.kind == Item::integer)
        dropped.push_back(axis);
      else
        ++place;
      ++axis;
    }
  }
  if (!dropped.empty()) result = squeeze(result, dropped);
  if (!made.empty()) result = expand_dims(result, made);
  return result;
}

// How the axes of a result are made of those of arrays, ranges and new axes.
struct Layout {
  Shape block;               // what all arrays broadcast to
  size_t ranges_before = 0;  // ranges before the block; it stands first if arrays are apart
  std::vector<int> made;     // new axes, as places in the result
};

Layout layout_of(const Key& key) {
  Layout layout;
  bool seen = false, ended = false, apart = false;
  for (const Item& item : key.items) {
    bool advanced = item.kind == Item::indices || item.kind == Item::integer;
    if (advanced) {
      if (item.kind == Item::indices) {
        layout.block = broadcast_shapes(layout.block, item.values->shape());
      }
      if (ended) apart = true;
      seen = true;
    } else if (seen) {
      ended = true;
    }
  }
  int block = static_cast<int>(layout.block.size());
  int place = apart ? block : 0;
  seen = apart;
  for (const Item& item : key.items) {
    if (item.kind == Item::new_axis) {
      layout.made.push_back(place++);
    } else if (item.kind == Item::range) {
      if (!seen) ++layout.ranges_before;
      ++place;
    } else if (!seen) {
      seen = true;
      place += block;
    }
  }
  if (apart) layout.ranges_before = 0;
  return layout;
}

array array_index(const array& a, const Key& key) {
  Layout layout = layout_of(key);
  Key ranges_only = key;
  for (Item& item : ranges_only.items) {
    if (item.kind == Item::integer) item.kind = Item::indices;  // stays whole
  }
  Ranges ranges = ranges_of(ranges_only);
  array source = ranges.full ? a : slice(a, ranges.start, ranges.stop, ranges.step);

  std::vector<array> indices;
  std::vector<int> axes;
  for (const Item& item : key.items) {
    if (item.kind == Item::indices) indices.push_back(*item.values);
    if (item.kind == Item::integer) indices.push_back(array(item.start));
    if (item.kind == Item::indices || item.kind == Item::integer) axes.push_back(item.axis);
  }
  array result = source;
  if (indices.size() == 1) {
    result = take(source, indices[0], axes[0]);
  } else {
    if (axes.size() < source.ndim()) refuse_open_shape(a, "indexing some axes with several arrays");
    Shape window = source.shape();
    for (int axis : axes) window[static_cast<size_t>(axis)] = 1;
    result = gather(source, indices, axes, window);
    int block = static_cast<int>(layout.block.size());
    for (int& axis : axes) axis += block;
    result = squeeze(result, axes);
    if (layout.ranges_before > 0 && block > 0) {
      std::vector<int> order;
      int before = static_cast<int>(layout.ranges_before);
      for (int i = 0; i < before; ++i) order.push_back(block + i);
      for (int i = 0; i < block; ++i) order.push_back(i);
      for (int i = block + before; i < static_cast<int>(result.ndim()); ++i) order.push_back(i);
      result = transpose(result, order);
    }
  }
  return layout.made.empty() ? result : expand_dims(result, layout.made);
}

// The value with the dimensions of the target; leading ones may be too many.
array without_leading_ones(array value, size_t ndim) {
  while (value.ndim() > ndim && value.shape()[0] == 1) value = squeeze(value, 0);
  return value;
}
array fitted(array value, const Shape& target) {
  return broadcast_to(without_leading_ones(std::move(value), target.size()), target);
}

// The value with an axis for each int and without the new ones: as an update of the ranges, to
// which it broadcasts.
array with_axes_of_ranges(const array& value, const Key& key) {
  std::vector<int> dropped, made;
  int left = static_cast<int>(value.ndim());  // dimensions of the value that have no item yet
  int behind = 0;                             // axes behind the item
  for (size_t i = key.items.size(); i-- > 0 && left > 0;) {
    const Item& item = key.items[i];
    if (item.kind == Item::new_axis) dropped.push_back(left - 1);
    if (item.kind == Item::integer) made.push_back(-1 - behind);
    if (item.kind != Item::integer) --left;
    if (item.kind != Item::new_axis) ++behind;
  }
  array result = dropped.empty() ? value : squeeze(value, dropped);
  return made.empty() ? result : expand_dims(result, made);
}

array basic_update(const array& a, const Key& key, const array& value, Update how) {
  Ranges ranges = ranges_of(key);
  Shape target = basic_shape(key);
  array wanted = without_leading_ones(value, target.size());
  if (broadcast_shapes(wanted.shape(), target) != target) broadcast_to(wanted, target);  // throws
  if (!has_open_shape(a) && std::find(target.begin(), target.end(), 0) != target.end()) return a;
  wanted = with_axes_of_ranges(wanted, key);
  using Function = array (*)(const array&, const array&, Shape, Shape, Shape, StreamOrDevice);
  static constexpr Function functions[] = {&slice_update, &slice_update_add, &slice_update_prod,
                                           &slice_update_max, &slice_update_min};
  return functions[static_cast<int>(how)](a, wanted, ranges.start, ranges.stop, ranges.step, {});
}

array array_update(const array& a, const Key& key, const array& value, Update how) {
  Layout layout = layout_of(key);
  int block = static_cast<int>(layout.block.size());
  // Ranges that are not whole become indices too; whole ones are the window of each update.
  int partial = 0;
  for (const Item& item : key.items) {
    if (item.kind == Item::range) refuse_open_shape(a, "changing slices at indices of an array");
    partial += item.kind == Item::range && !item.full;
  }

  Shape result_shape;  // of a[key] without new axes: ranges, the block, ranges
  size_t before = 0;
  auto add_block = [&] {
    for (ShapeElem size : layout.block) result_shape.push_back(size);
  };
  if (layout.ranges_before == 0) add_block();
  std::vector<int> partial_places, whole_places;
  for (const Item& item : key.items) {
    if (item.kind != Item::range) continue;
    (item.full ? whole_places : partial_places).push_back(static_cast<int>(result_shape.size()));
    result_shape.push_back(item.count);
    if (++before == layout.ranges_before) add_block();
  }
  Shape with_new_axes = result_shape;
  for (int place : layout.made) with_new_axes.insert(with_new_axes.begin() + place, 1);
  array wanted = fitted(value, with_new_axes);
  if (!layout.made.empty()) wanted = reshape(wanted, result_shape);
  if (wanted.size() == 0) return a;

  std::vector<int> order;
  for (int i = 0; i < block; ++i) order.push_back(static_cast<int>(layout.ranges_before) + i);
  order.insert(order.end(), partial_places.begin(), partial_places.end());
  order.insert(order.end(), whole_places.begin(), whole_places.end());
  wanted = transpose(wanted, order);

  std::vector<array> indices;
  std::vector<int> axes;
  Shape update_shape(wanted.shape().begin(), wanted.shape().begin() + block + partial);
  int seen = 0;
  for (const Item& item : key.items) {
    if (item.kind == Item::new_axis) continue;
    if (item.kind == Item::range && item.full) {
      update_shape.push_back(item.count);
      continue;
    }
    array places(item.first);
    if (item.kind == Item::indices) {
      places = *item.values;
      // The axes of partial ranges stand behind those of the block.
      if (partial > 0) {
        Shape shape = places.shape();
        for (int i = 0; i < partial; ++i) shape.push_back(1);
        places = reshape(places, shape);
      }
    } else if (item.kind == Item::range) {
      places = arange(item.first, item.first + item.step * item.count, item.step);
      Shape shape{item.count};
      for (int i = ++seen; i < partial; ++i) shape.push_back(1);
      places = reshape(places, shape);
    }
    indices.push_back(places);
    axes.push_back(item.axis);
    update_shape.push_back(1);
  }
  wanted = reshape(wanted, update_shape);
  using Function = array (*)(const array&, const std::vector<array>&, const array&,
                             const std::vector<int>&, StreamOrDevice);
  static constexpr Function functions[] = {&scatter, &scatter_add, &scatter_prod, &scatter_max,
                                           &scatter_min};
  return functions[static_cast<int>(how)](a, indices, wanted, axes, {});
}

// A key that is one bool array needs no places: the update is computed for all elements.
std::optional<array> masked_update(const array& a, PyObject* key, const array& value, Update how) {
  std::optional<array> mask;
  if (is_array(key) && value_of(key).dtype() == bool_) mask = value_of(key);
  if (!mask || mask->ndim() > a.ndim()) return std::nullopt;
  for (size_t i = 0; i < mask->ndim(); ++i) {
    if (mask->shape()[i] != a.shape()[i]) {
      raise(PyExc_ValueError, "a bool index must have the shape of the axes that it indexes");
    }
  }
  if (value.ndim() > a.ndim() - mask->ndim()) {
    if (how != Update::set) return std::nullopt;
    return masked_scatter(a, *mask, value);
  }
  array seen = *mask;
  while (seen.ndim() < a.ndim()) seen = expand_dims(seen, -1);
  array changed = value;
  if (how == Update::add) changed = add(a, value);
  if (how == Update::multiply) changed = multiply(a, value);
  if (how == Update::maximum) changed = maximum(a, value);
  if (how == Update::minimum) changed = minimum(a, value);
  return where(seen, changed, a);
}

}  // namespace

array index(const array& a, PyObject* key) {
  if (PyLong_Check(key) && !PyBool_Check(key) && a.ndim() > 0) {
    checked_index(key, a.shape()[0], 0);
    return take(a, to_int(key), 0);
  }
  Key parsed = parse_key(a, key);
  return parsed.has_arrays ? array_index(a, parsed) : basic_index(a, parsed);
}

array value_for(const array& a, PyObject* value) {
  if (!is_array(value) &&
      (value == Py_None || PyList_Check(value) || PyTuple_Check(value) || !is_operand(value))) {
    raise(PyExc_ValueError, "expected an array or a scalar, got " + type_name(value));
  }
  return array_from(value, a.dtype());
}

array update(const array& a, PyObject* key, const array& value, Update how) {
  if (std::optional<array> result = masked_update(a, key, value, how)) return *result;
  Key parsed = parse_key(a, key);
  return parsed.has_arrays ? array_update(a, parsed, value, how)
                           : basic_update(a, parsed, value, how);
}

}  // namespace holdfast::python
