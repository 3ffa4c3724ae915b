// The checks and what each can report: one table, which messages, filters and documentation read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <holdfast/validation.h>

namespace holdfast::validation {

enum class Check : uint8_t {
  lifetime,
  hazards,
  bindings,
  cache,
  resources,
  kernels,
  ownership,
  host_writes,
  nan,
  performance,
  count
};

struct CheckRow {
  Check check;
  const char* name;
  const char* meaning;
  bool is_default;  // part of HOLDFAST_VALIDATE=1
};

// A kind of report.
struct KindRow {
  Check check;
  const char* id;
  Severity severity;
  const char* meaning;
  const char* advice;
};

std::span<const CheckRow> checks();
const char* name_of(Severity severity);
std::span<const KindRow> kinds();
// The row of an identifier, which must be one of the table.
const KindRow& kind(const char* id);

class CheckSet {
 public:
  // "1", or names with commas. Throws std::invalid_argument that names `what`, the unknown name and
  // the known ones.
  static CheckSet parse(const std::string& text, const std::string& what);
  bool has(Check check) const { return bits_ >> static_cast<int>(check) & 1; }

 private:
  uint32_t bits_ = 0;
};

// Identifiers with commas; throws as above.
std::vector<std::string> parse_identifiers(const std::string& text, const std::string& what);

}  // namespace holdfast::validation
