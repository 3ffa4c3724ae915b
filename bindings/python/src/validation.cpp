// The validator, for holdfast.validation: one scope at a time, as in C++.
#include <holdfast/validation.h>

#include <memory>

#include "arguments.h"
#include "exec/unhandled_failures.h"
#include "ops.h"

namespace holdfast::python {

namespace {

// The scope that Python has begun; guarded by the GIL. Calls without the GIL hold one of their own.
std::shared_ptr<validation::Scope>& current() {
  static auto* scope = new std::shared_ptr<validation::Scope>;
  return *scope;
}

std::shared_ptr<validation::Scope> begun() {
  if (!current()) raise(PyExc_RuntimeError, "[validation] the scope is not active");
  return current();
}

PyObject* text_object(const std::string& text) {
  // What users name may be no UTF-8.
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

// As holdfast.validation.Report takes it.
Object report_object(const validation::Report& report) {
  Object fields = Object::steal(PyDict_New());
  for (const auto& [key, value] : report.fields) {
    Object name = Object::steal(text_object(key)), text = Object::steal(text_object(value));
    if (PyDict_SetItem(fields.get(), name.get(), text.get()) != 0) throw PythonError();
  }
  const char* severity = report.severity == validation::Severity::error  ? "error"
                         : report.severity == validation::Severity::note ? "note"
                                                                         : "warning";
  return Object::steal(Py_BuildValue("(NsNNOKNN)", text_object(report.id), severity,
                                     text_object(report.sentence), text_object(report.advice),
                                     fields.get(), static_cast<unsigned long long>(report.count),
                                     text_object(report.text()), text_object(report.json())));
}

validation::Mode mode_of(const std::string& name) {
  if (name == "report") return validation::Mode::report;
  if (name == "throw") return validation::Mode::throw_error;
  if (name == "abort") return validation::Mode::abort;
  raise(PyExc_ValueError, "[validation] expected mode report, throw or abort, got " + name);
}

constexpr Row rows[] = {
    {"_begin", "(checks, mode, ignore, print, json)", "For the package itself.", "",
     [](Arguments& a) {
       validation::Options options{a.text(0), mode_of(a.text(1)), a.text(2), a.truth(3), a.text(4)};
       std::shared_ptr<validation::Scope> scope;
       {
         WithoutGil released;
         scope = std::make_shared<validation::Scope>(std::move(options));
       }
       current() = std::move(scope);
       return give_none();
     }},
    {"_end", "()", "For the package itself.", "",
     [](Arguments&) {
       std::shared_ptr<validation::Scope> scope = begun();
       current() = nullptr;
       {
         WithoutGil released;
         scope = nullptr;
       }
       return give_none();
     }},
    {"_check_left_over", "()", "For the package itself.", "",
     [](Arguments&) {
       std::shared_ptr<validation::Scope> scope = begun();
       {
         WithoutGil released;
         scope->check_left_over();
       }
       return give_none();
     }},
    {"_reports", "()", "For the package itself.", "",
     [](Arguments&) {
       std::vector<validation::Report> reports;
       std::shared_ptr<validation::Scope> scope = begun();
       {
         WithoutGil released;
         reports = scope->reports();
       }
       Object list = Object::steal(PyList_New(0));
       for (const validation::Report& report : reports) {
         if (PyList_Append(list.get(), report_object(report).get()) != 0) throw PythonError();
       }
       return list.release();
     }},
    {"_write_unhandled", "(text)",
     "For the package itself: the script ends by an error of this text.", "",
     [](Arguments& a) {
       exec::unhandled_failures::write_of(a.text(0).c_str());
       Py_RETURN_NONE;
     }},
};

}  // namespace

void add_validation(PyObject* module) { add_rows<rows>(module); }

bool raise_if_validation_error(const std::exception& error) {
  auto* thrown = dynamic_cast<const validation::ValidationError*>(&error);
  if (!thrown) return false;
  Object module = Object::steal(PyImport_ImportModule("holdfast.validation"));
  Object type = attribute(module.get(), "ValidationError");
  Object report = report_object(thrown->report());
  Object arguments =
      Object::steal(Py_BuildValue("(NO)", text_object(thrown->what()), report.get()));
  PyErr_SetObject(type.get(), arguments.get());
  return true;
}

}  // namespace holdfast::python
