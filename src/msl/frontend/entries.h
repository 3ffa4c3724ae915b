// The kernels of a translation unit, and the function that a dispatch enters: a wrapper whose
// parameters are the buffers alone; it computes the thread attributes from our intrinsics and calls
// the kernel. The wrapper is C++ text, handed to clang when it has read the user's source (a pragma
// at the end), so that overloads, conversions and templates are clang's business.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msl/frontend/attributes.h"
#include "msl/frontend/diagnostics.h"
#include "msl/kernel_source.h"

namespace clang {
class CompilerInstance;
}

namespace holdfast::msl {

inline constexpr const char* entry_symbol = "__hf_entry";
// Which kernels get a wrapper: none (they are only listed), the one that the source asks for
// (entry_symbol), or each of them (entry_symbol and its number).
enum class Wrappers : uint8_t { none, selected, every };
// The line after the user's text.
inline constexpr const char* entries_pragma = "\n;\n#pragma __hf_entries\n";

struct Kernel {
  const clang::FunctionDecl* function = nullptr;
  KernelInterface interface;
  // Why it cannot be compiled, and where; reported when it is the one that is asked for.
  std::string problem;
  clang::SourceLocation problem_location;
};

// Called once per compilation, by the pragma.
class EntryBuilder {
 public:
  EntryBuilder(clang::CompilerInstance& compiler, const AttributeTable& attributes,
               Diagnostics& diagnostics, const KernelSource& source, Wrappers wrappers)
      : compiler_(compiler),
        attributes_(attributes),
        diagnostics_(diagnostics),
        source_(source),
        wrappers_(wrappers) {}

  // Adds the pragma's handler to the compiler's preprocessor.
  void install();

  // After the run.
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const Kernel* selected() const { return selected_; }
  bool was_reached() const { return was_reached_; }
  // Says which kernel was asked for and which there are, when none was selected.
  std::string missing_kernel() const;

  // For the handler.
  void reach();

 private:
  void describe(const clang::FunctionDecl* function);
  void describe_parameter(const clang::FunctionDecl* pattern, unsigned index, Kernel& kernel);
  void assign_slots(Kernel& kernel);
  void instantiate(const Kernel& kernel);
  void inject_wrapper(const Kernel& kernel, const std::string& symbol);

  clang::CompilerInstance& compiler_;
  const AttributeTable& attributes_;
  Diagnostics& diagnostics_;
  const KernelSource& source_;
  const Wrappers wrappers_;
  bool was_reached_ = false;
  bool has_templates_ = false;
  std::vector<Kernel> kernels_;
  const Kernel* selected_ = nullptr;
};

}  // namespace holdfast::msl
