// A value of a JSON file that remembers where it is, so that what is wrong with it is said by its
// path.
#pragma once

#include <holdfast/lm/errors.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lm/support.h"

namespace holdfast::lm::tokenizing {

class JsonView {
 public:
  // The value must outlive the view.
  JsonView(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }

  // Is there such a member, and is it not null?
  bool has(const char* key) const {
    if (!value_->is_object()) return false;
    auto found = value_->find(key);
    return found != value_->end() && !found->is_null();
  }
  JsonView operator[](const char* key) const {
    if (!value_->is_object()) fail("an object");
    auto found = value_->find(key);
    if (found == value_->end()) throw ModelError(message(path_, ": \"", key, "\" is missing"));
    return {*found, message(path_, ".", key)};
  }
  size_t size() const {
    if (!value_->is_array()) fail("a list");
    return value_->size();
  }
  JsonView operator[](size_t i) const { return {value_->at(i), message(path_, "[", i, "]")}; }

  const std::string& string() const {
    if (!value_->is_string()) fail("a string");
    return value_->get_ref<const std::string&>();
  }
  bool boolean() const {
    if (!value_->is_boolean()) fail("true or false");
    return value_->get<bool>();
  }
  double number() const {
    if (!value_->is_number()) fail("a number");
    return value_->get<double>();
  }
  int64_t integer(int64_t least, int64_t most) const {
    bool fits = value_->is_number_unsigned() ? value_->get<uint64_t>() <= uint64_t(INT64_MAX)
                                             : value_->is_number_integer();
    int64_t integer = fits ? value_->get<int64_t>() : 0;
    if (!fits || integer < least || integer > most)
      fail(message("an integer from ", least, " to ", most));
    return integer;
  }

  std::string string_or(const char* key, const char* otherwise) const {
    return has(key) ? (*this)[key].string() : otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) const {
    return has(key) ? (*this)[key].boolean() : otherwise;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    std::string got =
        value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 60);
    throw ModelError(message(path_, ": expected ", expected, ", got ", got));
  }

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace holdfast::lm::tokenizing
