// Captures: what is recorded replays to the same bits, pass after pass; what cannot be complete
// says so; what was damaged is refused with the place.
#include <doctest/doctest.h>

#include <fstream>

#include <holdfast/holdfast.h>

#include "capture/file.h"
#include "capture/programs.h"
#include "exec/layers/capture/capture_file.h"
#include "exec/layers/chaos/chaos.h"
#include "support/device.h"
#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using capture::Capture;

namespace {

// Ops of every kind of command and layout: fused, in place, views, products, reductions, dtypes.
array many_ops(const array& x, const array& w, Stream s) {
  array a = matmul(x, w, s);
  array b = softmax(a * array(0.5f) + sum(a, 1, true, s), -1, false, s);
  array c = transpose(b, s) + full({16, 8}, 0.25f, s);
  array d = concatenate({slice(c, {0, 2}, {16, 6}, s), slice(c, {0, 0}, {16, 4}, s)}, 1, s);
  array e = astype(d, bfloat16, s) * astype(d, bfloat16, s);
  array f = slice_update(astype(e, float32, s), ones({4, 8}), {2, 0}, {6, 8}, s);
  array g = take(f, array({3, 1, 2}), 0, s);
  array h = arange(0.5, 4.5, 0.5, float32, s) + arange(8, int32, s);
  return sum(exp(g, s), 0, false, s) + argmax(f, 0, false, s) + h;
}

}  // namespace

TEST_CASE("capture: ops of many kinds replay to the same bits") {
  File file("many");
  Stream s = default_stream(Device::cpu);
  array x = random::normal({8, 32}, float32, 0.0f, 1.0f, random::key(1));
  array w = random::normal({32, 16}, float32, 0.0f, 1.0f, random::key(2));
  eval(x, w);
  record(file, [&] {
    for (int i = 0; i < 3; ++i) eval(many_ops(x, w, s));
    array kept = many_ops(x, w, s);
    eval(kept);
    label::Scope scope("last");
    eval(kept * kept);
  });
  Capture read(file.path);
  CHECK(read.is_complete());
  CHECK(read.why_not() == "");
  CHECK(read.recorded_ops().empty());
  CHECK(read.commands > 20);
  CHECK(read.lists.back().commands.back().label == "last");
  capture::ReplayResult result =
      capture::replay(read, {.passes = 3, .first = 0, .last = INT64_MAX});
  CHECK(result.passes == 3);
  CHECK(result.commands == read.commands);
  CHECK(result.checked > 60);
  CHECK(result.differences.empty());
  for (const auto& d : result.differences) MESSAGE(d.number, " ", d.op);
}

TEST_CASE("capture: a replay that differs names the first command that does") {
  File file("differs");
  Stream s = default_stream(Device::cpu);
  array x = random::normal({64}, float32, 0.0f, 1.0f, random::key(1));
  eval(x);
  record(file, [&] {
    array y = sum(multiply(x, x, s), s);
    eval(y);
    array z = exp(y, s);
    eval(z);
  });
  Capture before(file.path);
  REQUIRE(before.digests.size() >= 3);
  int64_t list = before.digests[1].list;
  file.change("update digests set digest='00' where list=" + std::to_string(list));
  capture::ReplayResult result = capture::replay(Capture(file.path));
  REQUIRE(result.differences.size() == 1);
  CHECK(result.differences[0].pass == 1);
  const std::string first = result.differences[0].op;
  CHECK((first == "Sum" || first == "Reduce" || first == "Multiply"));
}

TEST_CASE("capture: kernels are replayed from their source, with an emptied kernel library") {
  if (!metal::is_available()) return;
  File file("kernels");
  auto kernel =
      fast::metal_kernel("scaled", {"x", "factor"}, {"y"},
                         "uint i = thread_position_in_grid.x; y[i] = x[i] * factor + T(i);");
  array x = random::normal({1000}, float32, 0.0f, 1.0f, random::key(5));
  eval(x);
  record(file, [&] {
    for (int layer = 1; layer < 5; ++layer) {
      x = kernel({x, array(static_cast<float>(layer))}, {{1000}}, {float32}, {1000, 1, 1},
                 {64, 1, 1}, {{"T", float32}}, 0.0f, false, {})[0];
    }
    eval(x);
  });
  exec::KernelLibrary::get().clear();
  Capture read(file.path);
  CHECK(read.pipelines.size() == 1);
  CHECK(contains(read.pipelines.begin()->second.source, "factor + T(i)"));
  capture::ReplayResult result =
      capture::replay(read, {.passes = 2, .first = 0, .last = INT64_MAX});
  CHECK(result.checked >= 8);
  CHECK(result.differences.empty());
}

TEST_CASE("capture: arrays that cross between devices replay to the same bits") {
  if (!metal::is_available()) return;  // a replay compiles the kernels of the gpu
  File file("crossing");
  array x = random::uniform(0.0f, 0.1f, {64}, float32, random::key(3));
  // Both devices have it when the capture begins.
  eval(multiply(x, x, Device::gpu), multiply(x, x, Device::cpu));
  record(file, [&] {
    array a = multiply(x, x, Device::gpu);
    array b = cumsum(a, 0, false, true, Device::cpu);
    array c = add(b, a, Device::gpu);
    eval(c);
    c.data<float>()[3] = 5;  // by the host, between two uses
    array d = add(exp(c, Device::gpu), x, Device::cpu);
    // The gpu fills memory of the host, which both devices read then.
    allocator::Buffer memory = allocator::malloc(64 * sizeof(int32_t));
    array filled = make_op("Filled", default_stream(Device::gpu), {}, {64},
                           [memory](Encoder& encoder, const auto&, std::vector<array>& out) {
                             const int32_t seven = 7;
                             out[0].set_data(memory);
                             encoder.fill(out[0], &seven);
                           });
    array e = add(astype(filled, float32, Device::cpu), d, Device::gpu);
    array f = add(astype(filled, float32, Device::gpu), e, Device::cpu);
    eval(f);
    CHECK(sum(subtract(f, d)).item<float>() == doctest::Approx(64 * 14));
  });
  capture::ReplayResult result = capture::replay(Capture(file.path));
  CHECK(result.checked >= 9);
  for (const auto& d : result.differences) MESSAGE(d.number, " ", d.op);
  CHECK(result.differences.empty());
}

TEST_CASE("capture: native ops of the user's own are replayed from what they wrote, and named") {
  File file("own");
  Stream s = default_stream(Device::cpu);
  record(file, [&] {
    CHECK(values(affine(affine(counting(100), 2, 1, s), 3, 1, s) + array(1))[1] == 11);
  });
  Capture read(file.path);
  CHECK(read.recorded_ops() == std::vector<std::string>{"Affine"});
  capture::ReplayResult result = capture::replay(read);
  CHECK(result.checked >= 3);
  CHECK(result.differences.empty());
}

TEST_CASE_FIXTURE(OnCpu, "capture: three streams made while capturing, wired memory, many passes") {
  File file("streams");
  memory::Scope scope({.memory = {}, .cache = {}, .wired = size_t{8} << 20});
  array x = random::normal({64, 64}, float32, 0.0f, 1.0f, random::key(9));
  eval(x);
  std::vector<Stream> made;
  record(file, [&] {
    for (int i = 0; i < 3; ++i) made.push_back(new_stream(Device::cpu));
    Gate gate(made[0]);  // what the others wait for has not completed when they are committed
    array a = matmul(x, x, made[0]);
    array b = sum(a, 0, made[1]);
    array c = exp(array(0.001f) * b, made[2]) + a;
    async_eval(c);
    gate.open();
    eval(c);
  });
  for (Stream stream : made) exec::Runtime::get().give_back(queue_of(stream));
  Capture read(file.path);
  CHECK(read.number("wired limit") == size_t{8} << 20);
  CHECK(read.queues.size() >= 3);
  bool waits = std::any_of(read.lists.begin(), read.lists.end(),
                           [](const auto& list) { return !list.waits.empty(); });
  CHECK(waits);
  size_t queues = exec::Runtime::get().queue_count();
  capture::ReplayResult result =
      capture::replay(read, {.passes = 1000, .first = 0, .last = INT64_MAX});
  CHECK(result.differences.empty());
  CHECK(result.checked >= 3000);
  CHECK(result.most_sets <= 32);
  CHECK(result.most_wired <= size_t{8} << 20);
  CHECK(exec::Runtime::get().queue_count() <= queues + 3);
  CHECK(*memory::limits().wired == size_t{8} << 20);
}

TEST_CASE("capture: an attachment of a residency set among the commands is refused") {
  File file("attachment");
  {
    exec::capture::CaptureFile writer(file.path, 0);
    ByteWriter commands = list_of_one(0, 4), times;
    commands.text(std::string(100, 'x'));
    times.value(int64_t{0});
    writer.queue(0, "cpu", false);
    writer.list(1, 1, 0, 1, commands.take(), times.take());
    writer.meta("state", "complete");
  }
  CHECK(contains(file.error(), "command 0: it attaches a residency set: residency is state"));
}

TEST_CASE("capture: what the host writes in between is replayed at its place") {
  File file("host");
  Stream s = default_stream(Device::cpu);
  array x = ones({256}, s);
  eval(x);
  record(file, [&] {
    for (int i = 0; i < 4; ++i) {
      CHECK(sum(x * x, s).item<float>() == 256.0f + 3.0f * static_cast<float>(i));
      synchronize(s);
      x.data<float>()[i] = 2.0f;
    }
  });
  Capture read(file.path);
  capture::ReplayResult result =
      capture::replay(read, {.passes = 2, .first = 0, .last = INT64_MAX});
  CHECK(result.checked >= 8);
  CHECK(result.differences.empty());
}

TEST_CASE("capture: from several threads, while arrays are dropped") {
  File file("threads");
  record(file, [&] {
    on_threads(4, [&](int index) {
      Stream s = default_stream(Device::cpu);
      for (int i = 0; i < 10; ++i) {
        array x = full({32, 32}, static_cast<float>(index + i), s);
        async_eval(matmul(x, x, s) + x);
        array y = sum(matmul(x, x, s), s);
        eval(y);
      }
    });
  });
  capture::ReplayResult result = capture::replay(Capture(file.path));
  CHECK(result.checked > 80);
  CHECK(result.differences.empty());
}

TEST_CASE("capture: under chaos, whichever of the two began first") {
  Stream s = default_stream(Device::cpu);
  array x = random::normal({8, 32}, float32, 0.0f, 1.0f, random::key(1));
  array w = random::normal({32, 16}, float32, 0.0f, 1.0f, random::key(2));
  array expected = many_ops(x, w, s);
  eval(expected, w);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    File file("chaos");
    std::optional<exec::chaos::Scope> chaos;
    if (seed % 2 == 0) chaos.emplace(exec::chaos::Setting{seed, exec::chaos::all});
    record(file, [&] {
      if (!chaos) chaos.emplace(exec::chaos::Setting{seed, exec::chaos::all});
      // What does not depend on each other is there to be put in another order.
      std::vector<array> results;
      for (int i = 0; i < 4; ++i) results.push_back(many_ops(x, w, s));
      eval(results);
      for (const array& result : results) CHECK(array_equal(result, expected).item<bool>());
    });
    chaos.reset();
    Capture read(file.path);
    CHECK(read.recorded_ops().empty());
    capture::ReplayResult result = capture::replay(read);
    CHECK(result.commands == read.commands);
    CHECK(result.checked > 60);
    CHECK(result.differences.empty());
  }
}

TEST_CASE("capture: starting twice, stopping without a start, paths that cannot be written") {
  File file("twice");
  CHECK_NOTHROW(metal::stop_capture());
  metal::start_capture(file.path);
  CHECK_THROWS_AS(metal::start_capture(file.path), std::runtime_error);
  metal::stop_capture();
  CHECK_THROWS_AS(metal::start_capture("/nowhere/at/all.hfcap"), std::runtime_error);
  CHECK_THROWS_AS(metal::start_capture(""), std::invalid_argument);
  CHECK(exec::layers::interests.load() == 0);
  CHECK(Capture(file.path).commands == 0);
}

TEST_CASE("capture: a file that becomes full is marked, and the program goes on") {
  File file("full");
  Stream s = default_stream(Device::cpu);
  metal::start_capture(file.path, {.contents = true,
                                   .digests = true,
                                   .skip_lists = 0,
                                   .count_lists = -1,
                                   .max_file_bytes = 600000,
                                   .reference_files = false});
  for (int i = 0; i < 20; ++i) {
    array x = random::normal({256, 256}, float32, 0.0f, 1.0f, random::key(i));
    eval(x);
    std::vector<float> host(x.data<float>(), x.data<float>() + x.size());
    array copy(host.begin(), {256, 256});
    CHECK(sum(copy == x, s).item<int>() == 256 * 256);
  }
  std::string message;
  try {
    metal::stop_capture();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(contains(message, "not complete"));
  CHECK(contains(message, "full"));
  Capture read(file.path);
  CHECK(!read.is_complete());
  CHECK(contains(file.error(), "cannot be replayed: it is not complete"));
}

TEST_CASE("capture: only some lists, without contents") {
  File file("some");
  Stream s = default_stream(Device::cpu);
  array x = ones({8}, s);
  eval(x);
  record(file,
         [&] {
           for (int i = 0; i < 10; ++i) eval(x + array(static_cast<float>(i)));
         },
         {.contents = false,
          .digests = false,
          .skip_lists = 3,
          .count_lists = 2,
          .max_file_bytes = 0,
          .reference_files = false});
  Capture read(file.path);
  CHECK(read.lists.size() == 2);
  CHECK(read.contents.empty());
  CHECK(read.digests.empty());
  CHECK(contains(file.error(), "it has no contents of memory"));
}

TEST_CASE("capture: damaged and foreign files are refused with the place") {
  File file("damaged");
  Stream s = default_stream(Device::cpu);
  array x = random::normal({512}, float32, 0.0f, 1.0f, random::key(1));
  eval(x);
  record(file, [&] { eval(sum(x * x, s)); });
  std::string bytes;
  {
    std::ifstream in(file.path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto rewrite = [&](const std::string& contents) {
    std::ofstream(file.path, std::ios::binary | std::ios::trunc) << contents;
  };
  rewrite(bytes.substr(0, bytes.size() / 2));
  CHECK(contains(file.error(), "[capture] " + file.path));
  rewrite("not a database");
  CHECK(contains(file.error(), "[capture] " + file.path));
  rewrite("");
  CHECK(contains(file.error(), "file: it is empty"));
  rewrite(bytes);
  file.change("delete from meta where key='format'");
  CHECK(contains(file.error(), "meta: it does not say which format it has"));
  rewrite(bytes);
  CHECK(file.error() == "");
  file.change("update meta set value='99' where key='format'");
  CHECK(contains(file.error(), "made by a newer version"));
  rewrite(bytes);
  file.change("update contents set first=100000");
  CHECK(contains(file.error(), "contents row 1: bytes 100000"));
  rewrite(bytes);
  // A row that every reader reads: the commands of a list.
  const std::string row = std::to_string(file.number("select min(commands) from lists"));
  file.change("update blobs set data=x'00112233' where id=" + row);
  CHECK(contains(file.error(), "blobs row " + row + ": "));
  rewrite(bytes);
  // A frame that says that a GiB is in it, and ends there.
  file.change("update blobs set size=1073741824,data=x'28b52ffde00000004000000000' where id=" +
              row);
  CHECK(contains(file.error(), "blobs row " + row + ": its size is not what it says"));
  rewrite(bytes);
  file.change("alter table blobs rename to others; create view blobs as select * from others");
  CHECK(contains(file.error(), "file: \"blobs\" is no table"));
  rewrite(bytes);
  {
    Capture read(file.path);
    const capture::Contents& c = read.contents.at(0);
    file.change(
        "update blobs set (digest,size,data)=(select digest,size,data from blobs where size<>" +
        std::to_string(c.size) + " limit 1) where id=" + std::to_string(c.blob));
    CHECK_THROWS_WITH_AS(read.bytes(c), doctest::Contains("it has changed since it was read"),
                         std::runtime_error);
  }
  rewrite(bytes);
  file.change("delete from queues");
  CHECK(contains(file.error(), "lists row 1: there is no queue"));
  CHECK_THROWS_AS(Capture("/nowhere.hfcap"), std::runtime_error);
}
