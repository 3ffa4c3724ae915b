#include "msl/frontend/entries.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Lex/Lexer.h>
#include <clang/Lex/Pragma.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Sema/Sema.h>

#include <algorithm>
#include <map>
#include <set>

#include "msl/frontend/token_pass.h"

namespace holdfast::msl {
namespace {

constexpr const char* kernel_placeholder = "__hf_the_kernel";

class EntriesPragma : public clang::PragmaHandler {
 public:
  explicit EntriesPragma(EntryBuilder& builder)
      : PragmaHandler("__hf_entries"), builder_(builder) {}
  void HandlePragma(clang::Preprocessor& preprocessor, clang::PragmaIntroducer,
                    clang::Token&) override {
    // The line has to be over before other tokens are entered.
    preprocessor.DiscardUntilEndOfDirective();
    builder_.reach();
  }

 private:
  EntryBuilder& builder_;
};

// C++ for one component of a thread attribute.
std::string attribute_value(const std::string& name, int axis) {
  const std::string a = "(" + std::to_string(axis) + ")";
  const std::string threads =
      "(__hf_threads_per_threadgroup(0)*__hf_threads_per_threadgroup(1)*"
      "__hf_threads_per_threadgroup(2))";
  const std::string dispatched =
      "(__hf_dispatch_threads_per_threadgroup(0)*__hf_dispatch_threads_per_threadgroup(1)*"
      "__hf_dispatch_threads_per_threadgroup(2))";
  const std::string index =
      "(__hf_thread_position_in_threadgroup(0)+__hf_threads_per_threadgroup(0)*("
      "__hf_thread_position_in_threadgroup(1)+__hf_threads_per_threadgroup(1)*"
      "__hf_thread_position_in_threadgroup(2)))";
  if (name == "thread_position_in_grid") {
    return "(__hf_threadgroup_position_in_grid" + a + "*__hf_dispatch_threads_per_threadgroup" + a +
           "+__hf_thread_position_in_threadgroup" + a + ")";
  }
  if (name == "grid_size") return "__hf_threads_per_grid" + a;
  if (name == "grid_origin") return "0u";
  if (name == "thread_execution_width" || name == "threads_per_simdgroup") return "32u";
  if (name == "thread_index_in_threadgroup") return index;
  if (name == "thread_index_in_quadgroup") return "(__hf_thread_index_in_simdgroup()&3u)";
  if (name == "quadgroup_index_in_threadgroup") {
    return "(__hf_simdgroup_index_in_threadgroup()*8u+(__hf_thread_index_in_simdgroup()>>2))";
  }
  if (name == "quadgroups_per_threadgroup") return "((" + threads + "+3u)/4u)";
  if (name == "dispatch_quadgroups_per_threadgroup") return "((" + dispatched + "+3u)/4u)";
  if (name == "dispatch_simdgroups_per_threadgroup") return "((" + dispatched + "+31u)/32u)";
  if (name == "thread_index_in_simdgroup" || name == "simdgroup_index_in_threadgroup" ||
      name == "simdgroups_per_threadgroup") {
    return "__hf_" + name + "()";
  }
  return "__hf_" + name + a;  // the others are rows of intrinsics.def by axis
}

// The number of components of a thread attribute's type: 1 for an integer, N for vec<T,N> of
// integers, 0 for what it cannot be.
int components(clang::QualType type) {
  type = type.getCanonicalType();
  if (type->isIntegerType()) return 1;
  const auto* record = type->getAsCXXRecordDecl();
  const auto* vector =
      record != nullptr ? clang::dyn_cast<clang::ClassTemplateSpecializationDecl>(record) : nullptr;
  if (vector == nullptr || vector->getName() != "vec") return 0;
  const auto& arguments = vector->getTemplateArgs();
  if (arguments.size() < 2 || arguments[0].getKind() != clang::TemplateArgument::Type ||
      arguments[1].getKind() != clang::TemplateArgument::Integral ||
      !arguments[0].getAsType()->isIntegerType()) {
    return 0;
  }
  const int64_t count = arguments[1].getAsIntegral().getExtValue();
  return count >= 1 && count <= 4 ? static_cast<int>(count) : 0;
}

// The declaration that carries the attributes as written: the template's own for a specialisation.
const clang::FunctionDecl* pattern_of(const clang::FunctionDecl* function) {
  if (const clang::FunctionDecl* pattern = function->getTemplateInstantiationPattern()) {
    return pattern;
  }
  const clang::FunctionDecl* definition = function->getDefinition();
  return definition != nullptr ? definition : function;
}

// How an argument is named in errors: textures and samplers by that name.
bool is_texture(const std::string& type) {
  return type.find("texture") != std::string::npos || type.find("sampler") != std::string::npos ||
         type.find("depth2d") != std::string::npos;
}

}  // namespace

void EntryBuilder::install() {
  clang::Preprocessor& preprocessor = compiler_.getPreprocessor();
  preprocessor.AddPragmaHandler(new EntriesPragma(*this));
  // `#pragma clang __debug` prints, or ends the process: it does nothing here.
  preprocessor.AddPragmaHandler("clang", new clang::EmptyPragmaHandler("__debug"));
}

void EntryBuilder::reach() {
  clang::Sema& sema = compiler_.getSema();
  // Inside braces that the user left open: clang reports them at the end.
  if (was_reached_ || !sema.CurContext->isTranslationUnit()) return;
  if (compiler_.getDiagnostics().hasErrorOccurred()) return;
  was_reached_ = true;
  for (const clang::FunctionDecl* function : attributes_.kernels()) describe(function);
  for (const Kernel& kernel : kernels_) {
    if (kernel.interface.entry == source_.entry ||
        (source_.entry.empty() && kernels_.size() == 1)) {
      selected_ = &kernel;
    }
  }
  auto wrap = [&](const Kernel& kernel, const std::string& symbol) {
    if (kernel.problem.empty()) {
      instantiate(kernel);
      return inject_wrapper(kernel, symbol);
    }
    diagnostics_.error(compiler_.getSourceManager(), kernel.problem_location, kernel.problem);
  };
  if (wrappers_ == Wrappers::selected && selected_ != nullptr) wrap(*selected_, entry_symbol);
  if (wrappers_ == Wrappers::every) {
    for (size_t i = 0; i < kernels_.size(); ++i)
      wrap(kernels_[i], entry_symbol + std::to_string(i));
  }
}

void EntryBuilder::describe(const clang::FunctionDecl* function) {
  if (function->getDescribedFunctionTemplate() != nullptr) {
    has_templates_ = true;
    return;
  }
  const clang::FunctionDecl* pattern = pattern_of(function);
  Kernel kernel;
  kernel.function = function;
  const MetalAttribute* host_name = attributes_.find(function, "host_name");
  if (host_name == nullptr) host_name = attributes_.find(pattern, "host_name");
  kernel.interface.entry = host_name != nullptr ? host_name->text : function->getNameAsString();
  for (const Kernel& other : kernels_) {
    if (other.function->getCanonicalDecl() == function->getCanonicalDecl()) return;
  }
  if (!pattern->hasBody()) return;
  if (!function->getReturnType()->isVoidType()) {
    kernel.problem = "kernel '" + kernel.interface.entry + "' must return void";
    kernel.problem_location = function->getLocation();
  }
  for (const clang::FunctionDecl* from : {pattern, function}) {
    const MetalAttribute* most = attributes_.find(from, "max_total_threads_per_threadgroup");
    if (most != nullptr && most->number > 0) {
      kernel.interface.max_threads = static_cast<uint32_t>(std::min<int64_t>(1024, most->number));
    }
  }
  for (unsigned i = 0; i < function->getNumParams(); ++i) describe_parameter(pattern, i, kernel);
  assign_slots(kernel);
  kernels_.push_back(std::move(kernel));
}

// Buffers without a number take the free ones in order, as Metal does.
void EntryBuilder::assign_slots(Kernel& kernel) {
  std::map<bool, std::set<uint32_t>> taken;  // by whether it is threadgroup memory
  auto used = [&](const KernelArgument& argument) -> std::set<uint32_t>& {
    return taken[argument.kind == KernelArgument::Kind::threadgroup];
  };
  for (const KernelArgument& argument : kernel.interface.arguments) {
    if (argument.slot == UINT32_MAX || used(argument).insert(argument.slot).second) continue;
    kernel.problem = "argument '" + argument.name + "' of kernel '" + kernel.interface.entry +
                     "' has the number " + std::to_string(argument.slot) + " of an earlier one";
    kernel.problem_location = kernel.function->getLocation();
  }
  for (KernelArgument& argument : kernel.interface.arguments) {
    if (argument.slot != UINT32_MAX) continue;
    argument.slot = 0;
    while (!used(argument).insert(argument.slot).second) ++argument.slot;
  }
}

void EntryBuilder::describe_parameter(const clang::FunctionDecl* pattern, unsigned index,
                                      Kernel& kernel) {
  const clang::ParmVarDecl* parameter = kernel.function->getParamDecl(index);
  const clang::ParmVarDecl* written =
      index < pattern->getNumParams() ? pattern->getParamDecl(index) : parameter;
  const clang::QualType type = parameter->getType();
  const std::string name = parameter->getNameAsString();
  auto fail = [&](const std::string& message) {
    if (!kernel.problem.empty()) return;
    kernel.problem =
        "parameter '" + name + "' of kernel '" + kernel.interface.entry + "' " + message;
    kernel.problem_location = written->getLocation();
  };
  auto fail_type = [&](const std::string& message) {
    fail(message + ", not '" + type.getAsString(compiler_.getASTContext().getPrintingPolicy()) +
         "'");
  };
  for (const MetalAttribute& attribute : attributes_.of(written)) {
    if (!is_thread_attribute(attribute.name)) continue;
    if (components(type) == 0) {
      return fail_type("is [[" + attribute.name +
                       "]] and must be an integer or a vector of integers");
    }
    kernel.interface.attributes.push_back(attribute.name);
    return;
  }
  if (is_texture(type.getAsString())) {
    return fail("is a texture or a sampler, which kernels cannot use here: pass a buffer");
  }
  const clang::QualType pointee = type->getPointeeType();
  if (pointee.isNull()) {
    return fail_type("must be a buffer or have a thread attribute");
  }
  KernelArgument argument;
  argument.name = name;
  switch (pointee.getAddressSpace()) {
    case clang::LangAS::sycl_global:
    case clang::LangAS::opencl_global:
      argument.kind = KernelArgument::Kind::device;
      break;
    case clang::LangAS::sycl_global_device:
    case clang::LangAS::opencl_global_device:
      argument.kind = KernelArgument::Kind::constant;
      break;
    case clang::LangAS::sycl_local:
    case clang::LangAS::opencl_local:
      argument.kind = KernelArgument::Kind::threadgroup;
      break;
    default:
      return fail_type("must point to device, constant or threadgroup memory");
  }
  argument.written = argument.kind != KernelArgument::Kind::constant && !pointee.isConstQualified();
  if (!pointee->isIncompleteType() && !pointee->isFunctionType()) {
    const clang::ASTContext& context = compiler_.getASTContext();
    argument.element_size =
        static_cast<uint32_t>(context.getTypeSizeInChars(pointee).getQuantity());
    argument.alignment = static_cast<uint32_t>(context.getTypeAlignInChars(pointee).getQuantity());
  }
  const char* number =
      argument.kind == KernelArgument::Kind::threadgroup ? "threadgroup" : "buffer";
  argument.slot = UINT32_MAX;
  if (const MetalAttribute* slot = attributes_.find(written, number)) {
    if (slot->number < 0 || slot->number > 30) {
      return fail(std::string("has [[") + number + "(n)]] with an n that is not between 0 and 30");
    }
    argument.slot = static_cast<uint32_t>(slot->number);
  }
  kernel.interface.arguments.push_back(std::move(argument));
}

// The token pass makes declarations of explicit instantiations.
void EntryBuilder::instantiate(const Kernel& kernel) {
  auto* function = const_cast<clang::FunctionDecl*>(kernel.function);
  if (function->getTemplateSpecializationKind() != clang::TSK_ExplicitInstantiationDeclaration)
    return;
  const clang::SourceLocation location = function->getPointOfInstantiation();
  function->setTemplateSpecializationKind(clang::TSK_ExplicitInstantiationDefinition, location);
  compiler_.getSema().InstantiateFunctionDefinition(location, function, false, true);
}

// extern "C" void __hf_entry(<buffers>) { <kernel>(<buffers and attributes>); }
// The kernel is not named: a token stands for clang's own expression for it, so that a template
// specialisation with any arguments can be called.
void EntryBuilder::inject_wrapper(const Kernel& kernel, const std::string& symbol) {
  const clang::FunctionDecl* pattern = pattern_of(kernel.function);
  std::string parameters, arguments;
  for (unsigned i = 0; i < kernel.function->getNumParams(); ++i) {
    const std::string type =
        "__hf_parameter<" + std::to_string(i) + ",decltype(" + kernel_placeholder + ")>";
    const std::string name = "p" + std::to_string(i);
    std::string value;
    for (const MetalAttribute& attribute : attributes_.of(pattern->getParamDecl(i))) {
      if (!is_thread_attribute(attribute.name)) continue;
      const int count = components(kernel.function->getParamDecl(i)->getType());
      value = type + "(";
      for (int axis = 0; axis < count; ++axis) {
        // The fourth component of a wide attribute does not exist.
        value += (axis > 0 ? "," : "") +
                 (axis < 3 ? attribute_value(attribute.name, axis) : std::string("0u"));
      }
      value += ")";
      break;
    }
    if (value.empty()) {
      parameters += (parameters.empty() ? "" : ",") + type + " " + name;
      value = name;
    }
    arguments += (i > 0 ? "," : "") + value;
  }
  const std::string text = "extern \"C\" void " + symbol + "(" + parameters + "){" +
                           kernel_placeholder + "(" + arguments + ");}";

  clang::Preprocessor& preprocessor = compiler_.getPreprocessor();
  clang::SourceManager& manager = compiler_.getSourceManager();
  clang::Sema& sema = compiler_.getSema();
  const clang::FileID file =
      manager.createFileID(llvm::MemoryBuffer::getMemBufferCopy(text, "<kernel entry>"));
  clang::Lexer lexer(file, manager.getBufferOrFake(file), manager, compiler_.getLangOpts());
  auto* function = const_cast<clang::FunctionDecl*>(kernel.function);
  std::vector<clang::Token> tokens;
  for (clang::Token token;;) {
    lexer.LexFromRawLexer(token);
    if (token.is(clang::tok::eof)) break;
    if (token.is(clang::tok::raw_identifier)) {
      if (token.getRawIdentifier() == kernel_placeholder) {
        const clang::SourceLocation location = token.getLocation();
        sema.MarkFunctionReferenced(location, function);
        clang::ExprResult reference =
            sema.BuildDeclRefExpr(function, function->getType(), clang::VK_LValue, location);
        token.startToken();
        token.setKind(clang::tok::annot_primary_expr);
        token.setLocation(location);
        token.setAnnotationEndLoc(location);
        token.setAnnotationValue(reference.getAsOpaquePointer());
      } else {
        preprocessor.LookUpIdentifierInfo(token);
      }
    }
    tokens.push_back(token);
  }
  auto stream = std::make_unique<clang::Token[]>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), stream.get());
  preprocessor.EnterTokenStream(std::move(stream), tokens.size(), true, false);
}

std::string EntryBuilder::missing_kernel() const {
  std::string names;
  for (const Kernel& kernel : kernels_) {
    names += (names.empty() ? "'" : ", '") + kernel.interface.entry + "'";
  }
  if (kernels_.empty()) {
    return has_templates_
               ? "the source has kernel templates but no instantiation with a [[host_name(…)]]"
               : "the source has no kernel function";
  }
  if (source_.entry.empty()) return "the source has several kernels, name one of " + names;
  return "the source has no kernel '" + source_.entry + "', it has " + names;
}

}  // namespace holdfast::msl
