// Trees: nested lists, tuples, dicts and namespaces with arrays as leaves. Everything else is
// carried along. A tree that is made of another one has nodes of the same classes.
#pragma once

#include <holdfast/array.h>

#include "python.h"

namespace holdfast::python {

// Objects of this type are lists of one array, by their own [0]: the state of random numbers.
void set_random_state_type(PyObject* type);

// Which containers are nodes: all, or only lists, tuples and dicts themselves. Then others are
// carried along, as they are.
enum class Nodes { all, plain };

// What makes a container of the class of another one: it is called with that one, and a plain list,
// tuple or dict of the items.
void set_remake(PyObject* function);

// Is this node a namespace, with items that are its attributes?
bool is_namespace_node(PyObject* tree);

// Adds the arrays of a tree, in order.
void collect_arrays(PyObject* tree, std::vector<array>& arrays);
// The tree with a mark in place of each array, which are added to the list.
Object take_arrays(PyObject* tree, std::vector<array>& arrays, Nodes nodes = Nodes::all);
// The tree with the arrays back in the places of the marks.
Object put_arrays(PyObject* structure, const std::vector<array>& arrays, size_t& next,
                  Nodes nodes = Nodes::all);
// Puts arrays into the containers of a tree themselves, in the order in which collect_arrays finds
// them.
void replace_arrays(PyObject* tree, const std::vector<array>& arrays, size_t& next);

// After a function has been called with `used`, which put_arrays made of `structure` and `given`:
// what the function put into its containers, added to them or took from them is done to those of
// `mine`, the tree that `structure` was taken from. The function is traced with containers of its
// own, so that threads can differentiate by one tree at the same time.
void give_back(PyObject* mine, PyObject* used, PyObject* structure, const std::vector<array>& given,
               Nodes nodes = Nodes::all);

}  // namespace holdfast::python
