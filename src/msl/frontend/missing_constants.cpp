#include "msl/frontend/missing_constants.h"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::msl {
namespace {

// Goes through functions and initial values, and notes the declarations that they lead to.
class References : public clang::RecursiveASTVisitor<References> {
 public:
  explicit References(const KernelSource& source) : source_(source) {}

  std::map<uint64_t, std::string> find(const clang::FunctionDecl& kernel) {
    reach(&kernel);
    while (!waiting_.empty()) {
      const clang::Decl* declaration = waiting_.back();
      waiting_.pop_back();
      variable_ = clang::dyn_cast<clang::VarDecl>(declaration);
      if (variable_ != nullptr) {
        TraverseStmt(const_cast<clang::Expr*>(variable_->getAnyInitializer()));
      } else {
        TraverseDecl(const_cast<clang::Decl*>(declaration));
      }
    }
    return std::move(found_);
  }

  // For the base class.
  static bool shouldVisitImplicitCode() { return true; }
  bool VisitDeclRefExpr(clang::DeclRefExpr* expression) {
    reach(expression->getDecl());
    return true;
  }
  bool VisitMemberExpr(clang::MemberExpr* expression) {
    reach(expression->getMemberDecl());
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* expression) {
    reach(expression->getConstructor());
    return true;
  }
  bool VisitExpr(clang::Expr* expression) {
    const auto* type = clang::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(
        expression->getType().isNull() ? nullptr : expression->getType()->getAsCXXRecordDecl());
    if (variable_ == nullptr || type == nullptr || type->getName() != "__hf_function_constant" ||
        type->getTemplateArgs().size() != 1 ||
        type->getTemplateArgs()[0].getKind() != clang::TemplateArgument::Integral) {
      return true;
    }
    const uint64_t index = type->getTemplateArgs()[0].getAsIntegral().getZExtValue();
    const bool is_given =
        std::any_of(source_.constants.begin(), source_.constants.end(),
                    [&](const FunctionConstant& constant) { return constant.index == index; });
    if (!is_given) found_.emplace(index, variable_->getNameAsString());
    return true;
  }

 private:
  void reach(const clang::Decl* declaration) {
    if (auto* function = clang::dyn_cast<clang::FunctionDecl>(declaration)) {
      declaration = function->getDefinition();
    } else if (auto* variable = clang::dyn_cast<clang::VarDecl>(declaration)) {
      if (!variable->hasGlobalStorage() || variable->getAnyInitializer() == nullptr) return;
      declaration = variable->getCanonicalDecl();
    } else {
      return;
    }
    if (declaration != nullptr && done_.insert(declaration).second) waiting_.push_back(declaration);
  }

  const KernelSource& source_;
  const clang::VarDecl* variable_ = nullptr;  // whose initial value is looked at
  std::vector<const clang::Decl*> waiting_;
  std::set<const clang::Decl*> done_;
  std::map<uint64_t, std::string> found_;
};

}  // namespace

std::vector<std::string> missing_constants_of(const clang::FunctionDecl& kernel,
                                              const KernelSource& source) {
  std::vector<std::string> names;
  for (const auto& [index, name] : References(source).find(kernel))
    names.push_back(name + " (" + std::to_string(index) + ")");
  return names;
}

}  // namespace holdfast::msl
