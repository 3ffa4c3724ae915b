// What methods and filters do with texts.
#pragma once

#include <string>
#include <vector>

#include "lm/text/jinja/interpreter.h"

namespace holdfast::lm::jinja {

// Without these characters at its ends; null: without white space.
std::string stripped(const std::string& text, const std::string* characters, bool left, bool right);
// The parts between separators; at most `most` separators count, all if it is negative, the last
// ones if `from_end`.
std::vector<Value> split_at(const std::string& text, const std::string& separator, int64_t most,
                            bool from_end);
std::vector<Value> split_at_spaces(const std::string& text, int64_t most, bool from_end);
std::vector<Value> split_lines(const std::string& text, bool keeps_ends);
Value replaced(Interpreter& interpreter, const std::string& text, const std::string& from,
               const std::string& to, int64_t most);
// Throws for what is no text, unless `converts`.
Value joined(Interpreter& interpreter, const std::vector<Value>& items,
             const std::string& separator, bool converts);
std::string padded(const std::string& text, int64_t width, const std::string& fill, bool left,
                   bool right);
std::string capitalised(const std::string& text);

}  // namespace holdfast::lm::jinja
