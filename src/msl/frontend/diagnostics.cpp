#include "msl/frontend/diagnostics.h"

#include <clang/AST/DeclCXX.h>
#include <clang/AST/Type.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/Path.h>

#include <algorithm>

namespace holdfast::msl {
namespace {

constexpr size_t most_errors = 10, most_notes = 4, most_columns = 200;

// Names of ours that stand for words of the language.
void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

std::string in_words_of_metal(std::string message) {
  replace_all(message, "_Float16", "half");
  replace_all(message, "__bf16", "bfloat");
  replace_all(message, "'half' (aka 'half')", "'half'");
  replace_all(message, "'bfloat' (aka 'bfloat')", "'bfloat'");
  replace_all(message, "__global_device ", "constant ");
  replace_all(message, "__global ", "device ");
  replace_all(message, "__local ", "threadgroup ");
  replace_all(message, "__hf_double", "double");
  if (message.find("'half'") != std::string::npos &&
      message.find("'bfloat'") != std::string::npos &&
      message.find("cast from") != std::string::npos) {
    return message + ": convert to float in between";
  }
  // Parts of Metal that stay out, by the names that give them away.
  for (const char* word : {"'texture", "'depth2d", "'depthcube", "'sampler"}) {
    if (message.find(word) == std::string::npos) continue;
    return message + " (kernels cannot use textures and samplers here: pass a buffer)";
  }
  for (const char* word : {"MetalPerformancePrimitives", "'mpp'", "metal_tensor", "'tensor'"}) {
    if (message.find(word) == std::string::npos) continue;
    return message + " (MetalPerformancePrimitives and tensors are not available here)";
  }
  return message;
}

}  // namespace

void Diagnostics::HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                                   const clang::Diagnostic& diagnostic) {
  using Level = clang::DiagnosticsEngine::Level;
  DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
  if (level != Level::Error && level != Level::Fatal && level != Level::Note) return;
  if (level == Level::Note && entries_.empty()) return;
  llvm::SmallString<256> message;
  diagnostic.FormatDiagnostic(message);
  const clang::SourceManager* manager =
      diagnostic.hasSourceManager() ? &diagnostic.getSourceManager() : nullptr;
  Place place = locate(manager, diagnostic.getLocation());
  if (level == Level::Note) {
    entries_.back().notes.emplace_back(std::move(place), in_words_of_metal(message.str().str()));
  } else {
    entries_.push_back({std::move(place), in_words_of_metal(message.str().str()), {}});
    if (diagnostic.getID() == clang::diag::err_bad_cxx_cast_generic) note_refused_cast(diagnostic);
    if (diagnostic.getID() == clang::diag::err_typecheck_cond_incompatible_operands)
      note_refused_choice(diagnostic);
  }
}

// clang's arguments are the kind of cast and the two types; its ranges the cast and its operand.
void Diagnostics::note_refused_cast(const clang::Diagnostic& diagnostic) {
  if (!diagnostic.hasSourceManager() || diagnostic.getRanges().size() < 2) return;
  auto type = [&](unsigned argument) {
    return clang::QualType::getFromOpaquePtr(
        reinterpret_cast<void*>(diagnostic.getRawArg(argument)));
  };
  const bool mixes = (type(1)->isFloat16Type() && type(2)->isBFloat16Type()) ||
                     (type(1)->isBFloat16Type() && type(2)->isFloat16Type());
  if (mixes) note_operand(diagnostic.getSourceManager(), diagnostic.getRanges()[1]);
}

// `c ? x : y` of one class in two address spaces. clang's arguments are the two types; its ranges
// the operands.
void Diagnostics::note_refused_choice(const clang::Diagnostic& diagnostic) {
  if (!diagnostic.hasSourceManager() || diagnostic.getRanges().size() < 2) return;
  auto type = [&](unsigned argument) {
    return clang::QualType::getFromOpaquePtr(
        reinterpret_cast<void*>(diagnostic.getRawArg(argument)));
  };
  const clang::CXXRecordDecl* record = type(0)->getAsCXXRecordDecl();
  if (record == nullptr || type(1)->getAsCXXRecordDecl() != record) return;
  for (int operand : {0, 1})
    note_operand(diagnostic.getSourceManager(), diagnostic.getRanges()[operand]);
}

void Diagnostics::note_operand(const clang::SourceManager& manager,
                               clang::CharSourceRange operand) {
  clang::SourceLocation first = operand.getBegin(), last = operand.getEnd();
  // An operand that a macro writes is changed in the macro; where an argument of the macro is a
  // part of it, the parameter stands for the argument.
  if (manager.getFileID(first) != manager.getFileID(last)) {
    for (clang::SourceLocation* end : {&first, &last}) {
      while (manager.isMacroArgExpansion(*end)) {
        *end = manager.getImmediateExpansionRange(*end).getBegin();
      }
    }
    if (manager.getFileID(first) != manager.getFileID(last)) return;
  }
  first = manager.getSpellingLoc(first), last = manager.getSpellingLoc(last);
  const unsigned size = clang::Lexer::MeasureTokenLength(last, manager, clang::LangOptions());
  const auto [file, begin] = manager.getDecomposedLoc(first);
  const size_t end = manager.getFileOffset(last) + size;
  if (file != manager.getFileID(last) || begin >= end) return;
  const RewrittenText* text = nullptr;
  std::string path;
  if (file == manager.getMainFileID()) {
    text = &main_;
  } else if (auto entry = manager.getFileEntryRefForID(file)) {
    path = entry->getName().str();
    if (const KernelFiles::UserFile* user = files_.user_file(path)) text = &user->rewritten;
  }
  if (text == nullptr) return;
  refused_[path].insert({text->original(begin), text->original(end - 1) + 1});
}

bool Diagnostics::add_operands(CastOperands& met) const {
  bool has_new = false;
  for (const auto& [path, operands] : refused_) {
    for (const TextRange& operand : operands) {
      has_new = met[path].insert(operand).second || has_new;
    }
  }
  return has_new;
}

void Diagnostics::error(const clang::SourceManager& manager, clang::SourceLocation location,
                        const std::string& message) {
  entries_.push_back({locate(&manager, location), message, {}});
}

Diagnostics::Place Diagnostics::place_in(const std::string& name, llvm::StringRef text,
                                         size_t position) {
  position = std::min(position, text.size());
  Place place;
  place.kind = Place::Kind::user;
  place.name = name;
  const llvm::StringRef before = text.substr(0, position);
  place.line = before.count('\n') + 1;
  const size_t begin = before.rfind('\n') == llvm::StringRef::npos ? 0 : before.rfind('\n') + 1;
  place.column = position - begin + 1;
  place.source_line = text.substr(begin).split('\n').first.rtrim('\r').str();
  return place;
}

// A position of KernelSource::text. One outside the parts is shown at the end of what the user
// wrote before it, because that is where a brace or a semicolon is missing.
Diagnostics::Place Diagnostics::locate_in_text(size_t position) const {
  const llvm::StringRef text(source_.text);
  if (source_.parts.empty()) return place_in("source", text, position);
  const SourcePart* nearest = nullptr;
  for (const SourcePart& part : source_.parts) {
    bool is_inside = part.begin <= position && position < part.end;
    if (part.is_generated ? is_inside : part.begin <= position || nearest == nullptr)
      nearest = &part;
  }
  const llvm::StringRef content = text.substr(nearest->begin, nearest->end - nearest->begin);
  if (position < nearest->begin) return place_in(nearest->name, content, 0);
  size_t inside = std::min(position, nearest->end) - nearest->begin;
  if (position >= nearest->end) inside = content.rtrim().size();
  return place_in(nearest->name, content, inside);
}

Diagnostics::Place Diagnostics::locate(const clang::SourceManager* manager,
                                       clang::SourceLocation location) const {
  Place place;
  if (manager == nullptr || location.isInvalid()) return place;
  const auto [file, offset] = manager->getDecomposedLoc(manager->getFileLoc(location));
  if (file == manager->getMainFileID()) return locate_in_text(main_.original(offset));
  if (auto entry = manager->getFileEntryRefForID(file)) {
    if (const KernelFiles::UserFile* user = files_.user_file(entry->getName())) {
      return place_in(user->name, user->original, user->rewritten.original(offset));
    }
    place.kind = Place::Kind::prelude;
    place.name = llvm::sys::path::filename(entry->getName()).str();
  }
  return place;
}

// The word `name`, and no part of a longer one.
bool Diagnostics::names(llvm::StringRef line, llvm::StringRef name) {
  auto is_letter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = 0; (at = line.find(name, at)) != llvm::StringRef::npos; ++at) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_letter(line[at - 1])) && (end == line.size() || !is_letter(line[end])))
      return true;
  }
  return false;
}

// How the inputs that the line of an error names were declared, where that may be the reason.
std::string Diagnostics::about_inputs(const Place& place, const std::string& message) const {
  std::string notes;
  for (const DeclaredInput& input : source_.declared) {
    if (!names(place.source_line, input.name)) continue;
    const std::string start = "\nnote: input '" + input.name + "' has ";
    const std::string declared = " it is declared '" + input.declaration + "'";
    if (input.ndim == 0) {
      notes += start + "no dimensions:" + declared + ", a value that is used without [ ]";
    } else if (message.find("constant ") != std::string::npos) {
      notes += start + std::to_string(input.size) +
               (input.size == 1 ? " element, and fewer than 8:" : " elements, fewer than 8:") +
               declared + ", in constant memory" +
               (input.size == 1 ? "; its value is " + input.name + "[0]" : "");
    }
  }
  return notes;
}

std::string Diagnostics::text() const {
  std::string result = "[" + source_.kernel + "] ";
  auto position = [](const Place& place) {
    return place.name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
           ": ";
  };
  auto with_line = [](const Place& place) {
    std::string line = place.source_line.substr(0, most_columns), caret;
    if (place.column > most_columns) return std::string("\n  ") + line + " …";
    for (size_t i = 0; i + 1 < place.column; ++i) {
      caret += i < line.size() && line[i] == '\t' ? '\t' : ' ';
    }
    return "\n  " + line + "\n  " + caret + "^";
  };
  size_t count = 0;
  for (const Entry& entry : entries_) {
    if (count++ == most_errors) {
      result += "\n… and " + std::to_string(entries_.size() - most_errors) + " more errors";
      break;
    }
    if (count > 1) result += "\n";
    const Place* place = &entry.place;
    std::string where;
    // An error inside our headers is shown where the user's text led to it.
    if (place->kind != Place::Kind::user) {
      if (place->kind == Place::Kind::prelude) where = " (in <" + place->name + ">)";
      for (const auto& [note_place, note] : entry.notes) {
        if (note_place.kind == Place::Kind::user) {
          place = &note_place;
          break;
        }
      }
    }
    if (place->kind == Place::Kind::user) {
      result += position(*place) + "error: " + entry.message + where + with_line(*place) +
                about_inputs(*place, entry.message);
    } else {
      result += "error: " + entry.message + where;
    }
    size_t notes = 0;
    for (const auto& [note_place, note] : entry.notes) {
      if (&note_place == place || notes == most_notes) continue;
      ++notes;
      if (note_place.kind == Place::Kind::user) {
        result += "\n" + position(note_place) + "note: " + note;
      } else if (note_place.kind == Place::Kind::prelude) {
        result += "\nnote: " + note + " (in <" + note_place.name + ">)";
      } else {
        result += "\nnote: " + note;
      }
    }
  }
  return result;
}

}  // namespace holdfast::msl
