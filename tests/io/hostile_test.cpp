// Files that are wrong: a std::runtime_error that says what is wrong, and no memory taken for lies.
#include <holdfast/io.h>

#include "io/files.h"
#include "io/memory_reader.h"
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::shared_ptr<io::Reader> reader_of(const std::string& bytes) {
  return std::make_shared<io::MemoryReader>(std::vector<char>(bytes.begin(), bytes.end()), "test");
}

std::string npy(const std::string& dictionary, const std::string& elements = "") {
  return std::string("\x93NUMPY\1\0", 8) + bytes_of(static_cast<uint16_t>(dictionary.size())) +
         dictionary + elements;
}
std::string safetensors(const std::string& header, const std::string& elements = "") {
  return bytes_of(static_cast<uint64_t>(header.size())) + header + elements;
}
std::string gguf_string(const std::string& s) { return bytes_of(uint64_t{s.size()}) + s; }
std::string gguf(uint64_t tensors, uint64_t values, const std::string& rest) {
  return "GGUF" + bytes_of(uint32_t{3}) + bytes_of(tensors) + bytes_of(values) + rest;
}

template <class Load>
void check_refused(const std::string& bytes, const char* what, Load load) {
  CAPTURE(what);
  CHECK_THROWS_WITH_AS(load(reader_of(bytes)), doctest::Contains(what), std::runtime_error);
}
const auto read_npy = [](auto reader) { load(reader).eval(); };
const auto read_safetensors = [](auto reader) {
  for (auto [name, a] : load_safetensors(reader).first) a.eval();
};
const auto read_gguf = [](auto reader) {
  for (auto [name, a] : load_gguf(reader).first) a.eval();
};

}  // namespace

TEST_CASE("npy: what other programs write is read") {
  std::string big_endian("\0\0\0\1\0\0\0\2", 8);
  check_values<int32_t>(
      load(reader_of(npy("{'shape':(2,),'fortran_order':False,'descr':'>i4'}", big_endian))), {2},
      {1, 2});
  std::string columns;
  for (float value : {1, 2, 3, 4, 5, 6}) columns += bytes_of(value);
  check_values<float>(
      load(reader_of(
          npy("{\"descr\": \"<f4\", 'fortran_order': True, 'shape': (2L, 3L)}\n", columns))),
      {2, 3}, {1, 3, 5, 2, 4, 6});
  std::string complex_pair = std::string("\x3f\x80\0\0\x40\0\0\0", 8);
  array c =
      load(reader_of(npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", complex_pair)));
  CHECK(c.item<complex64_t>() == complex64_t(1, 2));
}

TEST_CASE("npy: what is wrong is said") {
  check_refused("", "the file ends inside the magic string", read_npy);
  check_refused("hello world", "not an npy file", read_npy);
  check_refused(std::string("\x93NUMPY\x09\0\0\0", 10), "npy version 9", read_npy);
  check_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "123"),
                "end beyond the file", read_npy);
  check_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}"), "not negative",
                read_npy);
  check_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
                "overflows", read_npy);
  check_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3000000000,)}"),
                "more than an int holds", read_npy);
  check_refused(
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000,2000000000,2000000000)}"),
      "overflows", read_npy);
  check_refused(npy("{'descr': '<f9', 'fortran_order': False, 'shape': ()}"),
                "'<f9' is not supported", read_npy);
  check_refused(npy("{'descr': '<f4', 'shape': ()}"), "is missing", read_npy);
  check_refused(npy("{'descr': '<f4', 'descr': '<f4', 'shape': ()}"), "repeated key", read_npy);
  check_refused(npy("{'descr': '<f4"), "without an end", read_npy);
  check_refused(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}"), "True or False",
                read_npy);
  CHECK_THROWS_WITH_AS(load("/no/such/file.npy"), doctest::Contains("[load] cannot open"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(load("/"), doctest::Contains("[load] cannot open"), std::runtime_error);
}

TEST_CASE("safetensors: what is wrong is said") {
  check_refused("123", "the file ends inside the header's length", read_safetensors);
  check_refused(bytes_of(~uint64_t{0}) + "{}", "the file ends inside the header", read_safetensors);
  check_refused(safetensors("[1, 2"), "not a JSON object", read_safetensors);
  check_refused(safetensors("[]"), "not a JSON object", read_safetensors);
  check_refused(safetensors(std::string(100000, '[')), "nested too deeply", read_safetensors);
  check_refused(safetensors(R"({"a": 1})"), "is not an object", read_safetensors);
  check_refused(safetensors(R"({"a": {"shape": [], "data_offsets": [0, 0]}})"), "has no dtype",
                read_safetensors);
  check_refused(safetensors(R"({"a": {"dtype": "F3", "shape": [], "data_offsets": [0, 0]}})"),
                "\"F3\"", read_safetensors);
  check_refused(safetensors(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})"),
                "do not lie inside", read_safetensors);
  check_refused(
      safetensors(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", "12345678"),
      "do not lie inside", read_safetensors);
  check_refused(
      safetensors(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", "1234"),
      "has 4 bytes, its shape and dtype need 8", read_safetensors);
  check_refused(
      safetensors(R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", "1234"),
      "not a number ≥ 0", read_safetensors);
  check_refused(
      safetensors(R"({"a": {"dtype": "F32", "shape": [1e3], "data_offsets": [0, 4]}})", "1234"),
      "not a number ≥ 0", read_safetensors);
  check_refused(safetensors(R"({"__metadata__": {"a": 1}})"), "not a string", read_safetensors);
}

TEST_CASE("gguf: what is wrong is said") {
  check_refused("GGUG", "not a gguf file", read_gguf);
  check_refused("GGUF" + bytes_of(uint32_t{1}) + bytes_of(uint64_t{0}) + bytes_of(uint64_t{0}),
                "version 1", read_gguf);
  check_refused(gguf(~uint64_t{0}, 0, ""), "ends inside the list of tensors", read_gguf);
  check_refused(gguf(0, ~uint64_t{0}, ""), "ends inside the metadata", read_gguf);
  check_refused(gguf(0, 1, bytes_of(~uint64_t{0}) + "abcd"), "ends inside a metadata key",
                read_gguf);
  check_refused(gguf(0, 1, gguf_string("k") + bytes_of(uint32_t{99})), "unknown type 99",
                read_gguf);
  std::string list = gguf_string("k") + bytes_of(uint32_t{9});
  check_refused(gguf(0, 1, list + bytes_of(uint32_t{6}) + bytes_of(uint64_t{1} << 62)),
                "ends inside a metadata list", read_gguf);
  check_refused(gguf(0, 1, list + bytes_of(uint32_t{8}) + bytes_of(uint64_t{1} << 60)),
                "ends inside a list of strings", read_gguf);
  check_refused(gguf(0, 1, list + bytes_of(uint32_t{9}) + bytes_of(uint64_t{1})),
                "unsupported type 9", read_gguf);
  check_refused(
      gguf(0, 1, gguf_string("general.alignment") + bytes_of(uint32_t{4}) + bytes_of(uint32_t{0})),
      "general.alignment", read_gguf);
  auto tensor = [](uint32_t dimensions, const std::vector<uint64_t>& shape, uint32_t type,
                   uint64_t offset) {
    std::string info = gguf_string("t") + bytes_of(dimensions);
    for (uint64_t dimension : shape) info += bytes_of(dimension);
    return info + bytes_of(type) + bytes_of(offset);
  };
  check_refused(gguf(1, 0, tensor(1, {4}, 0, 0)), "ends beyond the file", read_gguf);
  check_refused(gguf(1, 0, tensor(1, {4}, 0, ~uint64_t{0}) + std::string(99, 'x')),
                "ends beyond the file", read_gguf);
  check_refused(gguf(1, 0, tensor(0xffffffff, {4}, 0, 0)), "ends inside a tensor's dimensions",
                read_gguf);
  check_refused(gguf(1, 0, tensor(2, {1u << 31, 2}, 0, 0)), "more than an int holds", read_gguf);
  check_refused(gguf(1, 0, tensor(1, {4}, 77, 0) + std::string(99, 'x')), "unsupported type 77",
                read_gguf);
  check_refused(gguf(1, 0, tensor(1, {33}, 2, 0) + std::string(99, 'x')), "not a multiple of 32",
                read_gguf);
  check_refused(gguf(2, 0, tensor(0, {}, 0, 0) + tensor(0, {}, 0, 0) + std::string(99, 'x')),
                "is there twice", read_gguf);
}

TEST_CASE("npz: deflated entries are read, damaged ones refused") {
  TemporaryFolder folder;
  save_npz(folder / "a", {{"x", arange(1000)}, {"y", array(1.5f)}});
  std::string whole = read_file(folder / "a.npz");
  auto arrays = load_npz(reader_of(whole));
  CHECK(array_equal(arrays.at("x"), arange(1000)).item<bool>());
  // Every truncation is refused.
  for (size_t length = 0; length < whole.size(); length += 7) {
    CAPTURE(length);
    CHECK_THROWS_AS(load_npz(reader_of(whole.substr(0, length))), std::runtime_error);
  }
  // Deflated by another program.
  auto deflated = load_npz(std::string(HOLDFAST_TEST_DATA) + "/deflated.npz");
  CHECK(array_equal(deflated.at("x"), arange(4096)).item<bool>());
}

TEST_CASE("Bytes changed at random are a result or a std::runtime_error") {
  TemporaryFolder folder;
  save(folder / "a", arange(10));
  save_npz(folder / "a", {{"x", arange(10)}});
  save_safetensors(folder / "a", {{"x", arange(10)}, {"y", array(1.0f)}}, {{"k", "v"}});
  save_gguf(folder / "a", {{"x", arange(10)}}, {{"k", std::string("v")}, {"n", array({1, 2})}});
  uint32_t state = 1;
  auto next = [&] { return state = state * 1664525 + 1013904223, state >> 8; };
  auto try_all = [&](const std::string& file, auto read) {
    std::string bytes = read_file(folder / file);
    for (int i = 0; i < 2000; ++i) {
      std::string changed = bytes;
      for (uint32_t n = 1 + next() % 3; n > 0; --n)
        changed[next() % changed.size()] = static_cast<char>(next());
      if (next() % 4 == 0) changed.resize(next() % changed.size());
      try {
        read(reader_of(changed));
      } catch (const std::runtime_error&) {
      }
    }
  };
  try_all("a.npy", read_npy);
  try_all("a.safetensors", read_safetensors);
  try_all("a.gguf", read_gguf);
  try_all("a.npz", [](auto reader) {
    for (auto [name, a] : load_npz(reader)) a.eval();
  });
}
