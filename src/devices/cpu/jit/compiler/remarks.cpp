#include "devices/cpu/jit/compiler/remarks.h"

#include <algorithm>
#include <map>

#include "devices/cpu/jit/compiler/source_lines.h"

namespace holdfast::jit {
namespace {

class Lines {
 public:
  explicit Lines(const msl::KernelSource& source) : source_(source) {}

  // As errors say it: "body:3"; lines count from the start of the part.
  std::string name(unsigned line) const {
    SourceLine found = source_line(&source_, line);
    return (found.part.empty() ? "line " : found.part + ":") + std::to_string(found.line);
  }

  std::string text(unsigned line) const {
    size_t begin = 0;
    for (unsigned i = 1; i < line && begin != std::string::npos; ++i) {
      begin = source_.text.find('\n', begin);
      if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos) return "";
    begin = std::min(source_.text.find_first_not_of(" \t", begin), source_.text.size());
    return source_.text.substr(begin, source_.text.find('\n', begin) - begin);
  }

 private:
  const msl::KernelSource& source_;
};

}  // namespace

std::string in_source_order(const std::vector<Remark>& remarks, const msl::KernelSource* source) {
  std::map<unsigned, std::vector<std::string>> by_line;
  for (const Remark& remark : remarks) {
    std::string text = remark.text;
    if (source && remark.cause_line != 0 && remark.cause_line != remark.line)
      text += " (" + Lines(*source).name(remark.cause_line) + ")";
    // Without a line last.
    std::vector<std::string>& said = by_line[remark.line == 0 ? ~0u : remark.line];
    if (std::find(said.begin(), said.end(), text) == said.end()) said.push_back(text);
  }
  std::string result;
  for (const auto& [line, said] : by_line) {
    bool is_known = source && line != ~0u;
    if (is_known) result += Lines(*source).name(line) + "  " + Lines(*source).text(line) + "\n";
    for (const std::string& text : said) result += (is_known ? "    " : "") + text + "\n";
  }
  return result;
}

}  // namespace holdfast::jit
