// The disk cache: found again by another library and another process; nothing on disk is trusted.
#include "exec/disk_cache.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "devices/cpu/jit/kernel_format.h"
#include "exec/kernel_file.h"
#include "kernel_library/dispatching.h"
#include "kernel_library/temporary_folder.h"
#include "support/child.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using exec::DiskCache;
using exec::KernelLibrary;
namespace fs = std::filesystem;

namespace {

// Asks a new library, with nothing in memory, for a kernel, and checks what it computes.
KernelCacheStats ask(const std::string& folder, const std::string& text, int32_t x,
                     int32_t expected) {
  KernelLibrary library(FakeCompiler::parts(8, folder));
  Ref<exec::Pipeline> pipeline = library.get(request_for(text));
  int32_t y = 0;
  void* buffers[] = {&x, &y};
  jit::DispatchArguments arguments;
  arguments.buffers = buffers;
  static_cast<const exec::CpuKernel&>(*pipeline).run_groups(arguments, 0, 1);
  CHECK(y == expected);
  return library.stats();
}

fs::path only_entry(const std::string& folder) {
  auto files = files_in(folder);
  REQUIRE(files.size() == 1);
  return files[0];
}

jit::CompiledKernel some_kernel() {
  jit::CompiledKernel kernel;
  kernel.interface = affine_interface("affine");
  kernel.symbol = "affine.group";
  kernel.object = {'c', 'o', 'd', 'e'};
  kernel.remark = "a remark";
  kernel.race = "a race";
  kernel.lowering = jit::Lowering::reference;
  kernel.threadgroup_bytes = 12;
  kernel.frame_bytes = 34;
  kernel.register_bytes = 56;
  kernel.interface.max_threads = 256;
  kernel.interface.threadgroup_bytes = 99;
  return kernel;
}

constexpr size_t header = 36;  // bytes before the body of an entry
// An entry with this body behind a header that fits it.
std::string with_header(const std::string& body) {
  std::string bytes = exec::to_kernel_file("key", "").substr(0, header);
  Hash128 checksum = hash_bytes(body);
  uint64_t size = body.size();
  std::memcpy(bytes.data() + 12, &size, 8);
  std::memcpy(bytes.data() + 20, &checksum.low, 8);
  std::memcpy(bytes.data() + 28, &checksum.high, 8);
  return bytes + body;
}

}  // namespace

TEST_CASE("disk cache: a kernel is found again without a compiler") {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/a/b/kernels";  // made with its parents
  KernelCacheStats first = ask(folder, "3 4", 5, 19);
  CHECK(first.compiles == 1);
  CHECK(first.disk_hits == 0);
  KernelCacheStats second = ask(folder, "3 4", 5, 19);
  CHECK(second.compiles == 0);
  CHECK(second.disk_hits == 1);
  CHECK(second.misses == 1);
  struct stat status{};
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  REQUIRE(::stat(only_entry(folder).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("disk cache: a kernel that does not compile leaves nothing behind") {
  TemporaryFolder temporary;
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8, temporary.path() + "/kernels"));
  CHECK_THROWS_AS(library.get(request_for("error")), jit::CompileError);
  CHECK(files_in(temporary.path() + "/kernels").empty());
}

TEST_CASE("disk cache: what is written is read back as it was") {
  jit::CompiledKernel kernel = some_kernel();
  auto back = jit::from_bytes(jit::to_bytes(kernel));
  REQUIRE(back);
  CHECK(back->object == kernel.object);
  CHECK(back->symbol == kernel.symbol);
  CHECK(back->remark == kernel.remark);
  CHECK(back->race == kernel.race);
  CHECK(back->lowering == kernel.lowering);
  CHECK(back->threadgroup_bytes == 12);
  CHECK(back->frame_bytes == 34);
  CHECK(back->register_bytes == 56);
  CHECK(back->interface.entry == kernel.interface.entry);
  CHECK(back->interface.attributes == kernel.interface.attributes);
  CHECK(back->interface.max_threads == 256);
  CHECK(back->interface.threadgroup_bytes == 99);
  REQUIRE(back->interface.arguments.size() == 2);
  CHECK(back->interface.arguments[1].name == "y");
  CHECK(back->interface.arguments[1].written);
  CHECK(back->interface.arguments[1].slot == 1);
  CHECK(back->interface.arguments[1].element_size == 4);
  const std::string file = exec::to_kernel_file("key", "a kernel");
  CHECK(exec::from_kernel_file(file, "key") == "a kernel");
  CHECK(!exec::from_kernel_file(file, "another key"));
}

TEST_CASE("disk cache: every truncation and every changed bit is noticed") {
  const std::string kernel = jit::to_bytes(some_kernel());
  std::string bytes = exec::to_kernel_file("key", kernel);
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK(!exec::from_kernel_file(std::string_view(bytes).substr(0, size), "key"));
    if (size < kernel.size()) CHECK(!jit::from_bytes(std::string_view(kernel).substr(0, size)));
  }
  CHECK(!exec::from_kernel_file(bytes + "x", "key"));
  CHECK(!jit::from_bytes(kernel + "x"));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      CHECK(!exec::from_kernel_file(changed, "key"));
    }
  }
}

TEST_CASE("disk cache: bytes behind an entry are noticed, although the checksum is right") {
  std::string body = exec::to_kernel_file("key", "a kernel").substr(header);
  CHECK(exec::from_kernel_file(with_header(body), "key"));
  CHECK(!exec::from_kernel_file(with_header(body + "x"), "key"));
}

TEST_CASE("disk cache: hostile lengths behind a right checksum are refused, whatever they are") {
  // The checksum is made right after each change, so that the readers themselves are tried.
  std::string good = exec::to_kernel_file("key", jit::to_bytes(some_kernel()));
  Random random(7);
  int accepted = 0;
  for (int round = 0; round < scaled(20000, 2000, 200); ++round) {
    std::string body = good.substr(header);
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes) {
      size_t at = random.below(static_cast<uint32_t>(body.size()));
      switch (random.below(4)) {
        case 0:
          body[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          body.resize(std::max<size_t>(at, 1));
          break;
        case 2:
          body.insert(at, std::string(random.below(40), '\xff'));
          break;
        default:
          for (size_t i = at; i < std::min(at + 8, body.size()); ++i) body[i] = '\xff';
      }
    }
    const std::string file = with_header(body);
    auto bytes = exec::from_kernel_file(file, "key");
    auto kernel = bytes ? jit::from_bytes(*bytes) : std::nullopt;
    if (!kernel) continue;
    ++accepted;
    // What is accepted is no larger than the file, and its enumerations are in range.
    CHECK(kernel->object.size() <= body.size());
    CHECK(kernel->lowering <= jit::Lowering::checked);
    for (const auto& argument : kernel->interface.arguments) {
      CHECK(argument.kind <= msl::KernelArgument::Kind::threadgroup);
    }
  }
  CHECK(accepted > 0);  // a changed letter in a name is a sound file
}

TEST_CASE("disk cache: a damaged entry is compiled again and replaced") {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  ask(folder, "3 4", 5, 19);
  fs::path entry = only_entry(folder);
  const std::string good = read_file(entry);

  // Another kernel's entry under this one's name: a foreign file, or a collision of hashes.
  TemporaryFolder elsewhere;
  ask(elsewhere.path() + "/kernels", "100 100", 1, 200);
  const std::string foreign = read_file(only_entry(elsewhere.path() + "/kernels"));

  std::string changed = good;
  changed[changed.size() / 2] ^= 1;
  std::string unsound = exec::to_kernel_file(request_for("3 4")->key(), "not code");
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(0, 20), good.substr(0, good.size() - 1),
        good + "more", changed, foreign, unsound, std::string(100000, '\0')}) {
    CAPTURE(bad.size());
    write_file(entry, bad);
    KernelCacheStats stats = ask(folder, "3 4", 5, 19);
    CHECK(stats.compiles == 1);
    CHECK(stats.disk_hits == 0);
    CHECK(read_file(entry) == good);
    CHECK(ask(folder, "3 4", 5, 19).disk_hits == 1);
  }
}

TEST_CASE("disk cache: what is not a plain file of ours is not read") {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  ask(folder, "3 4", 5, 19);
  fs::path entry = only_entry(folder);
  fs::path aside = temporary.path() + "/aside";
  SUBCASE("a link") {
    fs::rename(entry, aside);
    fs::create_symlink(aside, entry);
    CHECK(ask(folder, "3 4", 5, 19).compiles == 1);
    CHECK(fs::is_regular_file(fs::symlink_status(entry)));  // replaced, not written through
  }
  SUBCASE("a folder") {
    fs::remove(entry);
    fs::create_directory(entry);
    CHECK(ask(folder, "3 4", 5, 19).compiles == 1);
  }
  SUBCASE("a pipe, which nobody writes to") {
    fs::remove(entry);
    REQUIRE(::mkfifo(entry.c_str(), 0600) == 0);
    CHECK(ask(folder, "3 4", 5, 19).compiles == 1);
  }
  SUBCASE("a file that others may write") {
    fs::permissions(entry, fs::perms(0666));
    CHECK(ask(folder, "3 4", 5, 19).compiles == 1);
  }
}

TEST_CASE("disk cache: a folder that others may enter is not used") {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  ask(folder, "3 4", 5, 19);
  for (int mode : {0755, 0770, 0701}) {
    fs::permissions(folder, static_cast<fs::perms>(mode));
    CHECK(ask(folder, "3 4", 5, 19).compiles == 1);
    CHECK(ask(folder, "7 7", 1, 14).compiles == 1);
    CHECK(files_in(folder).size() == 1);
  }
  fs::permissions(folder, fs::perms(0700));
  CHECK(ask(folder, "3 4", 5, 19).disk_hits == 1);
}

TEST_CASE("disk cache: a folder that cannot be made or is a link is done without") {
  TemporaryFolder temporary;
  write_file(temporary.path() + "/file", "in the way");
  CHECK(ask(temporary.path() + "/file/kernels", "3 4", 5, 19).compiles == 1);
  CHECK(ask("/proc/no such place/kernels", "3 4", 5, 19).compiles == 1);
  fs::create_directory(temporary.path() + "/real");
  fs::create_directory_symlink(temporary.path() + "/real", temporary.path() + "/link");
  CHECK(ask(temporary.path() + "/link", "3 4", 5, 19).compiles == 1);
  CHECK(files_in(temporary.path() + "/real").empty());
}

TEST_CASE("disk cache: a full disk is done without [child]") {
  if (!is_child("disk cache: a full disk is done without [child]")) return;
  TemporaryFolder temporary;
  // Files may not grow: every write fails as on a full disk.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit none{0, 0};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  CHECK(ask(temporary.path() + "/kernels", "3 4", 5, 19).compiles == 1);
  CHECK(files_in(temporary.path() + "/kernels").empty());  // nor a half-written one
}

TEST_CASE("disk cache: a full disk is done without") {
  ChildResult result = run_child("disk cache: a full disk is done without [child]");
  CHECK_MESSAGE(result.exit_code == 0, result.output);
}

TEST_CASE("disk cache: the bound in bytes is kept, the longest unused go first") {
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  FakeCompiler compiler;
  std::string padding(10000, 'x');
  constexpr uint64_t limit = 200000;
  DiskCache cache(folder, limit);
  auto store = [&](int i) {
    auto request = request_for(affine_source(i, 0, padding));
    cache.store(*request, FakeBinary(request->source().text));
  };
  auto is_there = [&](int i) {
    return DiskCache(folder, limit).load(*request_for(affine_source(i, 0, padding))).has_value();
  };
  auto total = [&] {
    uint64_t bytes = 0;
    for (const fs::path& file : files_in(folder)) bytes += fs::file_size(file);
    return bytes;
  };
  for (int i = 0; i < 40; ++i) {
    store(i);
    CHECK(total() <= limit);
    CHECK(is_there(0));  // used all the time
    sync::sleep_for(std::chrono::milliseconds(controlled::enabled() ? 0 : 5));
  }
  CHECK(is_there(39));
  CHECK(!is_there(1));
  // Left behind by a process that died in the middle.
  write_file(folder + "/.new-1-1-1", "half");
  fs::last_write_time(folder + "/.new-1-1-1",
                      fs::file_time_type::clock::now() - std::chrono::hours(5));
  write_file(folder + "/.new-2-2-2", "being written");
  for (int i = 100; i < 140; ++i) store(i);
  CHECK(!fs::exists(folder + "/.new-1-1-1"));
  CHECK(fs::exists(folder + "/.new-2-2-2"));
}

TEST_CASE("disk cache: files that a source includes are part of its key") {
  TemporaryFolder temporary;
  write_file(temporary.path() + "/inner.h", "1");
  write_file(temporary.path() + "/outer.h", "#include \"inner.h\"\n");
  auto request = [&](const std::string& text) {
    msl::KernelSource source = named_source("k", text);
    source.directory = temporary.path();
    return exec::KernelRequest(source, {}, FakeTarget::get());
  };
  std::string text = "3 4\n#  include \"outer.h\"\n#include <metal_stdlib>\n";
  std::string before = request(text).key();
  CHECK(request(text).key() == before);
  CHECK(request(text).is_cacheable());
  write_file(temporary.path() + "/inner.h", "2");
  CHECK(request(text).key() != before);
  write_file(temporary.path() + "/inner.h", "1");
  CHECK(request(text).key() == before);
  fs::remove(temporary.path() + "/inner.h");
  CHECK(request(text).key() != before);
  // A file in a folder finds its neighbours there first.
  fs::create_directory(temporary.path() + "/sub");
  write_file(temporary.path() + "/sub/part.h", "#include \"number.h\"\n");
  write_file(temporary.path() + "/sub/number.h", "1");
  std::string nested = "3 4\n#import \"sub/part.h\"\n";
  before = request(nested).key();
  write_file(temporary.path() + "/sub/number.h", "2");
  CHECK(request(nested).key() != before);
  before = request(nested).key();
  write_file(temporary.path() + "/number.h", "3");  // not used, but might be
  CHECK(request(nested).key() != before);
  // Which file this is, only a preprocessor knows: compiled each time.
  CHECK(!request("3 4\n#if __has_include(\"x.h\")\n#endif\n").is_cacheable());
  CHECK(!request("3 4\n#include FILE\n").is_cacheable());
  FakeCompiler compiler;
  KernelLibrary library(compiler.parts(8, temporary.path() + "/kernels"));
  msl::KernelSource source = named_source("k", "3 4\n#include FILE\n");
  source.directory = temporary.path();
  auto computed = Ref<const exec::KernelRequest>(
      make_ref<exec::KernelRequest>(source, exec::KernelOptions{}, FakeTarget::get()));
  library.get(computed);
  library.get(computed);
  CHECK(compiler.compiles.load() == 2);
  CHECK(files_in(temporary.path() + "/kernels").empty());
}

TEST_CASE("disk cache: where it is") {
  auto with = [](const char* name, const char* value, auto body) {
    const char* old = std::getenv(name);
    std::string saved = old ? old : "";
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
    body();
    old ? ::setenv(name, saved.c_str(), 1) : ::unsetenv(name);
  };
  with("HOLDFAST_CACHE_DIR", nullptr, [&] {
    with("HOME", "/home/someone", [&] {
      with("XDG_CACHE_HOME", nullptr,
           [] { CHECK(DiskCache::default_folder() == "/home/someone/.cache/holdfast/kernels"); });
      with("XDG_CACHE_HOME", "relative",
           [] { CHECK(DiskCache::default_folder() == "/home/someone/.cache/holdfast/kernels"); });
      with("XDG_CACHE_HOME", "/cache",
           [] { CHECK(DiskCache::default_folder() == "/cache/holdfast/kernels"); });
    });
    with("HOME", nullptr, [&] {
      with("XDG_CACHE_HOME", nullptr, [] { CHECK(DiskCache::default_folder().empty()); });
    });
  });
  with("HOLDFAST_CACHE_DIR", "/chosen",
       [] { CHECK(DiskCache::default_folder() == "/chosen/kernels"); });
}

namespace {

constexpr int shared_kernels = 40;

// What each of two processes does at the same time in one folder.
void use_shared_folder(const std::string& folder) {
  on_threads(4, [&](int thread) {
    for (int i = 0; i < shared_kernels; ++i) {
      int factor = (i * 7 + thread * 11) % shared_kernels;
      ask(folder, affine_source(factor, 1, std::string(2000, 'p')), 3, 3 * factor + 1);
    }
  });
}

}  // namespace

TEST_CASE("disk cache: two processes in one folder [child]") {
  if (!is_child("disk cache: two processes in one folder [child]")) return;
  use_shared_folder(std::getenv("HOLDFAST_TEST_FOLDER"));
}

TEST_CASE("disk cache: two processes in one folder") {
  if (controlled::enabled()) return;  // the scheduler knows one process
  TemporaryFolder temporary;
  std::string folder = temporary.path() + "/kernels";
  ChildResult result{};
  sync::Thread other("other process", [&] {
    result = run_child("disk cache: two processes in one folder [child]",
                       {"HOLDFAST_TEST_FOLDER=" + folder});
  });
  use_shared_folder(folder);
  other.join();
  CHECK_MESSAGE(result.exit_code == 0, result.output);
  CHECK(files_in(folder).size() == shared_kernels);  // no temporary file is left
  for (int i = 0; i < shared_kernels; ++i) {
    CHECK(ask(folder, affine_source(i, 1, std::string(2000, 'p')), 3, 3 * i + 1).disk_hits == 1);
  }
}
