#include "msl/signature.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <string_view>

namespace holdfast::msl {
namespace {

constexpr size_t first_device_size = 8;  // fewer elements are in constant memory
constexpr size_t most_buffers = 31;

struct ThreadAttribute {
  const char* type;
  const char* name;
};
constexpr std::array thread_attributes = {
    ThreadAttribute{"uint", "dispatch_quadgroups_per_threadgroup"},
    ThreadAttribute{"uint", "dispatch_simdgroups_per_threadgroup"},
    ThreadAttribute{"uint3", "dispatch_threads_per_threadgroup"},
    ThreadAttribute{"uint3", "grid_origin"},
    ThreadAttribute{"uint3", "grid_size"},
    ThreadAttribute{"uint", "quadgroup_index_in_threadgroup"},
    ThreadAttribute{"uint", "quadgroups_per_threadgroup"},
    ThreadAttribute{"uint", "simdgroup_index_in_threadgroup"},
    ThreadAttribute{"uint", "simdgroups_per_threadgroup"},
    ThreadAttribute{"uint", "thread_execution_width"},
    ThreadAttribute{"uint", "thread_index_in_quadgroup"},
    ThreadAttribute{"uint", "thread_index_in_simdgroup"},
    ThreadAttribute{"uint", "thread_index_in_threadgroup"},
    ThreadAttribute{"uint3", "thread_position_in_grid"},
    ThreadAttribute{"uint3", "thread_position_in_threadgroup"},
    ThreadAttribute{"uint3", "threadgroup_position_in_grid"},
    ThreadAttribute{"uint3", "threadgroups_per_grid"},
    ThreadAttribute{"uint3", "threads_per_grid"},
    ThreadAttribute{"uint", "threads_per_simdgroup"},
    ThreadAttribute{"uint3", "threads_per_threadgroup"},
};

// Words that cannot name a parameter: C++'s keywords, and those that Metal adds.
constexpr std::array keywords = {
    "alignas",      "alignof",
    "and",          "and_eq",
    "asm",          "auto",
    "bitand",       "bitor",
    "bool",         "break",
    "case",         "catch",
    "char",         "char16_t",
    "char32_t",     "class",
    "compl",        "const",
    "const_cast",   "constexpr",
    "continue",     "decltype",
    "default",      "delete",
    "do",           "double",
    "dynamic_cast", "else",
    "enum",         "explicit",
    "export",       "extern",
    "false",        "float",
    "for",          "friend",
    "goto",         "if",
    "inline",       "int",
    "long",         "mutable",
    "namespace",    "new",
    "noexcept",     "not",
    "not_eq",       "nullptr",
    "operator",     "or",
    "or_eq",        "private",
    "protected",    "public",
    "register",     "reinterpret_cast",
    "return",       "short",
    "signed",       "sizeof",
    "static",       "static_assert",
    "static_cast",  "struct",
    "switch",       "template",
    "this",         "thread_local",
    "throw",        "true",
    "try",          "typedef",
    "typeid",       "typename",
    "union",        "unsigned",
    "using",        "virtual",
    "void",         "volatile",
    "wchar_t",      "while",
    "xor",          "xor_eq",
    "device",       "constant",
    "thread",       "threadgroup",
    "kernel",       "half",
    "bfloat",       "vertex",
    "fragment",
};

[[noreturn]] void fail(const Signature& signature, const std::string& message) {
  throw std::invalid_argument("[metal_kernel] kernel '" + signature.name + "': " + message);
}

bool is_identifier(std::string_view name) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

// `what`: "input", "output" or "template argument".
void check_name(const Signature& signature, const char* what, const std::string& name,
                std::set<std::string>& taken) {
  const std::string named = std::string(what) + " '" + name + "' ";
  if (!is_identifier(name)) {
    fail(signature, named + "is not a name: letters, digits and underscores, no digit first");
  }
  if (std::find(keywords.begin(), keywords.end(), name) != keywords.end()) {
    fail(signature, named + "has the name of a keyword of the Metal Shading Language");
  }
  if (std::any_of(thread_attributes.begin(), thread_attributes.end(),
                  [&](const ThreadAttribute& attribute) { return name == attribute.name; })) {
    fail(signature, named + "has the name of a thread attribute");
  }
  if (name.starts_with("__hf") || name.starts_with("holdfast_")) {
    fail(signature, named + "has a name that is reserved");
  }
  if (!taken.insert(name).second) fail(signature, named + "has a name that is used twice");
}

std::string type_name(const Signature& signature, const char* what, const std::string& name,
                      Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return "bool";
    case Dtype::Val::float16:
      return "half";
    case Dtype::Val::float32:
      return "float";
    case Dtype::Val::float64:
      fail(signature, std::string(what) + " '" + name +
                          "' is float64, which the Metal Shading Language does not have");
    default:
      return std::string(dtype_name(dtype.val())) + "_t";
  }
}

// The function's name: the user's, in letters that C++ allows.
std::string function_name(const Signature& signature) {
  std::string name = "custom_kernel_" + signature.name;
  for (char& c : name) {
    if (!is_identifier(std::string("_") + c)) c = '_';
  }
  return name;
}

std::string template_value(const Signature& signature, const std::string& name,
                           const TemplateValue& value) {
  if (const int* number = std::get_if<int>(&value)) return std::to_string(*number);
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return type_name(signature, "template argument", name, std::get<Dtype>(value));
}

const char* template_kind(const TemplateValue& value) {
  if (std::holds_alternative<int>(value)) return "int";
  return std::holds_alternative<bool>(value) ? "bool" : "typename";
}

// The parameters of the kernel, one a line.
class Parameters {
 public:
  Parameters(const Signature& signature, std::vector<SignatureSlot>& slots)
      : signature_(signature), slots_(slots) {}

  void buffer(const std::string& declaration, SignatureSlot::Kind kind, size_t index) {
    add(declaration + " [[buffer(" + std::to_string(slots_.size()) + ")]]");
    slots_.push_back({kind, static_cast<uint32_t>(index)});
  }

  void input(size_t index, const SignatureInput& input) {
    const std::string& name = signature_.input_names[index];
    const std::string space = input.size < first_device_size ? "constant " : "device ";
    const std::string declaration = "const " + space +
                                    type_name(signature_, "input", name, input.dtype) +
                                    (input.ndim == 0 ? "& " : "* ") + name;
    buffer(declaration, SignatureSlot::Kind::input, index);
    if (input.size < first_device_size)
      declared_.push_back({name, declaration, input.size, input.ndim});
    if (input.ndim == 0) return;
    about_input("const constant int* ", "_shape", SignatureSlot::Kind::shape, index);
    about_input("const constant int64_t* ", "_strides", SignatureSlot::Kind::strides, index);
    about_input("const constant int& ", "_ndim", SignatureSlot::Kind::ndim, index);
  }

  void output(size_t index, Dtype dtype) {
    const std::string& name = signature_.output_names[index];
    const std::string type = type_name(signature_, "output", name, dtype);
    buffer("device " + (signature_.atomic_outputs ? "atomic<" + type + ">" : type) + "* " + name,
           SignatureSlot::Kind::output, index);
  }

  void thread_attributes_of_body() {
    for (const ThreadAttribute& attribute : thread_attributes) {
      if (signature_.body.find(attribute.name) == std::string::npos) continue;
      add(std::string(attribute.type) + " " + attribute.name + " [[" + attribute.name + "]]");
    }
  }

  const std::string& text() const { return text_; }
  std::vector<DeclaredInput> take_declared() { return std::move(declared_); }

 private:
  void add(const std::string& line) { text_ += (text_.empty() ? "\n  " : ",\n  ") + line; }

  void about_input(const char* type, const char* suffix, SignatureSlot::Kind kind, size_t index) {
    const std::string name = signature_.input_names[index] + suffix;
    if (signature_.body.find(name) == std::string::npos) return;
    for (const auto* names : {&signature_.input_names, &signature_.output_names}) {
      if (std::find(names->begin(), names->end(), name) != names->end()) {
        fail(signature_, "argument '" + name + "' has the name that input '" +
                             signature_.input_names[index] + "' needs for its " + (suffix + 1));
      }
    }
    buffer(type + name, kind, index);
  }

  const Signature& signature_;
  std::vector<SignatureSlot>& slots_;
  std::string text_;
  std::vector<DeclaredInput> declared_;
};

}  // namespace

void check(const Signature& signature) {
  if (signature.name.empty()) {
    throw std::invalid_argument("[metal_kernel] a kernel must have a name");
  }
  if (signature.output_names.empty()) fail(signature, "it must have at least one output");
  std::set<std::string> taken;
  for (const std::string& name : signature.input_names) check_name(signature, "input", name, taken);
  for (const std::string& name : signature.output_names) {
    check_name(signature, "output", name, taken);
  }
}

GeneratedKernel generate(
    const Signature& signature, std::span<const SignatureInput> inputs,
    std::span<const Dtype> outputs,
    std::span<const std::pair<std::string, TemplateValue>> template_arguments) {
  GeneratedKernel result;
  Parameters parameters(signature, result.slots);
  for (size_t i = 0; i < inputs.size(); ++i) parameters.input(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) parameters.output(i, outputs[i]);
  if (result.slots.size() > most_buffers) {
    fail(signature, "it has " + std::to_string(result.slots.size()) +
                        " buffers with shapes and strides, at most " +
                        std::to_string(most_buffers) + " are possible");
  }
  parameters.thread_attributes_of_body();

  std::string template_parameters, template_values;
  std::set<std::string> taken(signature.input_names.begin(), signature.input_names.end());
  taken.insert(signature.output_names.begin(), signature.output_names.end());
  for (const auto& [name, value] : template_arguments) {
    check_name(signature, "template argument", name, taken);
    const char* separator = template_parameters.empty() ? "" : ", ";
    template_parameters += separator + std::string(template_kind(value)) + " " + name;
    template_values += separator + template_value(signature, name, value);
  }

  const std::string function = function_name(signature);
  KernelSource& source = result.source;
  source.kernel = signature.name;
  source.entry = function;
  source.math = signature.math;
  source.declared = parameters.take_declared();
  std::string& text = source.text;
  text = "#include <holdfast/custom_kernel.h>\n";
  auto part = [&](const char* name, const std::string& content) {
    source.parts.push_back({name, text.size(), text.size() + content.size()});
    text += content + "\n";
  };
  if (!signature.header.empty()) part("header", signature.header);
  if (!template_parameters.empty()) text += "template <" + template_parameters + ">\n";
  text += "[[kernel]] void " + function + "(";
  // Its first line is empty. A name that cannot be a parameter's is reported here.
  source.parts.push_back(
      {"signature", text.size() + 1, text.size() + parameters.text().size(), true});
  text += parameters.text() + ") {\n";
  part("body", signature.body);
  text += "}\n";
  if (!template_parameters.empty()) {
    const std::string instance = function + "<" + template_values + ">";
    text += "template [[host_name(\"" + function + "\")]] [[kernel]] decltype(" + instance + ") " +
            instance + ";\n";
  }
  return result;
}

}  // namespace holdfast::msl
