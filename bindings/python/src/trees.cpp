#include "trees.h"

#include <algorithm>

#include "array_type.h"

namespace holdfast::python {

namespace {

// Stands for an array: no program can have it in a tree.
PyObject* mark() {
  static PyObject* instance = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return instance;
}

PyObject* random_state_type = nullptr;

bool is_random_state(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == random_state_type;
}

PyObject* remake = nullptr;

bool is_instance(PyObject* object, PyObject* type) {
  return type && PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type));
}

// types.SimpleNamespace and argparse.Namespace. The second one matters only where a program has
// imported it.
bool is_namespace(PyObject* object) {
  static PyObject *simple = nullptr, *parsed = nullptr;
  if (!simple) {
    Object module = Object::steal(PyImport_ImportModule("types"));
    simple = attribute(module.get(), "SimpleNamespace").release();
  }
  if (is_instance(object, simple)) return true;
  if (!parsed) {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "argparse");
    PyObject* type = module ? PyObject_GetAttrString(module, "Namespace") : nullptr;
    if (type && PyType_Check(type)) {
      parsed = type;
    } else {
      PyErr_Clear();
      Py_XDECREF(type);
    }
  }
  return is_instance(object, parsed);
}

enum class Form { leaf, list, tuple, dict, names };

Form form_of(PyObject* tree, Nodes nodes = Nodes::all) {
  if (is_array(tree)) return Form::leaf;
  if (nodes == Nodes::plain) {
    if (PyList_CheckExact(tree)) return Form::list;
    if (PyTuple_CheckExact(tree)) return Form::tuple;
    return PyDict_CheckExact(tree) ? Form::dict : Form::leaf;
  }
  if (PyList_Check(tree)) return Form::list;
  if (PyTuple_Check(tree)) return Form::tuple;
  if (PyDict_Check(tree)) return Form::dict;
  return is_namespace(tree) ? Form::names : Form::leaf;
}

// The items of a dict or a namespace. A subclass of dict says in which order they come, since its
// copy may keep them in another one (OrderedDict.move_to_end).
class NamedItems {
 public:
  NamedItems(PyObject* tree, Form form)
      : dict_(form == Form::dict ? Object::borrow(tree)
                                 : Object::steal(PyObject_GenericGetDict(tree, nullptr))) {
    if (!PyDict_CheckExact(dict_.get())) keys_ = Object::steal(PyMapping_Keys(dict_.get()));
  }
  // Values of keys that are there may be set meanwhile.
  bool next(PyObject*& key, PyObject*& value) {
    if (!keys_) return PyDict_Next(dict_.get(), &position_, &key, &value);
    while (position_ < PyList_Size(keys_.get())) {
      key = PyList_GetItem(keys_.get(), position_++);
      value = find(key);
      if (value) return true;
    }
    return false;
  }
  PyObject* find(PyObject* key) const {
    PyObject* value = PyDict_GetItemWithError(dict_.get(), key);
    if (!value && PyErr_Occurred()) throw PythonError();
    return value;
  }
  void set(PyObject* key, PyObject* value) {
    // A new key has to pass by the subclass.
    int status = PyDict_CheckExact(dict_.get()) || find(key)
                     ? PyDict_SetItem(dict_.get(), key, value)
                     : PyObject_SetItem(dict_.get(), key, value);
    if (status != 0) throw PythonError();
  }
  void remove(PyObject* key) {
    if (PyObject_DelItem(dict_.get(), key) != 0) throw PythonError();
  }

 private:
  Object dict_, keys_;
  Py_ssize_t position_ = 0;
};

class Level {
 public:
  Level() {
    if (Py_EnterRecursiveCall(" in a tree of arrays")) throw PythonError();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

// The class of `original` with these items, a plain container of the same form.
Object of_same_class(PyObject* original, Object items) {
  if (Py_TYPE(original) == Py_TYPE(items.get())) return items;
  return Object::steal(PyObject_CallFunctionObjArgs(remake, original, items.get(), nullptr));
}

// The tree with `change` applied to its leaves.
template <typename F>
Object mapped(PyObject* tree, const F& change, Nodes nodes = Nodes::all) {
  Form form = form_of(tree, nodes);
  if (form == Form::leaf) return change(tree);
  Level level;
  Object result;
  if (form == Form::list || form == Form::tuple) {
    bool is_list = form == Form::list;
    Py_ssize_t count = is_list ? PyList_Size(tree) : PyTuple_Size(tree);
    result = Object::steal(is_list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i);
      Object made = mapped(item, change, nodes);
      if (is_list)
        PyList_SetItem(result.get(), i, made.release());
      else
        PyTuple_SetItem(result.get(), i, made.release());
    }
  } else {
    result = Object::steal(PyDict_New());
    NamedItems items(tree, form);
    PyObject *key, *value;
    while (items.next(key, value)) {
      Object item = mapped(value, change, nodes);
      if (PyDict_SetItem(result.get(), key, item.get()) != 0) throw PythonError();
    }
  }
  return of_same_class(tree, std::move(result));
}

// Calls `use` with each leaf, in order.
template <typename F>
void for_each_leaf(PyObject* tree, const F& use, Nodes nodes = Nodes::all) {
  Form form = form_of(tree, nodes);
  if (form == Form::leaf) return use(tree);
  Level level;
  if (form == Form::list) {
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i)
      for_each_leaf(PyList_GetItem(tree, i), use, nodes);
  } else if (form == Form::tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tree); ++i)
      for_each_leaf(PyTuple_GetItem(tree, i), use, nodes);
  } else {
    NamedItems items(tree, form);
    PyObject *key, *value;
    while (items.next(key, value)) for_each_leaf(value, use, nodes);
  }
}

// --- what a function changed in its arguments ---

// Walks three trees at once: the caller's, the one that the function was given and may have
// changed, and the structure that the given one was made of.
class GivingBack {
 public:
  GivingBack(const std::vector<array>& given, Nodes nodes) : given_(given), nodes_(nodes) {}

  // True if `mine` has to be replaced by `used`; what it holds, where both are containers of one
  // form, has been given back.
  bool is_changed(PyObject* mine, PyObject* used, PyObject* part) {
    if (part == mark()) {
      const array& was = given_.at(next_++);
      return !is_array(used) || value_of(used).id() != was.id();
    }
    Form form = form_of(part, nodes_);
    if (form == Form::leaf) return used != part;
    bool is_tuple = form == Form::tuple;
    if (!mine || form_of(mine) != form || form_of(used) != form ||
        (is_tuple && !(have_size(mine, part) && have_size(used, part)))) {
      skip(part);
      return true;
    }
    Level level;
    if (is_tuple) {
      bool any = false;
      for (Py_ssize_t i = 0; i < PyTuple_Size(part); ++i) {
        any |= is_changed(PyTuple_GetItem(mine, i), PyTuple_GetItem(used, i),
                          PyTuple_GetItem(part, i));
      }
      return any;
    }
    if (form == Form::list) {
      of_list(mine, used, part);
    } else {
      of_names(mine, used, part, form);
    }
    if (!PyList_CheckExact(part) && !PyDict_CheckExact(part) && form != Form::names) {
      attributes(mine, used, part);
    }
    return false;
  }

 private:
  void of_list(PyObject* mine, PyObject* used, PyObject* structure) {
    Py_ssize_t common = std::min(PyList_Size(used), PyList_Size(structure));
    for (Py_ssize_t i = 0; i < PyList_Size(structure); ++i) {
      PyObject* part = PyList_GetItem(structure, i);
      if (i >= common || i >= PyList_Size(mine)) {
        skip(part);
        continue;
      }
      PyObject* item = PyList_GetItem(used, i);
      if (is_changed(PyList_GetItem(mine, i), item, part)) PyList_SetItem(mine, i, Py_NewRef(item));
    }
    Py_ssize_t before = PyList_Size(structure), after = PyList_Size(used);
    if (after != before) {
      Object rest = Object::steal(PyList_GetSlice(used, common, after));
      if (PyList_SetSlice(mine, common, PyList_Size(mine), rest.get()) != 0) throw PythonError();
    }
  }

  void of_names(PyObject* mine, PyObject* used, PyObject* structure, Form form) {
    NamedItems parts(structure, form), from(used, form), to(mine, form);
    PyObject *key, *part, *item;
    while (parts.next(key, part)) {
      Object value = Object::borrow(from.find(key)), old = Object::borrow(to.find(key));
      if (!value) {
        skip(part);
        if (old) to.remove(key);
      } else if (is_changed(old.get(), value.get(), part)) {
        to.set(key, value.get());
      }
    }
    NamedItems all(used, form);
    while (all.next(key, item)) {
      if (!parts.find(key)) to.set(key, item);
    }
  }

  // Beside the items of a list or dict, those of its class.
  void attributes(PyObject* mine, PyObject* used, PyObject* structure) {
    auto names_of = [](PyObject* object) {
      PyObject* names = PyObject_GenericGetDict(object, nullptr);
      if (!names) PyErr_Clear();
      return names ? Object::steal(names) : Object();
    };
    Object from = names_of(used), before = names_of(structure), to = names_of(mine);
    if (!from || !before || !to) return;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(from.get(), &position, &key, &value)) {
      if (PyDict_GetItemWithError(before.get(), key) == value) continue;
      if (PyDict_SetItem(to.get(), key, value) != 0) throw PythonError();
    }
  }

  static bool have_size(PyObject* tuple, PyObject* part) {
    return PyTuple_Size(tuple) == PyTuple_Size(part);
  }

  void skip(PyObject* part) {
    for_each_leaf(part, [&](PyObject* leaf) { next_ += leaf == mark(); }, nodes_);
  }

  const std::vector<array>& given_;
  Nodes nodes_;
  size_t next_ = 0;
};

}  // namespace

void set_random_state_type(PyObject* type) { random_state_type = Py_NewRef(type); }

void set_remake(PyObject* function) { remake = Py_NewRef(function); }

void collect_arrays(PyObject* tree, std::vector<array>& arrays) {
  for_each_leaf(tree, [&](PyObject* leaf) {
    if (is_array(leaf)) {
      arrays.push_back(value_of(leaf));
    } else if (is_random_state(leaf)) {
      arrays.push_back(value_of(Object::steal(PySequence_GetItem(leaf, 0)).get()));
    }
  });
}

Object take_arrays(PyObject* tree, std::vector<array>& arrays, Nodes nodes) {
  auto take = [&](PyObject* leaf) {
    if (!is_array(leaf)) return Object::borrow(leaf);
    arrays.push_back(value_of(leaf));
    return Object::borrow(mark());
  };
  return mapped(tree, take, nodes);
}

Object put_arrays(PyObject* structure, const std::vector<array>& arrays, size_t& next,
                  Nodes nodes) {
  auto put = [&](PyObject* leaf) {
    if (leaf != mark()) return Object::borrow(leaf);
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    return Object::steal(new_array(arrays[next++]));
  };
  return mapped(structure, put, nodes);
}

void replace_arrays(PyObject* tree, const std::vector<array>& arrays, size_t& next) {
  auto replace = [&](PyObject* item) -> Object {
    if (!is_array(item)) {
      replace_arrays(item, arrays, next);
      return {};
    }
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    return Object::steal(new_array(arrays[next++]));
  };
  Form form = form_of(tree);
  if (form == Form::list) {
    Level level;
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i) {
      if (Object made = replace(PyList_GetItem(tree, i))) PyList_SetItem(tree, i, made.release());
    }
  } else if (form == Form::tuple) {
    Level level;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tree); ++i) {
      PyObject* item = PyTuple_GetItem(tree, i);
      // A tuple cannot be changed: the array object itself gets the new value.
      if (is_array(item)) {
        Object made = replace(item);
        value_of(item) = value_of(made.get());
      } else {
        replace_arrays(item, arrays, next);
      }
    }
  } else if (form == Form::dict || form == Form::names) {
    Level level;
    NamedItems items(tree, form);
    PyObject *key, *value;
    while (items.next(key, value)) {
      if (Object made = replace(value)) items.set(key, made.get());
    }
  } else if (is_random_state(tree)) {
    if (next == arrays.size()) raise(PyExc_ValueError, "a tree has more arrays than expected");
    Object made = Object::steal(new_array(arrays[next++]));
    if (PySequence_SetItem(tree, 0, made.get()) != 0) throw PythonError();
  }
}

void give_back(PyObject* mine, PyObject* used, PyObject* structure, const std::vector<array>& given,
               Nodes nodes) {
  GivingBack(given, nodes).is_changed(mine, used, structure);
}

bool is_namespace_node(PyObject* tree) { return form_of(tree) == Form::names; }

}  // namespace holdfast::python
