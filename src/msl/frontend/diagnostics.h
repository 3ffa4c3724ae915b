// What clang has to say about the user's text, as the user wrote it: positions go back through the
// token pass to `header:line:column`, `body:line:column` or `file:line:column`.
#pragma once

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceLocation.h>

#include <string>
#include <vector>

#include "msl/frontend/files.h"
#include "msl/frontend/token_pass.h"
#include "msl/kernel_source.h"

namespace holdfast::msl {

class Diagnostics : public clang::DiagnosticConsumer {
 public:
  Diagnostics(const KernelSource& source, const RewrittenText& main, const KernelFiles& files)
      : source_(source), main_(main), files_(files) {}

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& diagnostic) override;

  // An error of our own.
  void error(const clang::SourceManager& manager, clang::SourceLocation location,
             const std::string& message);
  bool has_errors() const { return !entries_.empty(); }
  // Adds the operands of casts between half and bfloat, and of choices between one class in two
  // address spaces, that clang refused; false when there is none that `met` does not have yet.
  bool add_operands(CastOperands& met) const;
  // All errors: "[kernel] body:3:7: error: …", the line, a caret, notes.
  std::string text() const;

 private:
  struct Place {
    enum class Kind { none, user, prelude };
    Kind kind = Kind::none;
    std::string name;  // "body", a file, or the header of the prelude
    size_t line = 0, column = 0;
    std::string source_line;
  };
  struct Entry {
    Place place;
    std::string message;
    std::vector<std::pair<Place, std::string>> notes;
  };

  void note_refused_cast(const clang::Diagnostic& diagnostic);
  void note_refused_choice(const clang::Diagnostic& diagnostic);
  void note_operand(const clang::SourceManager& manager, clang::CharSourceRange operand);
  Place locate(const clang::SourceManager* manager, clang::SourceLocation location) const;
  Place locate_in_text(size_t position) const;
  static bool names(llvm::StringRef line, llvm::StringRef name);
  std::string about_inputs(const Place& place, const std::string& message) const;
  static Place place_in(const std::string& name, llvm::StringRef text, size_t position);

  const KernelSource& source_;
  const RewrittenText& main_;
  const KernelFiles& files_;
  std::vector<Entry> entries_;
  CastOperands refused_;
};

}  // namespace holdfast::msl
