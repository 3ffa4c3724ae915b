#include "msl/frontend/attributes.h"

#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Expr.h>
#include <clang/Sema/ParsedAttr.h>
#include <clang/Sema/Sema.h>

#include <algorithm>

namespace holdfast::msl {
namespace {

thread_local AttributeTable* current_table = nullptr;

// __attribute__((holdfast("name", argument)))
struct MetalAttributeHandler : clang::ParsedAttrInfo {
  MetalAttributeHandler() {
    static constexpr Spelling spellings[] = {{clang::ParsedAttr::AS_GNU, "holdfast"}};
    Spellings = spellings;
    NumArgs = 1;
    OptArgs = 15;
  }
  AttrHandling handleDeclAttribute(clang::Sema& sema, clang::Decl* declaration,
                                   const clang::ParsedAttr& parsed) const override {
    if (current_table == nullptr || !parsed.isArgExpr(0)) return AttributeNotApplied;
    MetalAttribute attribute;
    attribute.location = parsed.getLoc().getRawEncoding();
    if (auto* name =
            clang::dyn_cast<clang::StringLiteral>(parsed.getArgAsExpr(0)->IgnoreParenImpCasts())) {
      attribute.name = name->getString().str();
    }
    if (parsed.getNumArgs() > 1 && parsed.isArgExpr(1)) {
      clang::Expr* argument = parsed.getArgAsExpr(1)->IgnoreParenImpCasts();
      if (auto* text = clang::dyn_cast<clang::StringLiteral>(argument)) {
        attribute.text = text->getString().str();
      } else if (!argument->isValueDependent()) {
        if (auto value = argument->getIntegerConstantExpr(sema.getASTContext())) {
          attribute.number = value->getExtValue();
        }
      }
    }
    current_table->add(declaration, std::move(attribute));
    return AttributeApplied;
  }
};

// __attribute__((holdfast_static)), after opencl_local or opencl_global_device
struct StaticHandler : clang::ParsedAttrInfo {
  StaticHandler() {
    static constexpr Spelling spellings[] = {{clang::ParsedAttr::AS_GNU, "holdfast_static"}};
    Spellings = spellings;
  }
  AttrHandling handleDeclAttribute(clang::Sema&, clang::Decl* declaration,
                                   const clang::ParsedAttr&) const override {
    auto* variable = clang::dyn_cast<clang::VarDecl>(declaration);
    if (variable == nullptr || clang::isa<clang::ParmVarDecl>(variable)) return AttributeApplied;
    // A pointer to such a space is an ordinary variable.
    const bool is_in_space = variable->getType().getAddressSpace() != clang::LangAS::Default;
    if (is_in_space && variable->isLocalVarDecl() &&
        variable->getStorageClass() == clang::SC_None) {
      variable->setStorageClass(clang::SC_Static);
    }
    return AttributeApplied;
  }
};

clang::ParsedAttrInfoRegistry::Add<MetalAttributeHandler> metal_attribute_handler(
    "holdfast", "an attribute of the Metal Shading Language");
clang::ParsedAttrInfoRegistry::Add<StaticHandler> static_handler(
    "holdfast_static", "a local variable in threadgroup or constant memory");

}  // namespace

void AttributeTable::add(const clang::Decl* declaration, MetalAttribute attribute) {
  if (attribute.name == "kernel" || attribute.name == "host_name") {
    auto* function = clang::dyn_cast<clang::FunctionDecl>(declaration);
    if (auto* pattern = clang::dyn_cast<clang::FunctionTemplateDecl>(declaration)) {
      function = pattern->getTemplatedDecl();
    }
    if (function != nullptr &&
        std::find(kernels_.begin(), kernels_.end(), function) == kernels_.end()) {
      kernels_.push_back(function);
    }
  }
  attributes_[declaration].push_back(std::move(attribute));
}

const std::vector<MetalAttribute>& AttributeTable::of(const clang::Decl* declaration) const {
  static const std::vector<MetalAttribute> none;
  auto found = attributes_.find(declaration);
  return found == attributes_.end() ? none : found->second;
}

const MetalAttribute* AttributeTable::find(const clang::Decl* declaration,
                                           const std::string& name) const {
  for (const MetalAttribute& attribute : of(declaration)) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

AttributeScope::AttributeScope(AttributeTable& table) : previous_(current_table) {
  current_table = &table;
}
AttributeScope::~AttributeScope() { current_table = previous_; }

}  // namespace holdfast::msl
