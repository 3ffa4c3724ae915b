// Files that are not what they should be: an exception, or a function; never anything else.
#include <holdfast/holdfast.h>

#include "ops/array_testing.h"
#include "transforms/export_testing.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// A small file with keywords, state, constants and several outputs.
std::vector<char> sample(const TemporaryFolder& folder) {
  std::function<Args(const Args&, const Kwargs&)> f = [](const Args& x, const Kwargs& k) {
    Args parts = split(transpose(x[0], {1, 0}) * array({1.0f, 2.0f}), Shape{1}, 0);
    parts.push_back(slice(x[0], {1, 2}, {-5, -5}, {-1, -1}) + sum(k.at("y"), 0, true));
    return parts;
  };
  array x({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  export_function(folder / "f", f, {x}, {{"y", x}}, false, "meta");
  return bytes_of_file(folder / "f");
}

// The outputs for inputs of ones, if the file is accepted.
std::optional<std::vector<Args>> results_of(const std::vector<char>& bytes) {
  try {
    ImportedFunction f = import_function(reader_of(bytes));
    SavedFunction saved = read_function(reader_of(bytes));
    std::vector<Args> results;
    for (const SavedTrace& trace : saved.traces) {
      if (bytes_of(trace) < (1 << 20)) results.push_back(call_with_ones(f, trace));
    }
    return results;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

std::string message_of(const std::vector<char>& bytes) {
  try {
    import_function(reader_of(bytes));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A file that holds `function`.
std::vector<char> written(const TemporaryFolder& folder, const SavedFunction& function) {
  {
    io::FileWriter writer(folder / "written");
    write_function(writer, function);
  }
  return bytes_of_file(folder / "written");
}

}  // namespace

TEST_CASE("import: every truncation and every changed byte is found") {
  TemporaryFolder folder;
  std::vector<char> bytes = sample(folder);
  std::vector<Args> expected = *results_of(bytes);
  REQUIRE(expected[0].size() == 3);
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(!results_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}));
  }
  size_t accepted = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<char> changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    std::optional<std::vector<Args>> results = results_of(changed);
    if (!results) continue;
    ++accepted;  // bytes that fill up
    for (size_t k = 0; k < expected[0].size(); ++k) {
      CHECK(has_same_bits((*results)[0][k], expected[0][k]));
    }
  }
  CHECK(accepted < 64);
  bytes.push_back(0);
  CHECK(!results_of(bytes));
}

TEST_CASE("import: changed bytes under a right checksum") {
  TemporaryFolder folder;
  std::vector<char> bytes = sample(folder);
  size_t accepted = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value : {bytes[i] ^ 1, bytes[i] ^ 0x80, 0, 255, bytes[i] + 1}) {
      std::vector<char> changed = bytes;
      changed[i] = static_cast<char>(value);
      seal(changed);
      accepted += results_of(changed).has_value();
    }
  }
  CHECK(accepted > 0);
}

TEST_CASE("import: what is wrong is said") {
  TemporaryFolder folder;
  std::vector<char> bytes = sample(folder);
  auto contains = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  contains(message_of({}), "the file ends inside the header");
  std::vector<char> changed = bytes;
  changed[0] = 'X';
  contains(message_of(changed), "not a file of functions");
  changed = bytes;
  changed[8] = 2;
  contains(message_of(changed), "expected version 1, got 2: a newer Holdfast");
  changed = bytes;
  changed[60] ^= 1;
  contains(message_of(changed), "checksum does not match");
  changed = bytes;
  changed.back() ^= 1;
  contains(message_of(changed), "checksum of constant");
  CHECK_THROWS_AS(import_function(folder / "nothing"), std::runtime_error);

  auto with = [&](const std::function<void(SavedTrace&)>& change) {
    SavedFunction function = read_function(reader_of(bytes));
    change(function.traces[0]);
    return message_of(written(folder, function));
  };
  contains(with([](SavedTrace& t) { t.calls[0].record.kind = "Nothing"; }),
           "call 0 of Nothing in the trace for (float32 (2,3), y=float32 (2,3)): an op that this "
           "version does not know");
  contains(with([](SavedTrace& t) { t.calls[0].record.state.clear(); }), "expected a state of 1");
  contains(with([](SavedTrace& t) { t.calls[0].record.state[0] = 3; }), "another type");
  contains(with([](SavedTrace& t) { t.calls[0].record.state[0] = std::vector<int>{1, 1}; }),
           "[transpose]");
  contains(with([](SavedTrace& t) { t.calls[0].inputs.push_back(0); }), "expected 1 input, got 2");
  contains(with([](SavedTrace& t) { t.calls[0].outputs[0].shape = {3, 3}; }),
           "output 0 should be float32 of shape (3,3), got float32 of shape (3,2)");
  contains(with([](SavedTrace& t) { t.calls[0].outputs[0].dtype = int32; }), "should be int32");
  contains(with([](SavedTrace& t) { t.calls[0].inputs[0] = 99; }), "names value 99");
  contains(with([](SavedTrace& t) { t.outputs[0] = 99; }), "names value 99");
  contains(with([](SavedTrace& t) { t.constants[0] = 99; }), "names value 99");
  contains(with([](SavedTrace& t) { t.calls[0].outputs[0].shape = {-1}; }), "negative");
  contains(with([](SavedTrace& t) { t.calls[0].outputs[0].shape = {1 << 30, 1 << 30, 1 << 30}; }),
           "[import_function]");
  contains(with([](SavedTrace& t) {
             t.calls.insert(t.calls.begin(), 100, t.calls[0]);
             for (size_t i = 0; i < 100; ++i) t.calls[i].stream = 1000000 + static_cast<int>(i);
           }),
           "new streams");
}
