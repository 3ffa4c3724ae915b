// Chaos: small programs compute the same values under every seed; a program that is wrong does not;
// the same seed does the same again.
#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "exec/layers/chaos/chaos.h"
#include "support/child.h"
#include "support/threads.h"
#include "validation/cases.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::chaos::Setting;

namespace {

using Values = std::vector<int32_t>;

Values integers(const array& a) { return values(contiguous(astype(a, int32))); }

Values chain_of_ops() {
  OwnStream s;
  array x = counting(64);
  array y = affine(x, 3, 1, s);
  for (int i = 0; i < 10; ++i) {
    array z = affine(y, 1, i, s);
    y = add_arrays(affine_in_place(z, 2, 0, s), x, s);
  }
  return values(y);
}

Values built_in_ops() {
  array x = astype(reshape(counting(48), {6, 8}), float32);
  array y = softmax(matmul(x, transpose(x)) * array(0.01f), -1);
  array z =
      concatenate({sum(y, 0, true), exp(slice(y, {0, 0}, {1, 6})) + array(1.0f), y * y + y}, 0);
  return integers(round(z * array(1000.0f)));
}

Values two_streams() {
  OwnStream s, t;
  array x = counting(32), y = x;
  for (int i = 0; i < 8; ++i) y = affine(y, i % 3 == 0 ? 2 : 1, i, i % 2 == 0 ? s : t);
  array z = add_arrays(affine(x, 5, 0, t), y, s);
  return values(z);
}

// Rows of a cache are written in place and read, step by step.
Values cache_in_place() {
  OwnStream s;
  array cache = zeros({16, 4}, int32, s);
  array total = zeros({4}, int32, s);
  for (int i = 0; i < 12; ++i) {
    array row = reshape(affine(counting(4), 1, i, s), {1, 4}, s);
    cache = slice_update(cache, row, {i, 0}, {i + 1, 4}, s);
    if (i % 3 == 0) total = add(total, sum(cache, 0, false, s), s);
    if (i % 5 == 0) async_eval(cache);
  }
  return values(contiguous(total, false, s));
}

Values kernels_of_one_name() {
  OwnStream s;
  FakeCompiler compiler;
  exec::KernelLibrary library(compiler.parts(2));
  array x = counting(40);
  array y = x;
  for (int i = 0; i < 12; ++i) {
    y = make_op("Layer", s, {y}, {40}, [&library, i](Encoder& encoder, const auto& in, auto& out) {
      Ref<exec::Pipeline> kernel = library.get(request_for(affine_source(i % 4 == 0 ? 2 : 1, i)));
      encoder.allocate(out[0]);
      KernelBinding bindings[] = {KernelBinding::input(in[0]), KernelBinding::output(out[0])};
      encoder.dispatch(*kernel, bindings, {40}, {16});
    });
  }
  return values(y);
}

Values temporaries_and_drops() {
  OwnStream s;
  std::vector<array> kept;
  for (int i = 0; i < 6; ++i) {
    std::optional<array> x = counting(50, i);
    array y = through_temporary(*x, s);
    std::vector<array> sums = three_sums(y, s);
    x.reset();
    async_eval(sums[2]);
    if (i % 2 == 0) kept.push_back(sums[i % 3]);
  }
  array total = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) total = add_arrays(total, kept[i], s);
  return values(total);
}

Values shared_by_threads() {
  array x = counting(64);
  array y = x * array(3) + array(1);
  Values result(64);
  std::vector<Values> seen(4);
  on_threads(4, [&](int i) { seen[static_cast<size_t>(i)] = values(y + array(i)); });
  for (int i = 0; i < 4; ++i) {
    for (size_t k = 0; k < 64; ++k) result[k] += seen[static_cast<size_t>(i)][k];
  }
  return result;
}

// Memory of the user's, given back when its last list has completed.
Values adopted_memory() {
  OwnStream s;
  Values total(20);
  for (int i = 0; i < 4; ++i) {
    auto* memory = new int32_t[20];
    for (int k = 0; k < 20; ++k) memory[k] = k * i;
    array x(memory, {20}, int32, [](void* given) { delete[] static_cast<int32_t*>(given); });
    array y = affine_in_place(affine(x, 2, 1, s), 1, i, s);
    async_eval(y);
    x = array(0);
    Values got = values(y);
    for (size_t k = 0; k < 20; ++k) total[k] += got[k];
  }
  return total;
}

// Arrays cross between devices; the host writes and reads between their uses.
Values two_devices() {
  OwnStream host, gpu(Device::gpu);
  array x = counting(48), total = zeros({48}, int32, gpu);
  for (int i = 0; i < 6; ++i) {
    array y = multiply(x, array(i + 1), gpu);
    array z = add(y, x, host);
    total = add(total, subtract(z, slice(y, {0}, {48}, gpu), i % 2 == 0 ? gpu : host), gpu);
    array w = multiply(y, array(3), gpu);
    async_eval(w);
    total = add(total, w, host);
    eval(z, total);  // nothing reads z any more
    z.data<int32_t>()[i] += 1000;
    total = add(total, z, i % 2 == 0 ? host : gpu);
    x = i % 2 == 0 ? z : y;
  }
  return values(contiguous(total, false, host));
}

// What fails, fails with the same words, and nothing else does.
Values failures() {
  OwnStream s;
  Values codes;
  for (int i = 0; i < 4; ++i) {
    array x = counting(8, i);
    array failed = failing_on_device(affine(x, 1, 1, s), s, "code " + std::to_string(i));
    array dependent = add_arrays(failed, x, s), other = affine(x, 2, 0, s);
    async_eval(dependent, other);
    codes.push_back(values(other)[7]);
    try {
      dependent.wait();
      codes.push_back(-1);
    } catch (const ExecutionError& error) {
      codes.push_back(std::string(error.what()).back());
    }
  }
  return codes;
}

// Derivatives and compiled functions: groups, rows, donated intermediates.
Values derivatives() {
  auto loss = [](const array& w) {
    array x = astype(reshape(counting(24), {4, 6}), float32) * array(0.1f);
    return sum(tanh(matmul(x, w)) * array(0.5f));
  };
  array w = astype(reshape(counting(18), {6, 3}), float32) * array(0.05f);
  for (int step = 0; step < 3; ++step) w = w - array(0.1f) * grad(loss)(w);
  return integers(round(w * array(10000.0f)));
}

struct Program {
  const char* name;
  Values (*run)();
};
constexpr Program corpus[] = {
    {"a chain of ops", chain_of_ops},
    {"built-in ops", built_in_ops},
    {"two streams", two_streams},
    {"a cache that is written in place", cache_in_place},
    {"kernels of one name", kernels_of_one_name},
    {"temporaries and drops", temporaries_and_drops},
    {"a graph shared by threads", shared_by_threads},
    {"adopted memory", adopted_memory},
    {"two devices", two_devices},
    {"failures", failures},
    {"derivatives", derivatives},
};

void run_corpus(uint64_t seeds) {
  for (const Program& program : corpus) {
    INFO(std::string(program.name));
    Values expected = program.run();
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      INFO("HOLDFAST_CHAOS=", seed);
      exec::chaos::Scope chaos({seed});
      Values got = program.run();
      if (got != expected) REQUIRE(got == expected);
    }
  }
}

// Two buffers over one memory, which the runtime cannot know: the order of the commands decides.
int wrong_program() {
  OwnStream s;
  static int32_t memory[1];
  memory[0] = 0;
  array x(memory, {1}, int32, [](void*) {}), y(memory, {1}, int32, [](void*) {});
  std::vector<array> outputs;
  for (int i = 1; i <= 6; ++i) {
    outputs.push_back(
        lone_op("Race", s, [i, raw = (i % 2 ? x : y).buffer()](auto& encoder, auto& out) {
          encoder.raw_output(raw, 0, 4);
          encoder.output(out);
          encoder.native("store", 1, 0,
                         [i, target = static_cast<int32_t*>(raw.raw_ptr())](int64_t, int64_t) {
                           *target = *target * 3 + i;
                         });
        }));
  }
  eval(outputs);
  return memory[0];
}

}  // namespace

TEST_CASE("chaos: the corpus computes the same values under 200 seeds") { run_corpus(200); }

TEST_CASE("chaos: the corpus computes the same values under 1000 seeds [long]") {
  run_corpus(1000);
}

TEST_CASE("chaos: a program that is wrong shows it, and its seed shows it again") {
  int usual = wrong_program();
  CHECK(usual == wrong_program());
  std::set<int> results;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    // The decisions depend on the stream and the list: give both runs the same ones.
    exec::chaos::Scope chaos({seed, exec::chaos::order});
    results.insert(wrong_program());
  }
  CHECK(results.size() > 1);
}

TEST_CASE("chaos: settings are parsed, and printed as they are parsed") {
  auto text = [](const char* given) {
    return exec::chaos::to_text(exec::chaos::parse(given, "HOLDFAST_CHAOS"));
  };
  CHECK(text("7") == "7:order,split,delay,poison");
  CHECK(text("18446744073709551615:delay") == "18446744073709551615:delay");
  CHECK(text("7:delay,order") == "7:order,delay");
  for (const char* wrong :
       {"x", "", "-1", "7:", "7:fast", "7:order,", "7 ", "18446744073709551616", ":order"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(text(wrong),
                         (std::string("[chaos] HOLDFAST_CHAOS must be a seed, or a seed and knobs "
                                      "as 7:order,split,delay,poison, got \"") +
                          wrong + "\"")
                             .c_str(),
                         std::invalid_argument);
  }
}

TEST_CASE("chaos: lists are split, and memory that was let go is overwritten") {
  OwnStream s;
  exec::chaos::Scope chaos({3, exec::chaos::split | exec::chaos::poison});
  CommitRecorder recorder;
  array x = counting(16);
  for (int i = 0; i < 40; ++i) x = affine(x, 1, 1, s);
  eval(x);
  CHECK(recorder.lists(s).size() >= 6);
  allocator::Buffer raw = allocator::malloc(64);
  auto* bytes = static_cast<const unsigned char*>(raw.raw_ptr());
  allocator::free(raw);  // the cache has it now
  CHECK(bytes[0] == 0xcb);
  CHECK(bytes[63] == 0xcb);
}

TEST_CASE("child: runs the corpus once") {
  if (!is_child("child: runs the corpus once")) return;
  run_corpus(1);
}

TEST_CASE("HOLDFAST_CHAOS: a whole program runs under it; wrong settings are errors") {
  CHECK(run_child("child: runs the corpus once", {"HOLDFAST_CHAOS=11"}).exit_code == 0);
  CHECK(run_child("child: runs the corpus once", {"HOLDFAST_CHAOS=11:order,split"}).exit_code == 0);
  ChildResult wrong = run_child("child: runs the corpus once", {"HOLDFAST_CHAOS=eleven"});
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.output.find("[chaos] HOLDFAST_CHAOS must be a seed") != std::string::npos);
}

// What was committed: the order of the commands of each list, and where lists end.
static std::string decisions(const CommitRecorder& recorder, Stream stream) {
  std::string text;
  for (const auto& list : recorder.lists(stream)) {
    text += std::to_string(stream.index) + "/" + std::to_string(list.serial) + ":";
    for (const auto& command : list.commands) text += " " + command.op;
    text += "\n";
  }
  return text;
}

// Ops that do not depend on each other, all of them kept: nothing but chaos decides their order.
TEST_CASE("child: tells what chaos decides about ops of two streams") {
  if (!is_child("child: tells what chaos decides about ops of two streams")) return;
  Stream streams[] = {new_stream(Device::cpu), new_stream(Device::cpu)};
  CommitRecorder recorder;
  std::vector<array> kept;
  for (int i = 0; i < 40; ++i) {
    auto encode = [](Encoder& encoder, const auto&, std::vector<array>& out) {
      encoder.allocate(out[0]);
      encoder.output(out[0]);
      hold(encoder, "idle", nullptr);
    };
    kept.push_back(make_op("Op" + std::to_string(i), streams[i % 2], {}, {16}, encode));
  }
  eval(kept);
  report(decisions(recorder, streams[0]) + decisions(recorder, streams[1]));
}

TEST_CASE("chaos: the same seed decides the same again, in any build") {
  auto told = [](const char* setting) {
    ChildResult result = run_child("child: tells what chaos decides about ops of two streams",
                                   {std::string("HOLDFAST_CHAOS=") + setting});
    CHECK(result.exit_code == 0);
    return reported(result);
  };
  std::string first = told("21");
  CHECK(first.find("Op39") != std::string::npos);
  CHECK(first == told("21"));
  CHECK(first != told("22"));
  CHECK(told("21:order") != told("22:order"));
  CHECK(told("21:split") != told("22:split"));
}

TEST_CASE("child: tells how the corpus ran") {
  if (!is_child("child: tells how the corpus ran")) return;
  array first = counting(1);  // the runtime starts, and with it chaos, before the recorder
  CommitRecorder recorder;
  controlled::begin({.seed = 9});
  for (const Program& program : corpus) program.run();
  exec::Runtime::get().drain();
  std::string text = std::to_string(controlled::fingerprint()) + "\n";
  for (const Stream& stream : get_streams()) text += decisions(recorder, stream);
  report(text);
}

TEST_CASE("chaos: where threads are controlled, the same seed is the same run") {
  if (!controlled::enabled()) return;
  auto told = [](const char* setting) {
    ChildResult result =
        run_child("child: tells how the corpus ran", {std::string("HOLDFAST_CHAOS=") + setting});
    CHECK(result.exit_code == 0);
    return reported(result);
  };
  std::string first = told("31");
  CHECK(first.size() > 1000);
  CHECK(first == told("31"));
  CHECK(first != told("32"));
}

TEST_CASE("chaos: lists complete late") {
  if (!controlled::enabled()) return;  // where time is what the lists make of it
  OwnStream s;
  auto duration = [&](uint32_t knobs) {
    exec::chaos::Scope chaos({4, knobs});
    auto start = sync::now();
    for (int i = 0; i < 64; ++i) eval(affine(counting(4), 1, i, s));
    return sync::now() - start;
  };
  // A quarter of the lists, 100 us each.
  CHECK(duration(exec::chaos::delay) > duration(0) + std::chrono::microseconds(400));
}

TEST_CASE("chaos and validation: the corpus is clean") {
  validation::Scope scope;
  for (const Program& program : corpus) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      exec::chaos::Scope chaos({seed});
      program.run();
    }
  }
  std::string text;
  for (const validation::Report& report : scope.reports()) text += report.text();
  CHECK(text == "");
}
