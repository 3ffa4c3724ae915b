#include "msl/frontend/token_pass.h"

#include <algorithm>
#include <array>

#include "msl/frontend/lexer.h"

namespace holdfast::msl {
namespace {

using Kind = SourceToken::Kind;

constexpr std::array thread_attributes = {
    "dispatch_quadgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "grid_origin",
    "grid_size",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "thread_execution_width",
    "thread_index_in_quadgroup",
    "thread_index_in_simdgroup",
    "thread_index_in_threadgroup",
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "threads_per_grid",
    "threads_per_simdgroup",
    "threads_per_threadgroup",
};

// Attributes of Metal beside those of threads. Those of graphics are here so that they are ours to
// refuse.
constexpr std::array other_attributes = {
    "kernel",       "host_name",
    "buffer",       "threadgroup",
    "texture",      "sampler",
    "stage_in",     "function_constant",
    "id",           "max_total_threads_per_threadgroup",
    "visible",      "stitchable",
    "intersection", "early_fragment_tests",
    "vertex",       "fragment",
    "object",       "mesh",
    "position",     "color",
    "attribute",    "user",
    "vertex_id",    "instance_id",
    "flat",         "raster_order_group",
    "imageblock",   "payload",
};

bool is_metal_attribute(std::string_view name) {
  return is_thread_attribute(name) || std::find(other_attributes.begin(), other_attributes.end(),
                                                name) != other_attributes.end();
}

bool is_address_space(std::string_view word) {
  return word == "device" || word == "constant" || word == "threadgroup" || word == "thread";
}

class Rewriter {
 public:
  Rewriter(std::string_view source, const std::vector<FunctionConstant>& constants)
      : source_(source), tokens_(lex(source)), constants_(constants) {}

  RewrittenText run(const std::set<TextRange>& met) {
    for (size_t i = 0; i < tokens_.size();) i = visit(i);
    for (const TextRange& operand : met) meet(operand);
    return apply();
  }

 private:
  struct Edit {
    size_t begin, end;
    std::string text;
  };

  std::string_view text(size_t i) const {
    if (i >= tokens_.size()) return {};
    return source_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin);
  }
  bool is_kind(size_t i, Kind kind) const { return i < tokens_.size() && tokens_[i].kind == kind; }
  void replace(size_t begin, size_t end, std::string text) {
    auto place = std::upper_bound(edits_.begin(), edits_.end(), begin,
                                  [](size_t at, const Edit& edit) { return at < edit.begin; });
    edits_.insert(place, {begin, end, std::move(text)});
  }
  void remove(size_t i) { replace(tokens_[i].begin, tokens_[i].end, ""); }
  // The index after the bracket that closes the one at `i`; the number of tokens when none does
  // (or none near by: text full of open brackets must not take quadratic time).
  size_t after_closing(size_t i, size_t limit = 4096) const {
    int depth = 0;
    const size_t end = std::min(tokens_.size(), i + limit);
    for (size_t j = i; j < end; ++j) {
      const std::string_view t = text(j);
      if (tokens_[j].kind != Kind::punctuation) continue;
      if (t == "(" || t == "[" || t == "{") ++depth;
      if ((t == ")" || t == "]" || t == "}") && --depth == 0) return j + 1;
    }
    return tokens_.size();
  }

  size_t visit(size_t i) {
    const std::string_view t = text(i);
    switch (tokens_[i].kind) {
      case Kind::number:
        number(i);
        return i + 1;
      case Kind::directive:
        if (t.ends_with("pragma")) pragma(i);
        // clang 19 can crash on it.
        if (t.ends_with("embed")) {
          replace(tokens_[i].begin, tokens_[i].end, "#error #embed is not part of the language:");
        }
        return i + 1;
      case Kind::name:
        if (t == "is_function_constant_defined") return defined_query(i);
        if (t == "template") explicit_instantiation(i);
        if (t == "struct" || t == "class" || t == "union") class_name(i);
        if (t == "coherent" && text(i + 1) == "(" && text(i + 3) == ")") {
          for (size_t j = i; j < i + 4; ++j) remove(j);
          return i + 4;
        }
        if (depth_ > 0 && is_address_space(t)) array_parameter(i);
        return i + 1;
      case Kind::punctuation:
        break;
      default:
        return i + 1;
    }
    if (t == "[" && text(i + 1) == "[") return attribute_list(i);
    if (t == "(") ++depth_;
    if (t == ")") {
      depth_ = std::max(0, depth_ - 1);
      if (i > class_at_) declared_class_ = {};
      return member_space(i);
    }
    if (t == "{") {
      // Parentheses do not reach through braces, except those of a lambda or a statement in a call.
      depths_.push_back(depth_);
      depth_ = 0;
      members_.push_back({declared_class_, {}});
      declared_class_ = {};
    }
    if (t == "}" && !depths_.empty()) {
      depth_ = depths_.back();
      depths_.pop_back();
      members_.pop_back();
    }
    if (t == ";" || t == "=") declared_class_ = {};
    return i + 1;
  }

  // `template [[host_name("f_float")]] …`: declares the kernel, and instantiates it only when it is
  // asked for (EntryBuilder). The attribute is found in the bodies of macros, too.
  void explicit_instantiation(size_t i) {
    if (text(i + 1) != "[" || text(i + 2) != "[" || (i > 0 && text(i - 1) == "extern")) return;
    const size_t after = after_closing(i + 1);
    for (size_t j = i + 3; j < after; ++j) {
      if (text(j) != "host_name" && text(j) != "kernel") continue;
      replace(tokens_[i].begin, tokens_[i].begin, "extern ");
      return;
    }
  }

  // The name that follows `struct` at `i`, for the braces that may follow that.
  void class_name(size_t i) {
    size_t j = i + 1;
    for (;;) {
      if (text(j) == "alignas" && text(j + 1) == "(") {
        j = after_closing(j + 1);
      } else if (text(j) == "[" && text(j + 1) == "[") {
        j = after_closing(j);
      } else {
        break;
      }
    }
    if (!is_kind(j, Kind::name)) return;
    declared_class_ = text(j);
    class_at_ = j;
  }

  // Puts a call around whole tokens. Edits inside the operand stay inside the call.
  void meet(TextRange operand) {
    auto covers = [](size_t at, const SourceToken& token) { return at < token.end; };
    auto first = std::upper_bound(tokens_.begin(), tokens_.end(), operand.begin, covers);
    auto last = std::upper_bound(tokens_.begin(), tokens_.end(), operand.end - 1, covers);
    if (first == tokens_.end() || last == tokens_.end()) return;
    auto place = std::lower_bound(edits_.begin(), edits_.end(), first->begin,
                                  [](const Edit& edit, size_t at) { return edit.begin < at; });
    edits_.insert(place, {first->begin, first->begin, "__hf_meet("});
    replace(last->end, last->end, ")");
  }

  // Literals with a point or an exponent are float.
  void number(size_t i) {
    const std::string_view t = text(i);
    const bool is_hexadecimal = t.size() > 1 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X');
    const bool has_exponent =
        t.find_first_of(is_hexadecimal ? "pP" : "eE") != std::string_view::npos;
    if (t.find('.') == std::string_view::npos && !has_exponent) return;
    if (is_hexadecimal && !has_exponent) return;
    const size_t end = tokens_[i].end;
    const char last = t.back();
    auto convert = [&](const char* type, size_t suffix) {
      replace(tokens_[i].begin, tokens_[i].begin, std::string("((") + type + ")");
      replace(end - suffix, end, ")");
    };
    if (last == 'h' || last == 'H') {
      convert("_Float16", 1);
    } else if (t.ends_with("bf") || t.ends_with("BF")) {
      // In a hexadecimal literal these would be digits, but after p they cannot be.
      convert("__bf16", 2);
    } else if ((last >= '0' && last <= '9') || last == '.') {
      replace(end, end, "f");
    }
  }

  void pragma(size_t i) {
    if (text(i + 1) != "METAL" || text(i + 2) != "fp") return;
    replace(tokens_[i + 1].begin, tokens_[i + 1].end, "clang");
    for (size_t j = i + 3; j < tokens_.size() && tokens_[j].kind != Kind::line_end; ++j) {
      if (text(j) != "math_mode" || text(j + 1) != "(" || text(j + 3) != ")") continue;
      const char* state = text(j + 2) == "safe" ? "off" : "on";
      replace(tokens_[j].begin, tokens_[j + 3].end,
              std::string("reassociate(") + state + ") reciprocal(" + state + ")");
    }
  }

  size_t defined_query(size_t i) {
    if (text(i + 1) != "(" || !is_kind(i + 2, Kind::name) || text(i + 3) != ")") return i + 1;
    replace(tokens_[i].begin, tokens_[i + 3].end, "__hf_is_defined_" + std::string(text(i + 2)));
    return i + 4;
  }

  // `[[ … ]]` at `i`: Metal's attributes become one GNU attribute each, the others stay.
  size_t attribute_list(size_t i) {
    const size_t after = after_closing(i);
    if (after < 2 || text(after - 1) != "]" || text(after - 2) != "]" || after - 2 <= i + 1) {
      return i + 1;
    }
    const size_t close = after - 2;
    std::vector<std::pair<size_t, size_t>> items;  // without the commas
    for (size_t j = i + 2, begin = j; j <= close; ++j) {
      if (j == close || text(j) == ",") {
        items.emplace_back(begin, j);
        begin = j + 1;
      } else if (text(j) == "(") {
        j = after_closing(j) - 1;
        if (j >= close) return i + 1;
      }
    }
    std::vector<std::pair<size_t, size_t>> ours;
    for (auto [begin, end] : items) {
      const size_t name = attribute_name(begin);
      if (name < end && is_metal_attribute(text(name))) ours.emplace_back(name, end);
    }
    if (ours.empty()) return i + 1;
    if (ours.size() == items.size()) {
      rewrite_attributes(i, close, ours);
    } else {
      mixed_attributes(i, close, items);
    }
    function_constant(i, after, ours);
    return after;
  }
  // Behind `metal ::`, if that stands there.
  size_t attribute_name(size_t begin) const {
    return text(begin) == "metal" && text(begin + 1) == ":" && text(begin + 2) == ":" ? begin + 3
                                                                                      : begin;
  }

  // All attributes are Metal's: the brackets themselves are replaced, arguments stay in place.
  void rewrite_attributes(size_t open, size_t close,
                          const std::vector<std::pair<size_t, size_t>>& items) {
    size_t from = tokens_[open].begin;
    std::string before = "__attribute__((";
    for (auto [name, end] : items) {
      replace(from, tokens_[name].end, before + "holdfast(\"" + std::string(text(name)) + "\"");
      before = ",";
      from = tokens_[name].end;
      if (end > name + 1 && text(name + 1) == "(" && end > name + 3) {
        replace(tokens_[name + 1].begin, tokens_[name + 1].end, ",");
        from = tokens_[end - 1].begin;
      }
      before = "),";
    }
    replace(from, tokens_[close + 1].end, ")))");
  }

  // Both kinds in one list: rare, so the text is made anew, without positions inside.
  void mixed_attributes(size_t open, size_t close,
                        const std::vector<std::pair<size_t, size_t>>& items) {
    std::string standard, metal;
    for (auto [begin, end] : items) {
      if (begin >= end) continue;
      const size_t name = attribute_name(begin);
      const size_t to = tokens_[end - 1].end;
      if (is_metal_attribute(text(name))) {
        metal += metal.empty() ? "holdfast(\"" : ",holdfast(\"";
        metal += std::string(text(name)) + "\"";
        if (end > name + 3) {
          metal += ",";
          metal += source_.substr(tokens_[name + 2].begin,
                                  tokens_[end - 1].begin - tokens_[name + 2].begin);
        }
        metal += ")";
      } else {
        if (!standard.empty()) standard += ",";
        standard += source_.substr(tokens_[begin].begin, to - tokens_[begin].begin);
      }
    }
    replace(tokens_[open].begin, tokens_[close + 1].end,
            "[[" + standard + "]] __attribute__((" + metal + "))");
  }

  // `constant T name [[function_constant(n)]];`: the value follows the declarator, and may have a
  // default. It need not be known when a `constexpr` is checked, so that word goes.
  void function_constant(size_t open, size_t after,
                         const std::vector<std::pair<size_t, size_t>>& items) {
    if (open == 0 || !is_kind(open - 1, Kind::name)) return;
    size_t end_of_declaration = after;
    if (text(after) == "=") {
      while (end_of_declaration < tokens_.size() && text(end_of_declaration) != ";") {
        const std::string_view t = text(end_of_declaration);
        end_of_declaration = t == "(" || t == "{" || t == "[" ? after_closing(end_of_declaration)
                                                              : end_of_declaration + 1;
      }
    }
    if (text(end_of_declaration) != ";") return;
    for (auto [name, end] : items) {
      if (text(name) != "function_constant" || end <= name + 3) continue;
      const std::string variable(text(open - 1));
      std::string index(source_.substr(tokens_[name + 2].begin,
                                       tokens_[end - 1].begin - tokens_[name + 2].begin));
      for (const FunctionConstant& constant : constants_) {
        if (constant.name == variable) index = std::to_string(constant.index);
      }
      const SourceToken& semicolon = tokens_[end_of_declaration];
      if (text(after) == "=") {
        replace(tokens_[after].end, tokens_[after].end,
                " __hf_function_constant_with_default<" + index + ">() =");
      } else {
        replace(semicolon.begin, semicolon.begin, " = __hf_function_constant<" + index + ">()");
      }
      for (size_t j = open - 1; j-- > 0 && (is_kind(j, Kind::name) || text(j) == ":");) {
        if (text(j) == "constexpr") remove(j);
      }
      replace(semicolon.end, semicolon.end,
              " enum { __hf_is_defined_" + variable + " = __hf_function_constant_value<" + index +
                  ">::defined };");
    }
  }

  // A parameter `device T name[n]` that begins at or before `i`, its address space.
  void array_parameter(size_t i) {
    if (text(i) == "thread") return;
    const std::string_view before = i > 0 ? text(i - 1) : "";
    if (before != "(" && before != "," && before != "const" && before != "volatile") return;
    int angles = 0;
    size_t bracket = 0;
    size_t j = i + 1;
    for (; j < tokens_.size(); ++j) {
      const std::string_view t = text(j);
      if (t == "*" || t == "&" || t == ";" || t == "{") return;
      if (t == "<") ++angles;
      if (t == ">") --angles;
      if (t == "(") {
        j = after_closing(j) - 1;
      } else if (t == "[") {
        if (bracket == 0 && text(j + 1) != "[") bracket = j;
        j = after_closing(j) - 1;
      } else if (t == ")" || (t == "," && angles <= 0)) {
        break;
      }
    }
    if (bracket == 0 || bracket < i + 3 || !is_kind(bracket - 1, Kind::name)) return;
    const size_t name = bracket - 1;
    const size_t after = after_closing(bracket);
    if (after > tokens_.size() || after == 0) return;
    const bool has_more = text(after) == "[" && text(after + 1) != "[";
    replace(tokens_[name].begin, tokens_[name].begin, has_more ? "(*" : "*");
    replace(tokens_[bracket].begin, tokens_[after - 1].end, has_more ? ")" : "");
  }

  // `)` at `i`: the address space of a member function may follow, among other qualifiers.
  size_t member_space(size_t i) {
    size_t j = i + 1;
    std::string qualifiers;
    bool has_space = false, is_constant = false;
    for (; is_kind(j, Kind::name); ++j) {
      const std::string_view t = text(j);
      if (is_address_space(t)) {
        has_space = true;
        is_constant = is_constant || t == "constant";
      } else if (t == "const" || t == "volatile") {
        qualifiers += std::string(t) + " ";
      } else if (t != "noexcept") {
        return i + 1;
      }
    }
    const std::string_view t = text(j);
    if (!has_space || (t != "{" && t != ";" && t != "=" && t != ":" && t != "-")) return i + 1;
    // What lies in constant memory is const. A constructor has no such qualifiers.
    const bool adds_const =
        is_constant && qualifiers.find("const ") == std::string::npos && !is_constructor(i);
    if (adds_const) qualifiers += "const ";
    if (const size_t after = duplicate_member(i, j, qualifiers)) return after;
    bool has_const = !adds_const;
    for (size_t k = i + 1; k < j; ++k) {
      if (!is_address_space(text(k))) continue;
      replace(tokens_[k].begin, tokens_[k].end, has_const ? "" : "const");
      has_const = true;
    }
    return j;
  }

  // Whether the `)` at `close` ends the parameters of a constructor.
  bool is_constructor(size_t close) const {
    if (members_.empty() || members_.back().class_name.empty()) return false;
    int depth = 0;
    for (size_t j = close + 1; j-- > 0;) {
      if (text(j) == ")") ++depth;
      if (text(j) == "(" && --depth == 0) return j > 0 && text(j - 1) == members_.back().class_name;
    }
    return false;
  }

  // Members that differ only in the address space of `this` are one function for us: the first
  // stays. `close` is the `)` of the parameters, `end` the token after the qualifiers. Returns the
  // token after what was removed, or 0.
  size_t duplicate_member(size_t close, size_t end, const std::string& qualifiers) {
    if (members_.empty()) return 0;
    size_t begin = close;
    while (begin > 0) {
      const std::string_view t = text(begin - 1);
      if (t == ";" || t == "}" || t == "{" || tokens_[begin - 1].kind == Kind::line_end) break;
      if (t == ":" && begin > 1 &&
          (text(begin - 2) == "public" || text(begin - 2) == "private" ||
           text(begin - 2) == "protected")) {
        break;
      }
      --begin;
    }
    std::string key = qualifiers;
    for (size_t k = begin; k <= close; ++k) key += std::string(text(k)) + " ";
    if (members_.back().seen.insert(key).second) return 0;
    // Remove the whole definition, keeping its lines.
    size_t last = end;
    while (last < tokens_.size() && text(last) != ";" && text(last) != "{") ++last;
    if (text(last) == "{") last = after_closing(last, tokens_.size()) - 1;
    if (last >= tokens_.size()) return 0;
    std::erase_if(edits_, [&](const Edit& edit) { return edit.begin >= tokens_[begin].begin; });
    replace(
        tokens_[begin].begin, tokens_[last].end,
        std::string(std::count(source_.begin() + static_cast<ptrdiff_t>(tokens_[begin].begin),
                               source_.begin() + static_cast<ptrdiff_t>(tokens_[last].end), '\n'),
                    '\n'));
    return last + 1;
  }

  RewrittenText apply() {
    RewrittenText result;
    size_t at = 0;
    auto copy = [&](size_t end) {
      if (at >= end) return;
      result.stretches.push_back({result.text.size(), at, true});
      result.text += source_.substr(at, end - at);
      at = end;
    };
    for (const Edit& edit : edits_) {
      if (edit.begin < at) continue;  // inside text that is gone
      copy(edit.begin);
      if (!edit.text.empty()) {
        result.stretches.push_back({result.text.size(), edit.begin, false});
        result.text += edit.text;
      }
      at = edit.end;
    }
    copy(source_.size());
    return result;
  }

  std::string_view source_;
  std::vector<SourceToken> tokens_;
  const std::vector<FunctionConstant>& constants_;
  std::vector<Edit> edits_;  // by begin; of one place, in the order they were made
  int depth_ = 0;            // of parentheses, inside the innermost braces
  std::vector<int> depths_;
  struct Members {
    std::string_view class_name;  // empty: no class
    std::set<std::string> seen;
  };
  std::vector<Members> members_;     // one per open brace
  std::string_view declared_class_;  // by the last `struct`, until something else follows
  size_t class_at_ = 0;
};

}  // namespace

size_t RewrittenText::original(size_t position) const {
  auto next = std::upper_bound(stretches.begin(), stretches.end(), position,
                               [](size_t p, const Stretch& stretch) { return p < stretch.at; });
  if (next == stretches.begin()) return position;
  const Stretch& stretch = *(next - 1);
  return stretch.copied ? stretch.original + (position - stretch.at) : stretch.original;
}

RewrittenText rewrite_tokens(std::string_view source,
                             const std::vector<FunctionConstant>& constants,
                             const std::set<TextRange>& met) {
  return Rewriter(source, constants).run(met);
}

bool is_thread_attribute(std::string_view name) {
  return std::find(thread_attributes.begin(), thread_attributes.end(), name) !=
         thread_attributes.end();
}

}  // namespace holdfast::msl
