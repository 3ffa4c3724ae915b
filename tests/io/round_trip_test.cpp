// What was saved is what is loaded: every format, dtype and layout.
#include <filesystem>
#include <sstream>

#include <holdfast/io.h>

#include "io/files.h"
#include "ops/array_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Arrays of many shapes and layouts of one dtype.
std::vector<array> samples(Dtype dtype) {
  array base = astype(reshape(arange(24), {2, 3, 4}), dtype);
  return {base,
          transpose(base),
          slice(base, {0, 0, 1}, {2, 3, 4}, {1, 2, 2}),
          broadcast_to(astype(array({1, 0}), dtype), {3, 2}),
          array(1, dtype),
          zeros({0, 3}, dtype),
          zeros({0}, dtype)};
}

void check_same(const array& loaded, const array& saved) {
  CHECK(loaded.dtype() == saved.dtype());
  CHECK(loaded.shape() == saved.shape());
  CHECK(array_equal(loaded, saved).item<bool>());
}

}  // namespace

TEST_CASE("npy: every dtype and layout comes back") {
  TemporaryFolder folder;
  for (Dtype dtype : all_dtypes()) {
    CAPTURE(dtype);
    for (const array& a : samples(dtype)) {
      save(folder / "a", a);
      check_same(load(folder / "a.npy"), a);
    }
  }
}

TEST_CASE("npz, safetensors and gguf: every dtype they know comes back, with names and metadata") {
  TemporaryFolder folder;
  std::unordered_map<std::string, array> arrays, gguf_arrays;
  for (Dtype dtype : all_dtypes()) {
    int i = 0;
    for (const array& a : samples(dtype)) {
      std::ostringstream label;
      label << dtype << i++ << "/ \"ü\\";
      std::string name = label.str();
      arrays.insert({name, a});
      bool fits =
          dtype == int8 || dtype == int16 || dtype == int32 || dtype == float16 || dtype == float32;
      if (fits) gguf_arrays.insert({name, a});
    }
  }
  save_npz(folder / "a", arrays);
  save_safetensors(folder / "a", arrays, {{"format", "pt"}, {"ü\n", ""}});
  save_gguf(folder / "a", gguf_arrays,
            {{"text", std::string("hello")},
             {"list", std::vector<std::string>{"a", "", "c"}},
             {"number", array(3, uint64)},
             {"flag", array(true)},
             {"numbers", array({1.5f, -2.0f})},
             {"nothing", std::monostate{}}});

  auto from_npz = load_npz(folder / "a.npz");
  auto [from_safetensors, metadata] = load_safetensors(folder / "a.safetensors");
  auto [from_gguf, values] = load_gguf(folder / "a.gguf");
  CHECK(from_npz.size() == arrays.size());
  CHECK(from_safetensors.size() == arrays.size());
  CHECK(from_gguf.size() == gguf_arrays.size());
  for (const auto& [name, a] : arrays) {
    CAPTURE(name);
    check_same(from_npz.at(name), a);
    check_same(from_safetensors.at(name), a);
    if (gguf_arrays.contains(name)) check_same(from_gguf.at(name), a);
  }
  CHECK(metadata == std::unordered_map<std::string, std::string>{{"format", "pt"}, {"ü\n", ""}});
  CHECK(values.size() == 5);
  CHECK(std::get<std::string>(values.at("text")) == "hello");
  CHECK(std::get<std::vector<std::string>>(values.at("list")) ==
        std::vector<std::string>{"a", "", "c"});
  check_same(std::get<array>(values.at("number")), array(3, uint64));
  check_same(std::get<array>(values.at("flag")), array(true));
  check_same(std::get<array>(values.at("numbers")), array({1.5f, -2.0f}));
}

TEST_CASE("Elements are read when they are needed, by several threads where the file is large") {
  TemporaryFolder folder;
  array a = random::normal({3, 1 << 20}, random::key(1));
  save(folder / "large", a);
  array first = load(folder / "large.npy");
  array shortened = load(folder / "large.npy");
  CHECK(array_equal(first, a).item<bool>());
  // Loaded, not yet read: a file that shrinks meanwhile is an error of the evaluation, not of the
  // process.
  std::filesystem::resize_file(folder / "large.npy", 4096);
  CHECK_THROWS_WITH_AS(shortened.eval(), doctest::Contains("ends at byte"), std::runtime_error);
}

TEST_CASE("Bools are 0 or 1, whatever bytes the file holds") {
  TemporaryFolder folder;
  array bytes(std::initializer_list<int>{0, 1, 2, 255}, uint8);
  save(folder / "a.npy", bytes);
  std::string npy = read_file(folder / "a.npy");
  write_file(folder / "a.npy", npy.replace(npy.find("|u1"), 3, "|b1"));
  std::string header = R"({"x":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})";
  write_file(folder / "a.safetensors", bytes_of(uint64_t{header.size()}) + header +
                                           std::string(bytes.data<char>(), bytes.nbytes()));
  for (const array& x :
       {load(folder / "a.npy"), load_safetensors(folder / "a.safetensors").first.at("x")}) {
    CHECK(x.dtype() == bool_);
    check_values<int>(astype(x, int32), {4}, {0, 1, 1, 1});
    check_values<bool>(logical_not(x), {4}, {true, false, false, false});
  }
}

TEST_CASE("safetensors without metadata as MLX writes them") {
  TemporaryFolder folder;
  std::string header =
      R"({"__metadata__":null,"x":{"data_offsets":[0,2],"dtype":"U8","shape":[2]}})";
  write_file(folder / "a.safetensors", bytes_of(uint64_t{header.size()}) + header + "\3\4");
  SafetensorsLoad loaded = load_safetensors(folder / "a.safetensors");
  check_values<uint8_t>(loaded.first.at("x"), {2}, {3, 4});
  CHECK(loaded.second.empty());
}

TEST_CASE("A save that fails leaves the old file and no other") {
  TemporaryFolder folder;
  save_gguf(folder / "a.gguf", {{"x", array({1, 2})}});
  std::string before = read_file(folder / "a.gguf");
  CHECK_THROWS_AS(save_gguf(folder / "a.gguf", {{"x", array(1.0f, float64)}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(save_gguf(folder / "a.gguf", {}, {{"m", zeros({2, 2})}}), std::invalid_argument);
  CHECK_THROWS_AS(save_gguf(folder / "a.gguf", {}, {{"m", zeros({0})}}), std::invalid_argument);
  CHECK_THROWS_AS(save_safetensors(folder / "a.safetensors", {{"__metadata__", array(1)}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(save_safetensors(folder / "a.safetensors", {{"\xff", array(1)}}),
                  std::invalid_argument);
  CHECK(read_file(folder / "a.gguf") == before);
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder.path()))
    ++files;
  CHECK(files == 1);
  CHECK_THROWS_WITH_AS(save(folder / "no/such/folder/a.npy", array(1)),
                       doctest::Contains("[save] cannot write"), std::runtime_error);
}

TEST_CASE("Equal content gives equal files") {
  TemporaryFolder folder;
  std::unordered_map<std::string, array> forth, back;
  for (int i = 0; i < 20; ++i) forth.insert({std::to_string(i), array(i)});
  for (int i = 19; i >= 0; --i) back.insert({std::to_string(i), array(i)});
  save_safetensors(folder / "a", forth);
  save_safetensors(folder / "b", back);
  CHECK(read_file(folder / "a.safetensors") == read_file(folder / "b.safetensors"));
}

TEST_CASE("gguf: quantised types hold the values that others read from them") {
  std::string data = HOLDFAST_TEST_DATA;
  auto [arrays, metadata] = load_gguf(data + "/quantised.gguf");
  for (std::string type : {"Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}) {
    CAPTURE(type);
    array expected = load(data + "/" + type + ".npy");
    array values = arrays.at(type + ".weight");
    CHECK(values.dtype() == float16);
    CHECK(values.shape() == expected.shape());
    CHECK(allclose(astype(values, float32), expected, 1e-3, 1e-3).item<bool>());
  }
  for (std::string type : {"Q4_0", "Q4_1", "Q8_0"}) {
    CAPTURE(type);
    array expected = load(data + "/" + type + ".npy");
    int bits = type == "Q8_0" ? 8 : 4, per_word = 32 / bits;
    array words = arrays.at(type + ".weight");
    array scales = arrays.at(type + ".scales"), biases = arrays.at(type + ".biases");
    CHECK(words.dtype() == uint32);
    CHECK(words.shape() == Shape{2, 32 / per_word});
    CHECK(scales.shape() == Shape{2, 1});
    array shifts = arange(0, 32, bits, uint32);
    array values =
        bitwise_and(right_shift(expand_dims(words, 2), shifts), array((1u << bits) - 1, uint32));
    values = astype(reshape(values, {2, 32}), float32);
    CHECK(allclose(values * astype(scales, float32) + astype(biases, float32), expected, 1e-2, 1e-2)
              .item<bool>());
  }
}
