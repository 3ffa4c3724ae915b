#include "msl/frontend/limits.h"

#include <clang/Frontend/CompilerInstance.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Sema/Sema.h>
#include <clang/Sema/TemplateInstCallback.h>

#include <string>

#include "msl/frontend/guard.h"

namespace holdfast::msl {
namespace {

// Each is reached within a second or two, and far from what kernels that people write come to.
constexpr uint64_t most_tokens = 4'000'000, most_files = 5'000, most_instantiations = 400'000;

// The way to a private member of Lexer that C++ leaves open: an explicit instantiation may name it.
template <auto member>
struct ReachLexer {
  friend void cut_off(clang::Lexer& lexer) { (lexer.*member)(); }
};
template struct ReachLexer<&clang::Lexer::cutOffLexing>;
void cut_off(clang::Lexer& lexer);

// Reports an error at `location`; with those before it, it is the end of the compilation.
[[noreturn]] void refuse(Diagnostics& diagnostics, const clang::SourceManager& manager,
                         clang::SourceLocation location, const std::string& what) {
  diagnostics.error(manager, location, what);
  give_up(CompileError(diagnostics.text()));
}

std::string more_than(uint64_t count, const char* things) {
  return "the source has more than " + std::to_string(count) + " " + things;
}

class CountFiles : public clang::PPCallbacks {
 public:
  CountFiles(Diagnostics& diagnostics, const clang::SourceManager& manager)
      : diagnostics_(diagnostics), manager_(manager) {}
  void FileChanged(clang::SourceLocation location, FileChangeReason reason,
                   clang::SrcMgr::CharacteristicKind, clang::FileID) override {
    if (reason == EnterFile && ++count_ > most_files)
      refuse(diagnostics_, manager_, location, more_than(most_files, "inclusions of files"));
  }

 private:
  Diagnostics& diagnostics_;
  const clang::SourceManager& manager_;
  uint64_t count_ = 0;
};

class CountInstantiations : public clang::TemplateInstantiationCallback {
 public:
  explicit CountInstantiations(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  void initialize(const clang::Sema&) override {}
  void finalize(const clang::Sema&) override {}
  void atTemplateBegin(const clang::Sema& sema,
                       const clang::Sema::CodeSynthesisContext& context) override {
    if (++count_ > most_instantiations) {
      refuse(diagnostics_, sema.getSourceManager(), context.PointOfInstantiation,
             more_than(most_instantiations, "instantiations of templates"));
    }
  }
  void atTemplateEnd(const clang::Sema&, const clang::Sema::CodeSynthesisContext&) override {}

 private:
  Diagnostics& diagnostics_;
  uint64_t count_ = 0;
};

// Counts tokens, and finds what makes an expression or a type for each element of a range before
// anything could count them: `[first ... last] =`, GNU's designator, and clang's own list of so
// many integers (the library's make_index_sequence has a bound).
class TokenWatcher {
 public:
  TokenWatcher(Diagnostics& diagnostics, clang::Preprocessor& preprocessor)
      : diagnostics_(diagnostics),
        preprocessor_(preprocessor),
        manager_(preprocessor.getSourceManager()),
        sequence_(preprocessor.getIdentifierInfo("__make_integer_seq")) {}
  void operator()(const clang::Token& token) {
    const clang::SourceLocation location = token.getLocation();
    if (++count_ > most_tokens)
      refuse(diagnostics_, manager_, location, more_than(most_tokens, "tokens"));
    // clang would read on after as many errors as are reported, and take a time for each more that
    // grows with their number: the rest of every file is left out.
    if (preprocessor_.getDiagnostics().hasFatalErrorOccurred()) {
      if (auto* lexer = static_cast<clang::Lexer*>(preprocessor_.getCurrentLexer()))
        cut_off(*lexer);
    }
    using namespace clang::tok;
    if (has_ellipsis_ && brackets_ > 0 && !token.isOneOf(r_square, comma, r_paren, identifier)) {
      refuse(diagnostics_, manager_, location,
             "designators of ranges are not part of the language");
    }
    if (token.is(identifier) && token.getIdentifierInfo() == sequence_ && !is_ours(location))
      refuse(diagnostics_, manager_, location, "use of undeclared identifier '__make_integer_seq'");
    has_ellipsis_ = token.is(ellipsis);
    if (token.is(l_square)) ++brackets_;
    if (token.is(r_square) && brackets_ > 0) --brackets_;
    if (token.isOneOf(semi, l_brace)) brackets_ = 0;
  }

 private:
  // In a header of the library that is read as text.
  bool is_ours(clang::SourceLocation location) const {
    return manager_.getFilename(manager_.getSpellingLoc(location)).starts_with(include_folder);
  }

  Diagnostics& diagnostics_;
  clang::Preprocessor& preprocessor_;
  const clang::SourceManager& manager_;
  const clang::IdentifierInfo* sequence_;
  uint64_t count_ = 0;
  unsigned brackets_ = 0;
  bool has_ellipsis_ = false;
};

}  // namespace

void limit_preprocessor(clang::CompilerInstance& compiler, Diagnostics& diagnostics) {
  clang::Preprocessor& preprocessor = compiler.getPreprocessor();
  preprocessor.addPPCallbacks(
      std::make_unique<CountFiles>(diagnostics, preprocessor.getSourceManager()));
  preprocessor.setTokenWatcher(TokenWatcher(diagnostics, preprocessor));
}

void limit_templates(clang::Sema& sema, Diagnostics& diagnostics) {
  sema.TemplateInstCallbacks.push_back(std::make_unique<CountInstantiations>(diagnostics));
}

}  // namespace holdfast::msl
