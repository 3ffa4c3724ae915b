#include "array_methods.h"

#include <cstring>
#include <string>

#include <holdfast/ops.h>

#include "arguments.h"
#include "array_type.h"

namespace holdfast::python {

namespace {

// Those without a function of their own are filled in from the module's: the same place holds the
// same parameter, and the first one is the array itself.
Row rows[] = {
    {"item", "(self)", "The one element, as a Python scalar.", "mx.array(2.5).item()",
     [](Arguments& a) { return item_of(value_of(a.object(0))); }},
    {"tolist", "(self)", "All elements, as nested lists.", "mx.array([[1, 2], [3, 4]]).tolist()",
     [](Arguments& a) { return list_of(value_of(a.object(0))); }},
    {"reshape", "(self, *shape, stream=None)", "The same elements in another shape.",
     "mx.arange(6).reshape(2, -1)\nmx.arange(6).reshape((3, 2))",
     [](Arguments& a) {
       return give(reshape(value_of(a.object(0)), a.rest_shape(), a.stream(1)));
     }},
    {"transpose", "(self, *axes, stream=None)", "Axes in another order; by default reversed.",
     "mx.ones((2, 3)).transpose().shape\nmx.ones((2, 3, 4)).transpose(1, 0, 2).shape",
     [](Arguments& a) {
       const array& x = value_of(a.object(0));
       if (a.rest().empty() || (a.rest().size() == 1 && a.rest()[0] == Py_None)) {
         return give(transpose(x, a.stream(1)));
       }
       Shape axes = a.rest_shape();
       return give(transpose(x, std::vector<int>(axes.begin(), axes.end()), a.stream(1)));
     }},
    {"_bytes", "(self)", "For the package itself.", "",
     [](Arguments& a) {
       array dense = contiguous(value_of(a.object(0)));
       materialise(dense);
       return PyBytes_FromStringAndSize(std::as_const(dense).data<char>(),
                                        static_cast<Py_ssize_t>(dense.nbytes()));
     }},
    {"_dlpack", "(self)", "For the package itself.", "",
     [](Arguments& a) { return to_dlpack(value_of(a.object(0))); }},
    {"abs"},
    {"all"},
    {"any"},
    {"argmax"},
    {"argmin"},
    {"astype", "(self, dtype, stream=None)", "Converted to another dtype.",
     "mx.array([1.7, 2.0]).astype(mx.int32)",
     [](Arguments& a) { return give(astype(value_of(a.object(0)), a.dtype(1), a.stream(2))); }},
    {"conj"},
    {"cos"},
    {"cummax"},
    {"cummin"},
    {"cumprod"},
    {"cumsum"},
    {"diag"},
    {"diagonal"},
    {"exp"},
    {"flatten"},
    {"log"},
    {"log10"},
    {"log1p"},
    {"log2"},
    {"max"},
    {"mean"},
    {"min"},
    {"moveaxis"},
    {"prod"},
    {"reciprocal"},
    {"round"},
    {"rsqrt"},
    {"sin"},
    {"split"},
    {"sqrt"},
    {"square"},
    {"squeeze"},
    {"std"},
    {"sum"},
    {"swapaxes"},
    {"var"},
    {"view"},
    {"logsumexp"},
    {"logcumsumexp"},
};

const char* keep(std::string text) { return (new std::string(std::move(text)))->c_str(); }

// "(a, /, axis=None)" as "(self, axis=None)"
const char* method_signature(std::string_view text) {
  size_t first = text.find_first_of(",)");
  std::string rest(text.substr(first));
  size_t slash = rest.find(", /");
  if (slash != std::string::npos) rest.erase(slash, 3);
  return keep("(self" + rest);
}

// "mx.sum(mx.ones(3), axis=0)" as "mx.ones(3).sum(axis=0)", for each line.
const char* method_examples(std::string_view lines, std::string_view name) {
  std::string result;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    size_t begin = line.find('(') + 1, end = begin, depth = 0;
    for (; end < line.size() && (depth || (line[end] != ',' && line[end] != ')')); ++end) {
      if (line[end] == '(' || line[end] == '[') ++depth;
      if (line[end] == ')' || line[end] == ']') --depth;
    }
    std::string_view rest = line.substr(end);
    if (rest.starts_with(", ")) rest.remove_prefix(2);
    if (!result.empty()) result += "\n";
    result += std::string(line.substr(begin, end - begin)) + "." + std::string(name) + "(" +
              std::string(rest);
  }
  return keep(std::move(result));
}

}  // namespace

PyMethodDef* array_methods(PyObject* module) {
  for (Row& row : rows) {
    if (row.function) continue;
    const Row* function = find_row(module, row.name);
    if (!function) raise(PyExc_SystemError, std::string("no function for the method ") + row.name);
    row = {row.name, method_signature(function->signature), function->summary,
           method_examples(function->examples, row.name), function->function};
  }
  return Methods<rows>::methods("array");
}

}  // namespace holdfast::python
