#include "signature.h"

#include <cstring>
#include <string>
#include <string_view>

#include "arguments.h"
#include "dtype_type.h"

namespace holdfast::python {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The literals that signatures use.
Object default_from(std::string_view text) {
  if (text == "None") return Object::borrow(Py_None);
  if (text == "True") return Object::borrow(Py_True);
  if (text == "False") return Object::borrow(Py_False);
  if (text.front() == '(') {
    Object items = Object::steal(PyList_New(0));
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      size_t end = text.find(',');
      PyList_Append(items.get(), default_from(trimmed(text.substr(0, end))).get());
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return Object::steal(PyList_AsTuple(items.get()));
  }
  if (text.front() == '\'') {
    return Object::steal(
        PyUnicode_FromStringAndSize(text.data() + 1, static_cast<Py_ssize_t>(text.size() - 2)));
  }
  std::string number(text);
  if (number.find_first_of(".e") != std::string::npos) {
    return Object::steal(PyFloat_FromDouble(std::stod(number)));
  }
  return Object::steal(PyLong_FromLong(std::stol(number)));
}

[[noreturn]] void raise_for(const Row& row, const std::string& message) {
  raise(PyExc_TypeError,
        std::string(row.name) + "() " + message + "; it is " + row.name + row.signature);
}

}  // namespace

Signature parse_signature(const char* text) {
  Signature signature;
  std::string_view rest(text + 1, std::strlen(text) - 2);
  bool keyword_only = false;
  while (!rest.empty()) {
    size_t depth = 0, end = 0;
    for (; end < rest.size() && (depth || rest[end] != ','); ++end) {
      if (rest[end] == '(') ++depth;
      if (rest[end] == ')') --depth;
    }
    std::string_view item = trimmed(rest.substr(0, end));
    rest.remove_prefix(end < rest.size() ? end + 1 : end);
    if (item == "/") {
      signature.positional_only = signature.positional;
    } else if (item.front() == '*') {
      keyword_only = true;
      signature.variadic = item.size() > 1;
    } else {
      size_t equals = item.find('=');
      std::string name(trimmed(item.substr(0, equals)));
      Parameter parameter;
      parameter.name = Object::steal(PyUnicode_InternFromString(name.c_str()));
      if (equals != std::string_view::npos) {
        parameter.default_value = default_from(trimmed(item.substr(equals + 1)));
      }
      signature.parameters.push_back(std::move(parameter));
      if (!keyword_only) ++signature.positional;
    }
  }
  return signature;
}

namespace {
std::vector<std::pair<PyObject*, std::span<const Row>>> remembered;
}

void remember_rows(PyObject* module, std::span<const Row> rows) {
  remembered.emplace_back(module, rows);
}

const Row* find_row(PyObject* module, const char* name) {
  for (const auto& [owner, rows] : remembered) {
    if (owner != module) continue;
    for (const Row& row : rows) {
      if (std::strcmp(row.name, name) == 0) return &row;
    }
  }
  return nullptr;
}

PyObject* call_row(const Row& row, const Signature& signature, PyObject* const* arguments,
                   Py_ssize_t count, PyObject* keyword_names) noexcept {
  try {
    PyObject* values[max_parameters];
    int parameters = static_cast<int>(signature.parameters.size());
    int given = static_cast<int>(count < signature.positional ? count : signature.positional);
    if (count > signature.positional && !signature.variadic) {
      raise_for(row, "got " + std::to_string(count) + " positional arguments");
    }
    for (int i = 0; i < given; ++i) values[i] = arguments[i];
    for (int i = given; i < parameters; ++i) {
      values[i] = signature.parameters[static_cast<size_t>(i)].default_value.get();
    }
    if (keyword_names) {
      Py_ssize_t keywords = PyTuple_Size(keyword_names);
      for (Py_ssize_t k = 0; k < keywords; ++k) {
        PyObject* name = PyTuple_GetItem(keyword_names, k);
        int place = signature.positional_only;
        // Names are interned nearly always.
        while (place < parameters &&
               signature.parameters[static_cast<size_t>(place)].name.get() != name) {
          ++place;
        }
        if (place == parameters) {
          place = signature.positional_only;
          while (place < parameters &&
                 PyUnicode_Compare(signature.parameters[static_cast<size_t>(place)].name.get(),
                                   name) != 0) {
            ++place;
          }
        }
        if (place == parameters) {
          raise_for(row, "got an unexpected keyword argument '" + text_of(name) + "'");
        }
        if (place < given) raise_for(row, "got two values for '" + text_of(name) + "'");
        values[place] = arguments[count + k];
      }
    }
    for (int i = given; i < parameters; ++i) {
      if (!values[i]) {
        raise_for(row, "misses the argument '" +
                           text_of(signature.parameters[static_cast<size_t>(i)].name.get()) + "'");
      }
    }
    std::span<PyObject* const> rest;
    if (count > given) rest = {arguments + given, static_cast<size_t>(count - given)};
    Arguments bound(row, signature, values, rest);
    return row.function(bound);
  } catch (PythonError& error) {
    error.restore_from(row.name);
    return nullptr;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* call_row(const Row& row, const Signature& signature, PyObject* self, PyObject* tuple,
                   PyObject* keywords) noexcept {
  return guarded([&]() -> PyObject* {
    std::vector<PyObject*> values;
    if (self) values.push_back(self);
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
      values.push_back(PyTuple_GetItem(tuple, i));
    }
    Py_ssize_t count = static_cast<Py_ssize_t>(values.size());
    Object names;
    if (keywords && PyDict_Size(keywords) > 0) {
      names = Object::steal(PyTuple_New(PyDict_Size(keywords)));
      Py_ssize_t position = 0, place = 0;
      PyObject *name, *value;
      while (PyDict_Next(keywords, &position, &name, &value)) {
        Py_INCREF(name);
        PyTuple_SetItem(names.get(), place++, name);
        values.push_back(value);
      }
    }
    return call_row(row, signature, values.data(), count, names.get());
  });
}

}  // namespace holdfast::python
