// `holdfast ops`: the op registry as a table.
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "registry/differences.h"
#include "registry/registry.h"
#include "tools/holdfast/commands.h"

namespace holdfast::tool {
namespace {

using registry::Row;

// "float16 float32 …", or a short name for the usual sets.
std::string dtypes_of(const Row& row) {
  std::vector<registry::Sample> samples = registry::samples_of(row);
  bool has_dtype = false;
  std::string all, listed;
  int count = 0;
  for (int v = 0; v < dtype_count; ++v) {
    Dtype dtype = dtype_of(static_cast<Dtype::Val>(v));
    for (const registry::Input& input : samples.front().inputs) has_dtype |= input.has_row_dtype();
    if (!registry::accepts(row, samples.front(), dtype)) continue;
    listed += (listed.empty() ? "" : " ") + std::string(dtype_name(dtype));
    ++count;
  }
  if (!has_dtype) return "";
  static const std::map<std::string, std::string> names = {
      {"float16 float32 float64 bfloat16", "floating"},
      {"float16 float32 float64 bfloat16 complex64", "inexact"},
      {"uint8 uint16 uint32 uint64 int8 int16 int32 int64", "integer"},
      {"bool uint8 uint16 uint32 uint64 int8 int16 int32 int64", "bool, integer"},
      {"bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 bfloat16",
       "real"}};
  if (count == dtype_count) return "any";
  auto known = names.find(listed);
  return known != names.end() ? known->second : listed;
}

void print_family(registry::Family family, const char* title) {
  std::printf("\n## %s\n\n| op | dtypes | a call |\n|---|---|---|\n", title);
  for (const Row& row : registry::rows()) {
    if (row.family != family) continue;
    std::string call = registry::samples_of(row).front().text;
    for (size_t at = call.find('|'); at != std::string::npos; at = call.find('|', at + 2)) {
      call.insert(at, "\\");
    }
    std::printf("| `%s` | %s | `%s` |\n", row.name, dtypes_of(row).c_str(), call.c_str());
  }
}

void print_markdown() {
  std::printf(
      "# Ops\n\nPrinted by `holdfast ops --markdown` from the op registry (`registry/`); a test "
      "compares the two. A call is written as in\nthe registry: inputs with their shapes (the "
      "kinds of inputs are in `registry/registry.h`), then named arguments. Each\nrow is run with "
      "all its samples, dtypes and layouts by the tests, and compared with MLX.\n");
  print_family(registry::Family::elementwise, "Element-wise");
  print_family(registry::Family::general, "Creation, shape, indexing, reductions, sort, random");
  print_family(registry::Family::products,
               "Products, convolutions, low-bit weights, Fourier transforms, linear algebra");
  std::printf(
      "\n## Where results differ from MLX on purpose\n\n| op | dtypes | reason |\n|---|---|---|\n");
  std::set<std::string> printed;
  for (const registry::Difference& row : registry::differences) {
    std::string line = "| `" + std::string(row.name) + "` | " +
                       (row.dtypes.empty() ? "all" : std::string(row.dtypes)) + " | " + row.reason +
                       " |\n";
    if (printed.insert(line).second) std::fputs(line.c_str(), stdout);
  }
}

}  // namespace

int run_ops(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--markdown") throw UsageError("unknown argument \"" + argument + "\"");
  }
  if (!arguments.empty()) {
    print_markdown();
    return 0;
  }
  for (const Row& row : registry::rows()) {
    std::printf("%-34s %s\n", row.name, dtypes_of(row).c_str());
  }
  return 0;
}

}  // namespace holdfast::tool
