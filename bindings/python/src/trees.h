// Trees: nested lists, tuples and dicts with arrays as leaves. Everything else is carried along.
#pragma once

#include <holdfast/array.h>

#include "python.h"

namespace holdfast::python {

// Objects of this type are lists of one array, by their own [0]: the state of random numbers.
void set_random_state_type(PyObject* type);

// Adds the arrays of a tree, in order.
void collect_arrays(PyObject* tree, std::vector<array>& arrays);
// The tree with a mark in place of each array, which are added to the list.
Object take_arrays(PyObject* tree, std::vector<array>& arrays);
// The tree with the arrays back in the places of the marks.
Object put_arrays(PyObject* structure, const std::vector<array>& arrays, size_t& next);
// Puts arrays into the containers of a tree themselves, in the order in which collect_arrays finds
// them.
void replace_arrays(PyObject* tree, const std::vector<array>& arrays, size_t& next);

}  // namespace holdfast::python
