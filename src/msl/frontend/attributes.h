// Metal's attributes as clang sees them: the token pass writes [[buffer(0)]] as
// __attribute__((holdfast("buffer",0))), and our handler, registered with clang, records it here.
// `threadgroup` and `constant` carry a second one,
// __attribute__((holdfast_static)), which gives a local variable in such a space static storage
// before clang refuses it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace clang {
class Decl;
class FunctionDecl;
}  // namespace clang

namespace holdfast::msl {

struct MetalAttribute {
  std::string name;
  std::string text;       // a string argument
  int64_t number = -1;    // an integer argument
  unsigned location = 0;  // raw clang::SourceLocation
};

// What one compilation has seen.
class AttributeTable {
 public:
  void add(const clang::Decl* declaration, MetalAttribute attribute);
  // Kernels in the order of their declarations: definitions, templates and explicit instantiations
  // alike.
  const std::vector<const clang::FunctionDecl*>& kernels() const { return kernels_; }
  // Attributes of `declaration` itself; none for a declaration that has none.
  const std::vector<MetalAttribute>& of(const clang::Decl* declaration) const;
  const MetalAttribute* find(const clang::Decl* declaration, const std::string& name) const;

 private:
  std::map<const clang::Decl*, std::vector<MetalAttribute>> attributes_;
  std::vector<const clang::FunctionDecl*> kernels_;
};

// While it lives, attributes that clang reads on this thread go to `table`.
class AttributeScope {
 public:
  explicit AttributeScope(AttributeTable& table);
  ~AttributeScope();
  AttributeScope(const AttributeScope&) = delete;
  AttributeScope& operator=(const AttributeScope&) = delete;

 private:
  AttributeTable* previous_;
};

}  // namespace holdfast::msl
