// The library in memory: what a key is, one compilation for many threads, the bound, failures.
#include "exec/kernel_library.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "devices/cpu/cpu_target.h"
#include "kernel_library/fake_compiler.h"
#include "support/inspection.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::KernelLibrary;
using exec::KernelRequest;

namespace {

// Runs a pipeline of the fake compiler on one number.
int32_t result_of(const exec::Pipeline& pipeline, int32_t x) {
  int32_t y = 0;
  void* buffers[] = {&x, &y};
  jit::DispatchArguments arguments;
  arguments.buffers = buffers;
  static_cast<const exec::CpuKernel&>(pipeline).run_groups(arguments, 0, 1);
  return y;
}

}  // namespace

TEST_CASE("kernel library: the same content is compiled once and found again") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  auto first = request_for(affine_source(3, 4));
  auto again = request_for(affine_source(3, 4));
  Ref<exec::Pipeline> a = library.get(first);
  CHECK(library.get(first) == a);
  CHECK(library.get(again) == a);
  CHECK(result_of(*a, 5) == 19);
  CHECK(compiler.compiles.load() == 1);
  KernelCacheStats stats = library.stats();
  CHECK(stats.hits == 2);
  CHECK(stats.misses == 1);
  CHECK(stats.compiles == 1);
  CHECK(stats.entries == 1);
  CHECK(stats.capacity == 8);
  library.reset_stats();
  CHECK(library.stats().hits == 0);
  CHECK(library.stats().entries == 1);
}

TEST_CASE("kernel library: one name with other bodies are other kernels") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  Ref<exec::Pipeline> a = library.get(request_for("2 0", "same"));
  Ref<exec::Pipeline> b = library.get(request_for("5 1", "same"));
  CHECK(result_of(*a, 10) == 20);
  CHECK(result_of(*b, 10) == 51);
}

TEST_CASE("kernel library: every part of the content is in the key") {
  auto source = [] { return named_source("k", "1 2"); };
  using Source = msl::KernelSource;
  using Options = exec::KernelOptions;
  FakeTarget target("target 1"), other("target 2");
  std::vector<std::pair<Source, Options>> variants;
  auto add = [&](auto change) {
    std::pair<Source, Options> variant{source(), {}};
    change(variant.first, variant.second);
    variants.push_back(std::move(variant));
  };
  add([](Source&, Options&) {});
  add([](Source& s, Options&) { s.text = "1 2 "; });
  add([](Source& s, Options&) { s.entry = "other"; });
  // Moves a byte over the boundary between two fields.
  add([](Source& s, Options&) { s.entry = "k1", s.text = " 2"; });
  add([](Source& s, Options&) { s.math = msl::MathMode::fast; });
  add([](Source& s, Options&) { s.math = msl::MathMode::relaxed; });
  add([](Source& s, Options&) { s.constants = {{0, "", "bool", {1}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "", "bool", {0}}}; });
  add([](Source& s, Options&) { s.constants = {{1, "", "bool", {1}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "", "float4", {0, 0}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "", "float4", {0, 1}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "", "int", {1}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "n", "bool", {1}}}; });
  add([](Source& s, Options&) { s.constants = {{0, "", "bool", {1}}, {1, "", "bool", {1}}}; });
  add([](Source&, Options& o) { o.variant = 1; });
  add([](Source&, Options& o) { o.variant = uint64_t{1} << 32; });
  add([](Source&, Options& o) { o.guarded = true; });
  std::set<std::string> keys;
  std::set<Hash128> hashes;
  for (const auto& [s, o] : variants) {
    KernelRequest request(s, o, target);
    keys.insert(request.key());
    hashes.insert(request.hash());
  }
  CHECK(keys.size() == variants.size());
  CHECK(hashes.size() == variants.size());
  CHECK(!keys.contains(KernelRequest(source(), {}, other).key()));
  // What does not change the code is not in it.
  Source described = source();
  described.parts = {{"body", 0, 3}};
  Options described_threadgroup;
  described_threadgroup.threadgroup = {8, 8, 1};
  CHECK(keys.contains(KernelRequest(described, described_threadgroup, target).key()));
}

TEST_CASE("kernel library: who finds a pipeline owns it before another one takes its place") {
  controlled::for_each_schedule(200, [&](const controlled::Schedule&) {
    INFO(controlled::describe());
    FakeCompiler compiler;
    KernelLibrary library(compiler.parts(1));
    auto first = request_for(affine_source(3, 4)), second = request_for(affine_source(5, 6));
    library.get(first);
    sync::Thread other("other", [&] { library.get(second); });
    Ref<exec::Pipeline> found = library.get(first);
    CHECK(exec::Pipeline::is_alive(found->identity()));
    CHECK(result_of(*found, 2) == 10);
    other.join();
    CHECK(exec::Pipeline::is_alive(found->identity()));
    CHECK(result_of(*found, 2) == 10);
  });
}

TEST_CASE("kernel library: the target of a processor is what decides its machine code") {
  using machine::InstructionSet;
  std::set<std::string> identities;
  // One without a length that could be taken for the version of the interface.
  for (const char* version : {"", "version 2"}) {
    for (auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
      identities.insert(exec::cpu_target_identity(version, set));
  }
  CHECK(identities.size() == 6);
  std::string abi(sizeof(jit::abi_version), '\0');
  std::memcpy(abi.data(), &jit::abi_version, abi.size());
  for (const std::string& identity : identities) CHECK(identity.starts_with(abi));
  std::set<std::string> names;
  for (auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    exec::Target& target = exec::cpu_target(set);
    CHECK(target.identity() == exec::cpu_target_identity(jit::default_compiler_version(), set));
    names.insert(target.name());
  }
  CHECK(names.size() == 3);
}

TEST_CASE("kernel library: one request for two targets is two kernels") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  FakeTarget other("fake 2");
  auto there = make_ref<KernelRequest>(named_source("affine", "2 1"), exec::KernelOptions{}, other);
  Ref<exec::Pipeline> here = library.get(request_for("2 1"));
  CHECK(library.get(Ref<const KernelRequest>(there)) != here);
  CHECK(compiler.compiles.load() == 2);
}

TEST_CASE("kernel library: two keys with one hash are told apart") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8));
  Hash128 hash{1, 2};
  auto collide = [&](const std::string& text) {
    return Ref<const KernelRequest>(make_ref<KernelRequest>(
        named_source("k", text), exec::KernelOptions{}, FakeTarget::get(), hash));
  };
  auto a = collide("2 0"), b = collide("3 0");
  CHECK(result_of(*library.get(a), 7) == 14);
  CHECK(result_of(*library.get(b), 7) == 21);
  CHECK(result_of(*library.get(a), 7) == 14);
  CHECK(compiler.compiles.load() == 2);
}

TEST_CASE("kernel library: the bound is kept by dropping what was not used for longest") {
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(2));
  auto a = request_for("1 0"), b = request_for("2 0"), c = request_for("3 0");
  library.get(a);
  library.get(b);
  library.get(a);
  library.get(c);  // drops b
  CHECK(library.stats().evictions == 1);
  CHECK(library.stats().entries == 2);
  library.get(a);
  CHECK(compiler.compiles.load() == 3);
  library.get(b);
  CHECK(compiler.compiles.load() == 4);
  CHECK(library.stats().entries == 2);
  library.clear();
  CHECK(library.stats().entries == 0);
  library.get(a);
  CHECK(compiler.compiles.load() == 5);
}

TEST_CASE("kernel library: a dropped pipeline lives while somebody holds it, and not longer") {
  size_t before = exec::Pipeline::live_count();
  FakeCompiler compiler;
  {
    KernelLibrary library(compiler.parts(1));
    Ref<exec::Pipeline> held = library.get(request_for("1 0"));
    for (int i = 2; i < 20; ++i) library.get(request_for(affine_source(i, 0)));
    CHECK(result_of(*held, 9) == 9);
    CHECK(exec::Pipeline::live_count() == before + 2);
    uint64_t identity = held->identity();
    CHECK(exec::Pipeline::is_alive(identity));
    held.reset();
    CHECK(!exec::Pipeline::is_alive(identity));
  }
  CHECK(exec::Pipeline::live_count() == before);
}

TEST_CASE("kernel library: what it hands out lives, whatever others make it drop") {
  FakeCompiler compiler;
  auto a = request_for("1 0"), b = request_for("2 0");
  controlled::for_each_schedule(40, [&](const controlled::Schedule&) {
    KernelLibrary library(compiler.parts(1));
    on_threads(3, [&](int thread) {
      for (int i = 0; i < 4; ++i) {
        Ref<exec::Pipeline> pipeline = library.get((i + thread) % 2 ? a : b);
        if (!exec::Pipeline::is_alive(pipeline->identity())) throw std::runtime_error("released");
      }
    });
  });
}

TEST_CASE("kernel library: many threads, one compilation of each kernel") {
  FakeCompiler compiler;
  constexpr int kernels = 4;
  const int threads = scaled(16, 8, 4);
  compiler.hook = [](const msl::KernelSource&) { sync::sleep_for(std::chrono::milliseconds(2)); };
  KernelLibrary library(compiler.parts(64));
  on_threads(threads, [&](int thread) {
    for (int i = 0; i < kernels; ++i) {
      int kernel = (i + thread) % kernels;
      Ref<exec::Pipeline> pipeline = library.get(request_for(affine_source(kernel, 1)));
      if (result_of(*pipeline, 10) != 10 * kernel + 1) throw std::runtime_error("another kernel");
    }
  });
  CHECK(compiler.compiles.load() == kernels);
  KernelCacheStats stats = library.stats();
  CHECK(stats.hits + stats.waits + stats.misses == static_cast<uint64_t>(threads * kernels));
  CHECK(stats.misses == kernels);
}

TEST_CASE("kernel library: other kernels do not wait for one that is being compiled") {
  FakeCompiler compiler;
  sync::Atomic<bool> is_compiling{false}, may_end{false};
  compiler.hook = [&](const msl::KernelSource& source) {
    if (!source.text.starts_with("1 ")) return;
    is_compiling.store(true);
    while (!may_end.load()) sync::sleep_for(std::chrono::microseconds(100));
  };
  KernelLibrary library(compiler.parts(8));
  auto ready = request_for("2 0");
  library.get(ready);
  sync::Thread slow("slow", [&] { library.get(request_for("1 0")); });
  CHECK(eventually([&] { return is_compiling.load(); }));
  library.get(ready);               // a hit
  library.get(request_for("3 0"));  // another compilation
  library.clear();
  library.stats();
  may_end.store(true);
  slow.join();
  CHECK(library.stats().compiles == 3);
  // It was being made while the others were dropped, and is there.
  library.get(request_for("1 0"));
  CHECK(library.stats().compiles == 3);
}

TEST_CASE("kernel library: a failure is thrown to all who wait, and is not kept") {
  FakeCompiler compiler;
  sync::Atomic<bool> is_broken{true};
  const int threads = scaled(8, 8, 3);
  KernelLibrary library(compiler.parts(8));
  compiler.hook = [&](const msl::KernelSource&) {
    // Until all others wait.
    eventually([&] { return library.stats().waits == static_cast<uint64_t>(threads - 1); });
    if (is_broken.load()) throw jit::CompileError("[k] body:2:5: error: no such function");
  };
  sync::Atomic<int> failed{0};
  on_threads(threads, [&](int) {
    try {
      library.get(request_for("6 1"));
    } catch (const jit::CompileError& error) {
      if (std::string(error.what()).find("body:2:5") != std::string::npos) failed.fetch_add(1);
    }
  });
  CHECK(failed.load() == threads);
  CHECK(compiler.compiles.load() == 1);
  CHECK(library.stats().failures == 1);
  CHECK(library.stats().entries == 0);
  is_broken.store(false);
  compiler.hook = {};
  CHECK(result_of(*library.get(request_for("6 1")), 1) == 7);
}

TEST_CASE("hash: every byte and the length count") {
  std::set<Hash128> seen;
  std::string zeros;
  for (int i = 0; i < 200; ++i) {
    seen.insert(hash_bytes(zeros));
    zeros += '\0';
  }
  CHECK(seen.size() == 200);
  std::string text(100, 'a');
  Hash128 original = hash_bytes(text);
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      seen.insert(hash_bytes(changed));
      CHECK(hash_bytes(changed) != original);
    }
  }
  CHECK(seen.size() == 1000);
  // Words that change places are another text.
  CHECK(hash_bytes("0123456789abcdefFEDCBA9876543210") !=
        hash_bytes("FEDCBA98765432100123456789abcdef"));
  CHECK(to_hex({0x0123456789abcdef, 0xfedcba9876543210}) == "fedcba98765432100123456789abcdef");
}
