// Functions in files.
#include <holdfast/export.h>

#include "arguments.h"
#include "array_type.h"
#include "dtype_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

constexpr const char* exporter_name = "holdfast.FunctionExporter";
constexpr const char* imported_name = "holdfast.ImportedFunction";

Kwargs keywords_of(Arguments& a, int place) {
  Kwargs keywords;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(a.object(place), &position, &key, &value)) {
    if (!is_array(value)) a.refuse(place, "a dict of arrays");
    keywords.emplace(text_of(key), value_of(value));
  }
  return keywords;
}

// An exporter, and what it calls. The Python object that it belongs to holds both callables, where
// the garbage collector sees them, and passes them to each call: they may refer back to it.
struct Exporting {
  std::optional<FunctionExporter> exporter;
  PyObject *function = nullptr, *target = nullptr;  // borrowed, while a call runs

  template <typename F>
  void call(PyObject* with_function, PyObject* with_target, const F& use) {
    function = with_function;
    target = with_target;
    use(*exporter);
  }
};

// Called with a list of arrays and a dict of arrays; returns a list of arrays.
std::function<Args(const Args&, const Kwargs&)> function_of(Exporting* exporting) {
  return [exporting](const Args& arguments, const Kwargs& keywords) {
    Object list = Object::steal(give_list(arguments));
    Object dictionary = Object::steal(PyDict_New());
    for (const auto& [name, value] : keywords) {
      PyDict_SetItemString(dictionary.get(), name.c_str(), Object::steal(new_array(value)).get());
    }
    Object both = Object::steal(PyTuple_Pack(2, list.get(), dictionary.get()));
    Object result = Object::steal(PyObject_Call(exporting->function, both.get(), nullptr));
    return arrays_of(result.get(), [](PyObject* element) {
      raise(PyExc_ValueError, "an exported function must return arrays, got " + type_name(element));
    });
  };
}

// --- what a callback is given ---

Object text_object(const std::string& text) {
  return Object::steal(PyUnicode_FromString(text.c_str()));
}

template <typename Items, typename F>
Object list_object(const Items& items, const F& convert) {
  Object list = Object::steal(PyList_New(0));
  for (const auto& item : items) PyList_Append(list.get(), convert(item).get());
  return list;
}

struct StateToPython {
  Object operator()(bool value) const { return Object::steal(PyBool_FromLong(value)); }
  Object operator()(int value) const { return Object::steal(PyLong_FromLong(value)); }
  Object operator()(size_t value) const { return Object::steal(PyLong_FromSize_t(value)); }
  Object operator()(float value) const {
    return Object::steal(PyFloat_FromDouble(static_cast<double>(value)));
  }
  Object operator()(double value) const { return Object::steal(PyFloat_FromDouble(value)); }
  Object operator()(Dtype value) const { return Object::steal(new_reference(value)); }
  Object operator()(int64_t value) const { return Object::steal(PyLong_FromLongLong(value)); }
  Object operator()(const std::string& value) const { return text_object(value); }
  Object operator()(const std::optional<float>& value) const {
    return value ? (*this)(*value) : Object::borrow(Py_None);
  }
  Object operator()(const std::tuple<bool, bool, bool>& value) const {
    auto [a, b, c] = value;
    return Object::steal(PyTuple_Pack(3, (*this)(a).get(), (*this)(b).get(), (*this)(c).get()));
  }
  Object operator()(const std::variant<bool, int, float>& value) const {
    return std::visit(*this, value);
  }
  template <typename Items>
    requires requires(const Items& items) { items.begin(); }
  Object operator()(const Items& items) const {
    return list_object(items, *this);
  }
};

Object part_object(const ExportCallbackInput& part) {
  Object dictionary = Object::steal(PyDict_New());
  for (const auto& [key, value] : part) {
    Object converted;
    if (const auto* text = std::get_if<std::string>(&value)) {
      converted = text_object(*text);
    } else if (const auto* named =
                   std::get_if<std::vector<std::pair<std::string, array>>>(&value)) {
      converted = list_object(*named, [](const auto& item) {
        return Object::steal(PyTuple_Pack(2, text_object(item.first).get(),
                                          Object::steal(new_array(item.second)).get()));
      });
    } else if (const auto* texts =
                   std::get_if<std::vector<std::pair<std::string, std::string>>>(&value)) {
      converted = list_object(*texts, [](const auto& item) {
        return Object::steal(
            PyTuple_Pack(2, text_object(item.first).get(), text_object(item.second).get()));
      });
    } else if (const auto* states = std::get_if<std::vector<StateT>>(&value)) {
      converted = list_object(
          *states, [](const StateT& state) { return std::visit(StateToPython{}, state); });
    } else {
      using Described = std::vector<std::tuple<std::string, Shape, Dtype>>;
      converted = list_object(std::get<Described>(value), [](const auto& item) {
        const auto& [name, shape, dtype] = item;
        return Object::steal(PyTuple_Pack(3, text_object(name).get(),
                                          Object::steal(give_shape(shape)).get(),
                                          dtype_object(dtype)));
      });
    }
    PyDict_SetItemString(dictionary.get(), key.c_str(), converted.get());
  }
  return dictionary;
}

PyObject* make_exporter(Arguments& a) {
  auto made = std::make_unique<Exporting>();
  auto function = function_of(made.get());
  if (PyUnicode_Check(a.object(0))) {
    made->exporter.emplace(
        exporter(a.text(0), function, a.truth(1), a.is_none(2) ? "" : a.text(2)));
  } else {
    ExportCallback callback = [exporting = made.get()](const ExportCallbackInput& part) {
      Object arguments = Object::steal(PyTuple_Pack(1, part_object(part).get()));
      Object::steal(PyObject_Call(exporting->target, arguments.get(), nullptr));
    };
    made->exporter.emplace(exporter(callback, function, a.truth(1)));
  }
  PyObject* capsule = PyCapsule_New(made.get(), exporter_name, [](PyObject* self) {
    delete static_cast<Exporting*>(PyCapsule_GetPointer(self, exporter_name));
  });
  if (capsule) made.release();
  return capsule;
}

template <typename T>
T& held(Arguments& a, const char* name) {
  auto* object = static_cast<T*>(PyCapsule_GetPointer(a.object(0), name));
  if (!object) throw PythonError();
  return *object;
}

constexpr Row rows[] = {
    {"_exporter", "(target, shapeless, metadata)", "For the package itself.", "", make_exporter},
    {"_export_call", "(exporter, target, fun, args, kwargs)", "For the package itself.", "",
     [](Arguments& a) {
       auto& exporting = held<Exporting>(a, exporter_name);
       exporting.call(a.object(2), a.object(1), [&](FunctionExporter& exporter) {
         exporter(a.arrays(3), keywords_of(a, 4));
       });
       return give_none();
     }},
    {"_export_close", "(exporter)", "For the package itself.", "",
     [](Arguments& a) {
       FunctionExporter& exporter = *held<Exporting>(a, exporter_name).exporter;
       {
         WithoutGil released;
         exporter.close();
       }
       return give_none();
     }},
    {"_import", "(file)", "For the package itself.", "",
     [](Arguments& a) {
       std::string file = a.text(0);
       std::unique_ptr<ImportedFunction> made;
       {
         WithoutGil released;
         made = std::make_unique<ImportedFunction>(import_function(file));
       }
       PyObject* capsule = PyCapsule_New(made.get(), imported_name, [](PyObject* self) {
         delete static_cast<ImportedFunction*>(PyCapsule_GetPointer(self, imported_name));
       });
       if (capsule) made.release();
       return capsule;
     }},
    {"_import_call", "(imported, args, kwargs)", "For the package itself.", "",
     [](Arguments& a) {
       return give_list(held<ImportedFunction>(a, imported_name)(a.arrays(1), keywords_of(a, 2)));
     }},
    {"_import_metadata", "(imported)", "For the package itself.", "",
     [](Arguments& a) {
       return PyUnicode_FromString(held<ImportedFunction>(a, imported_name).metadata().c_str());
     }},
};

}  // namespace

void add_export(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
