#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>

#include <holdfast/lm.h>

#include "lm/support.h"

using namespace holdfast::lm;

TEST_CASE("lm: a file that is missing or too large is named") {
  CHECK_THROWS_WITH_AS(read_text_file("no/such/config.json"), "cannot open no/such/config.json",
                       ModelError);
  std::string path = "lm_files_test.txt";
  std::ofstream(path) << "0123456789";
  CHECK(read_text_file(path) == "0123456789");
  CHECK_THROWS_WITH_AS(read_text_file(path, 9),
                       "lm_files_test.txt is larger than 9 bytes, the limit for such a file",
                       ModelError);
  std::remove(path.c_str());
}
