// Functions as rows of a table: name, signature, what it does, examples, the C++ function.
//
// The signature is the text that Python shows, "(a, /, axis=None, *, stream=None)", and the one
// truth about parameters: arguments are bound and defaults are taken from it. Docstrings, stubs and
// tests read the same rows, with what parameters.def and results.def say about them: each example
// is an expression that the tests evaluate, and compare with MLX where that is installed.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "python.h"

namespace holdfast::python {

class Arguments;

struct Row {
  const char* name = nullptr;
  const char* signature = "()";
  const char* summary = "";
  const char* examples = "";  // expressions, one a line
  PyObject* (*function)(Arguments&) = nullptr;
};

struct Parameter {
  Object name;
  Object default_value;  // none: the argument must be given
};

// A parsed signature: positional parameters, then (after *) those by keyword only.
struct Signature {
  std::vector<Parameter> parameters;
  int positional = 0;       // how many may be given by position
  int positional_only = 0;  // how many of these may not be given by name
  bool variadic = false;    // further positional arguments are collected
};

inline constexpr int max_parameters = 24;

// Calls the function of a row; exceptions become Python's.
PyObject* call_row(const Row& row, const Signature& signature, PyObject* const* arguments,
                   Py_ssize_t count, PyObject* keyword_names) noexcept;
// As a type's tp_call.
PyObject* call_row(const Row& row, const Signature& signature, PyObject* self, PyObject* tuple,
                   PyObject* keywords) noexcept;

Signature parse_signature(const char* text);
// What Python shows for a row of a module or type, "holdfast.core.random" or "array"
// (documentation.cpp). Lives as long as the process.
const char* make_docstring(const Row& row, const Signature& signature, std::string_view owner);

// The method tables of modules and types, made once. Each row gets a C function of its own, which
// knows the row's place in its table.
template <auto& table>
struct Methods {
  static constexpr size_t count = std::size(table);
  // Never destroyed: the interpreter ends before static objects do.
  static inline Signature* signatures = new Signature[count];
  static inline PyMethodDef definitions[count + 1] = {};

  template <size_t index>
  static PyObject* function(PyObject*, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
    return call_row(table[index], signatures[index], arguments, n, names);
  }
  template <size_t index>
  static PyObject* method(PyObject* self, PyObject* const* arguments, Py_ssize_t n,
                          PyObject* names) {
    PyObject* with_self[max_parameters + 1];
    Py_ssize_t total = n + (names ? PyTuple_Size(names) : 0);
    if (total > max_parameters) {
      // Only variadic methods take so many, and those get a list in place of the arguments.
      PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments", table[index].name,
                   max_parameters);
      return nullptr;
    }
    with_self[0] = self;
    for (Py_ssize_t i = 0; i < total; ++i) with_self[i + 1] = arguments[i];
    return call_row(table[index], signatures[index], with_self, n + 1, names);
  }

  static PyMethodDef* functions(std::string_view owner) {
    return make(owner, []<size_t... i>(std::index_sequence<i...>) {
      ((definitions[i].ml_meth =
            reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&function<i>))),
       ...);
    });
  }
  static PyMethodDef* methods(std::string_view owner) {
    return make(owner, []<size_t... i>(std::index_sequence<i...>) {
      ((definitions[i].ml_meth =
            reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&method<i>))),
       ...);
    });
  }

 private:
  template <typename SetFunctions>
  static PyMethodDef* make(std::string_view owner, SetFunctions set_functions) {
    if (!definitions[0].ml_name) {
      for (size_t i = 0; i < count; ++i) {
        signatures[i] = parse_signature(table[i].signature);
        definitions[i].ml_name = table[i].name;
        definitions[i].ml_flags = METH_FASTCALL | METH_KEYWORDS;
        definitions[i].ml_doc = make_docstring(table[i], signatures[i], owner);
      }
      set_functions(std::make_index_sequence<count>());
    }
    return definitions;
  }
};

// The rows that were added to a module, for methods that do what a function does.
void remember_rows(PyObject* module, std::span<const Row> rows);
const Row* find_row(PyObject* module, const char* name);

template <auto& table>
void add_rows(PyObject* module) {
  PyMethodDef* functions = Methods<table>::functions(PyModule_GetName(module));
  if (PyModule_AddFunctions(module, functions) != 0) throw PythonError();
  remember_rows(module, table);
}

}  // namespace holdfast::python
