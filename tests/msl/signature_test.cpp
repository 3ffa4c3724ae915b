// The source that is generated around a custom kernel's body, rule by rule.
#include "msl/signature.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "msl/sources.h"

using namespace holdfast;
using namespace holdfast::msl;
using Kind = SignatureSlot::Kind;

namespace {

Signature simple(std::string body) {
  Signature signature;
  signature.name = "scale";
  signature.input_names = {"x", "factor"};
  signature.output_names = {"out"};
  signature.body = std::move(body);
  return signature;
}

const std::vector<SignatureInput> large_and_scalar = {{float32, 100, 2}, {float16, 1, 0}};
const std::vector<Dtype> one_output = {bfloat16};

std::string text_of(const Signature& signature,
                    std::vector<std::pair<std::string, TemplateValue>> arguments = {}) {
  return generate(signature, large_and_scalar, one_output, arguments).source.text;
}

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

template <typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("the whole text of a small kernel") {
  Signature signature = simple("out[0] = x[0] * factor;");
  signature.header = "// mine";
  GeneratedKernel kernel = generate(signature, large_and_scalar, one_output, {});
  CHECK(kernel.source.text == R"(#include <holdfast/custom_kernel.h>
// mine
[[kernel]] void custom_kernel_scale(
  const device float* x [[buffer(0)]],
  const constant half& factor [[buffer(1)]],
  device bfloat16_t* out [[buffer(2)]]) {
out[0] = x[0] * factor;
}
)");
  CHECK(kernel.source.kernel == "scale");
  REQUIRE(kernel.source.parts.size() == 3);
  for (const SourcePart& part : kernel.source.parts) {
    std::string text = kernel.source.text.substr(part.begin, part.end - part.begin);
    if (part.name == "header") CHECK(text == signature.header);
    if (part.name == "body") CHECK(text == signature.body);
    if (part.name == "signature") {
      CHECK(text.starts_with("  const device float* x [[buffer(0)]],\n"));
      CHECK(text.ends_with("\n  device bfloat16_t* out [[buffer(2)]]"));
    }
  }
}

TEST_CASE("fewer than eight elements are constant, a 0-d array is a reference") {
  Signature signature = simple("");
  auto parameter = [&](size_t size, size_t ndim) {
    std::vector<SignatureInput> inputs = {{int32, size, ndim}, {int32, 100, 1}};
    std::string text = generate(signature, inputs, one_output, {}).source.text;
    size_t begin = text.find("const ");
    return text.substr(begin, text.find(" [[buffer(0)") - begin);
  };
  CHECK(parameter(8, 1) == "const device int32_t* x");
  CHECK(parameter(7, 1) == "const constant int32_t* x");
  CHECK(parameter(0, 1) == "const constant int32_t* x");
  CHECK(parameter(1, 3) == "const constant int32_t* x");
  CHECK(parameter(1, 0) == "const constant int32_t& x");
}

TEST_CASE("shape, strides and ndim by substring of the body, and only with dimensions") {
  Signature signature = simple("out[0] = x_shape[0] + x_strides[1] + x_ndim + factor_shape[0];");
  GeneratedKernel kernel = generate(signature, large_and_scalar, one_output, {});
  CHECK(has(kernel.source.text, "const constant int* x_shape [[buffer(1)]]"));
  CHECK(has(kernel.source.text, "const constant int64_t* x_strides [[buffer(2)]]"));
  CHECK(has(kernel.source.text, "const constant int& x_ndim [[buffer(3)]]"));
  CHECK_FALSE(has(kernel.source.text, "* factor_shape"));
  std::vector<Kind> kinds;
  std::vector<uint32_t> indices;
  for (const SignatureSlot& slot : kernel.slots) {
    kinds.push_back(slot.kind);
    indices.push_back(slot.index);
  }
  CHECK(kinds == std::vector<Kind>{Kind::input, Kind::shape, Kind::strides, Kind::ndim, Kind::input,
                                   Kind::output});
  CHECK(indices == std::vector<uint32_t>{0, 0, 0, 0, 1, 0});
  // The header does not count.
  signature = simple("out[0] = 0;");
  signature.header = "int f() { return 0; } // x_shape thread_position_in_grid";
  CHECK_FALSE(has(text_of(signature), "* x_shape"));
  CHECK_FALSE(has(text_of(signature), "uint3 thread_position_in_grid"));
}

TEST_CASE("thread attributes by substring of the body") {
  std::string text =
      text_of(simple("// dispatch_threads_per_threadgroup\n"
                     "uint i = thread_position_in_grid.x + thread_index_in_simdgroup;"));
  CHECK(has(text, "uint3 thread_position_in_grid [[thread_position_in_grid]]"));
  CHECK(has(text, "uint thread_index_in_simdgroup [[thread_index_in_simdgroup]]"));
  CHECK(has(text, "uint3 dispatch_threads_per_threadgroup [[dispatch_threads_per_threadgroup]]"));
  CHECK(has(text, "uint3 threads_per_threadgroup [[threads_per_threadgroup]]"));  // a substring
  CHECK_FALSE(has(text, "thread_position_in_threadgroup"));
}

TEST_CASE("template values of the three kinds") {
  std::string text = text_of(simple(""), {{"T", float16}, {"N", -3}, {"Flag", true}});
  CHECK(has(text, "template <typename T, int N, bool Flag>\n[[kernel]] void custom_kernel_scale("));
  CHECK(has(text,
            "template [[host_name(\"custom_kernel_scale\")]] [[kernel]] "
            "decltype(custom_kernel_scale<half, -3, true>) custom_kernel_scale<half, -3, true>;"));
}

TEST_CASE("atomic outputs and every dtype that MSL has") {
  Signature signature = simple("");
  signature.atomic_outputs = true;
  CHECK(has(text_of(signature), "device atomic<bfloat16_t>* out"));
  signature.atomic_outputs = false;
  const std::pair<Dtype, const char*> types[] = {
      {bool_, "bool"},           {uint8, "uint8_t"}, {uint16, "uint16_t"}, {uint32, "uint32_t"},
      {uint64, "uint64_t"},      {int8, "int8_t"},   {int16, "int16_t"},   {int32, "int32_t"},
      {int64, "int64_t"},        {float16, "half"},  {float32, "float"},   {bfloat16, "bfloat16_t"},
      {complex64, "complex64_t"}};
  for (const auto& [dtype, name] : types) {
    std::vector<Dtype> outputs = {dtype};
    CHECK(has(generate(signature, large_and_scalar, outputs, {}).source.text,
              std::string("device ") + name + "* out"));
  }
}

TEST_CASE("float64 is refused with the kernel's and the argument's name") {
  Signature signature = simple("");
  std::vector<SignatureInput> inputs = {{float64, 100, 1}, {float32, 1, 0}};
  CHECK(message_of([&] { generate(signature, inputs, one_output, {}); }) ==
        "[metal_kernel] kernel 'scale': input 'x' is float64, which the Metal Shading Language "
        "does not have");
  std::vector<Dtype> outputs = {float64};
  CHECK(has(message_of([&] { generate(signature, large_and_scalar, outputs, {}); }),
            "output 'out' is float64"));
  CHECK(has(message_of([&] { text_of(signature, {{"T", float64}}); }),
            "template argument 'T' is float64"));
}

TEST_CASE("names that cannot be") {
  auto complaint = [](std::vector<std::string> inputs, std::vector<std::string> outputs) {
    Signature signature = simple("");
    signature.input_names = std::move(inputs);
    signature.output_names = std::move(outputs);
    return message_of([&] { check(signature); });
  };
  CHECK(has(complaint({"a", "a"}, {"out"}), "input 'a' has a name that is used twice"));
  CHECK(has(complaint({"a"}, {"a"}), "output 'a' has a name that is used twice"));
  CHECK(has(complaint({"float"}, {"out"}), "keyword"));
  CHECK(has(complaint({"threadgroup"}, {"out"}), "keyword"));
  CHECK(has(complaint({"thread_position_in_grid"}, {"out"}), "thread attribute"));
  CHECK(has(complaint({"1a"}, {"out"}), "is not a name"));
  CHECK(has(complaint({"a b"}, {"out"}), "is not a name"));
  CHECK(has(complaint({""}, {"out"}), "is not a name"));
  CHECK(has(complaint({"__hf_x"}, {"out"}), "reserved"));
  CHECK(has(complaint({"x"}, {}), "at least one output"));
  CHECK(has(message_of([] { text_of(simple(""), {{"x", 1}}); }), "used twice"));
  Signature shaped = simple("out[0] = x_shape[0];");
  shaped.input_names = {"x", "x_shape"};
  CHECK(has(message_of([&] { text_of(shaped); }), "'x_shape' has the name that input 'x' needs"));
  Signature many = simple("");
  many.input_names.assign(40, "x");
  std::vector<SignatureInput> inputs(40, SignatureInput{float32, 10, 1});
  CHECK(has(message_of([&] { generate(many, inputs, one_output, {}); }), "41 buffers"));
}

TEST_CASE("names that other languages reserve compile") {
  Signature signature = simple(
      "output[thread_position_in_grid.x] = "
      "input[0] * T + half_ + time[0] + grid[thread_position_in_grid.x];");
  signature.name = "a name-with.signs";
  signature.input_names = {"grid", "input", "T", "time", "half_"};
  signature.output_names = {"output"};
  check(signature);
  std::vector<SignatureInput> inputs = {
      {int8, 100, 1}, {float32, 100, 1}, {float32, 1, 0}, {float32, 3, 1}, {float16, 1, 0}};
  std::vector<Dtype> outputs = {float32};
  GeneratedKernel kernel = generate(signature, inputs, outputs, {});
  llvm::LLVMContext context;
  KernelInterface interface;
  auto module = to_scalar_ir(kernel.source, context, interface);
  CHECK(check_scalar_ir(*module, interface) == "");
  REQUIRE(interface.arguments.size() == 6);
  CHECK(interface.arguments[2].kind == KernelArgument::Kind::constant);
  CHECK(interface.arguments[5].written);
}
