#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/environment.h"

using namespace holdfast;

namespace {

const char* name_to_find = nullptr;
const char* value_to_find = nullptr;

environment::Settings parse_one(const char* name, const char* value) {
  name_to_find = name;
  value_to_find = value;
  return environment::parse([](const char* asked) -> const char* {
    return std::strcmp(asked, name_to_find) == 0 ? value_to_find : nullptr;
  });
}

std::string error_of(const char* name, const char* value) {
  try {
    parse_one(name, value);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("environment: defaults") {
  environment::Settings settings =
      environment::parse([](const char*) -> const char* { return nullptr; });
  CHECK(settings.threads == 0);
  CHECK(settings.retain);
  CHECK(settings.recycle);
  CHECK(settings.fuse);
  CHECK_FALSE(settings.disable_compile);
  CHECK(!settings.default_device_is_gpu);
  CHECK(settings.max_ops_per_buffer >= 1);
  CHECK(settings.max_bytes_per_buffer >= 1 << 20);
  CHECK(settings.kernel_cache_entries >= 64);
  CHECK(settings.disk_cache);
}

TEST_CASE("environment: values") {
  CHECK(parse_one("HOLDFAST_THREADS", "7").threads == 7);
  CHECK(parse_one("HOLDFAST_MAX_OPS_PER_BUFFER", "1").max_ops_per_buffer == 1);
  CHECK(parse_one("HOLDFAST_MAX_MB_PER_BUFFER", "3").max_bytes_per_buffer == size_t{3} << 20);
  CHECK(!parse_one("HOLDFAST_FUSE", "0").fuse);
  CHECK(parse_one("HOLDFAST_LOWERING", "reference").reference_lowering);
  CHECK(!parse_one("HOLDFAST_LOWERING", "automatic").reference_lowering);
  CHECK(error_of("HOLDFAST_LOWERING", "widened").find("automatic or reference") !=
        std::string::npos);
  CHECK(parse_one("HOLDFAST_DISABLE_COMPILE", "1").disable_compile);
  CHECK(!parse_one("HOLDFAST_RECYCLE", "0").recycle);
  CHECK(!parse_one("HOLDFAST_RETAIN", "0").retain);
  CHECK(parse_one("HOLDFAST_RETAIN", "1").retain);
  CHECK(parse_one("HOLDFAST_DEFAULT_DEVICE", "gpu").default_device_is_gpu);
  CHECK(!parse_one("HOLDFAST_DEFAULT_DEVICE", "cpu").default_device_is_gpu);
  CHECK(parse_one("HOLDFAST_KERNEL_CACHE_ENTRIES", "64").kernel_cache_entries == 64);
  CHECK(!parse_one("HOLDFAST_DISK_CACHE", "0").disk_cache);
  CHECK(parse_one("HOLDFAST_CACHE_MB", "2").disk_cache_bytes == uint64_t{2} << 20);
  // Set but empty is as good as not set.
  CHECK(parse_one("HOLDFAST_THREADS", "").threads == 0);
  CHECK(parse_one("HOLDFAST_RETAIN", "").retain);
}

TEST_CASE("environment: a bad value is an error that names the variable and the value") {
  for (const char* value : {"0", "-1", "x", "1x", "1025", "99999999999999999999", "1.5"}) {
    std::string error = error_of("HOLDFAST_THREADS", value);
    CHECK(error.starts_with("[environment] HOLDFAST_THREADS must be"));
    CHECK(error.find(std::string("\"") + value + "\"") != std::string::npos);
  }
  for (const char* name : {"HOLDFAST_FUSE", "HOLDFAST_RECYCLE", "HOLDFAST_RETAIN"}) {
    for (const char* value : {"2", "yes", "true", "01", " 1"}) {
      CHECK(error_of(name, value) ==
            std::string("[environment] ") + name + " must be 0 or 1, got \"" + value + "\"");
    }
  }
  CHECK(error_of("HOLDFAST_MAX_OPS_PER_BUFFER", "0").find("HOLDFAST_MAX_OPS_PER_BUFFER") !=
        std::string::npos);
  CHECK(error_of("HOLDFAST_MAX_MB_PER_BUFFER", "0").find("HOLDFAST_MAX_MB_PER_BUFFER") !=
        std::string::npos);
  CHECK(error_of("HOLDFAST_DEFAULT_DEVICE", "tpu").find("\"tpu\"") != std::string::npos);
}

TEST_CASE("environment: every switch is in the table with its meaning") {
  std::string text = environment::markdown();
  for (const environment::Switch& row : environment::table()) {
    CHECK(std::string(row.name).starts_with("HOLDFAST_"));
    CHECK(std::strlen(row.meaning) > 10);
    CHECK(text.find(row.name) != std::string::npos);
  }
}
