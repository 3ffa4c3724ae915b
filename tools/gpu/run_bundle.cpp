// Runs a bundle (tests/jit/ptx/bundle_test.cpp) on an NVIDIA GPU: each kernel's results against
// those of the CPU, and the times of the kernels of `bench kernels` against the same algorithms
// compiled by nvcc (rivals.cu). Needs libcuda and nothing else of CUDA.
//
//   g++ -std=c++20 -O2 -static-libstdc++ -static-libgcc -o run_bundle tools/gpu/run_bundle.cpp -ldl
//   run_bundle FOLDER [--from CASE] [--no-times | --only-times]
//
// FOLDER holds manifest, data and rivals.cubin. Exit status 3: a kernel hung or faulted, after
// which the process cannot go on; the last line names the case to go on from (--from).
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Handle = void*;
using Address = uint64_t;

template <class F>
F* find(void* library, const char* name) {
  auto* function = reinterpret_cast<F*>(dlsym(library, name));
  if (!function) {
    std::fprintf(stderr, "libcuda has no %s\n", name);
    std::exit(2);
  }
  return function;
}

struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
#define FUNCTION(member, name, ...) \
  int (*member)(__VA_ARGS__) = find<int(__VA_ARGS__)>(library, name)
  FUNCTION(init, "cuInit", unsigned);
  FUNCTION(device, "cuDeviceGet", int*, int);
  FUNCTION(retain, "cuDevicePrimaryCtxRetain", Handle*, int);
  FUNCTION(set_current, "cuCtxSetCurrent", Handle);
  FUNCTION(synchronize, "cuCtxSynchronize", void);
  FUNCTION(allocate, "cuMemAlloc_v2", Address*, size_t);
  FUNCTION(up, "cuMemcpyHtoD_v2", Address, const void*, size_t);
  FUNCTION(down, "cuMemcpyDtoH_v2", void*, Address, size_t);
  FUNCTION(move, "cuMemcpyDtoD_v2", Address, Address, size_t);
  FUNCTION(fill, "cuMemsetD8_v2", Address, unsigned char, size_t);
  FUNCTION(load, "cuModuleLoadData", Handle*, const void*);
  FUNCTION(unload, "cuModuleUnload", Handle);
  FUNCTION(function, "cuModuleGetFunction", Handle*, Handle, const char*);
  FUNCTION(launch, "cuLaunchKernel", Handle, unsigned, unsigned, unsigned, unsigned, unsigned,
           unsigned, unsigned, Handle, void**, void**);
  FUNCTION(make_event, "cuEventCreate", Handle*, unsigned);
  FUNCTION(record, "cuEventRecord", Handle, Handle);
  FUNCTION(query, "cuEventQuery", Handle);
  FUNCTION(wait, "cuEventSynchronize", Handle);
  FUNCTION(elapsed, "cuEventElapsedTime", float*, Handle, Handle);
  FUNCTION(error_name, "cuGetErrorName", int, const char**);
#undef FUNCTION
};
Driver* driver = nullptr;

void check(int result, const std::string& what) {
  if (result == 0) return;
  const char* name = "?";
  driver->error_name(result, &name);
  std::printf("FATAL %s: %s\n", what.c_str(), name);
  std::fflush(stdout);
  std::_Exit(3);
}

using Size = std::array<uint32_t, 3>;
struct Variant {
  std::string positions, symbol;
  size_t at, bytes;
  Size grid, block;
  int gathers;
};
struct Argument {
  size_t at, bytes;
  int is_output, kind;
  size_t expected;
};
struct Case {
  std::string group, name;
  Size grid, threadgroup, groups;
  std::vector<Variant> variants;
  std::vector<Argument> arguments;
  std::string rival;
  uint32_t axis = 0, grow = 0;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<Case> read_manifest(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<Case> cases;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    auto three = [&] {
      Size size;
      words >> size[0] >> size[1] >> size[2];
      return size;
    };
    if (what == "case") {
      Case& one = cases.emplace_back();
      words >> one.group >> one.name;
    } else if (what == "dispatch") {
      cases.back().grid = three();
      cases.back().threadgroup = three();
      cases.back().groups = three();
    } else if (what == "variant") {
      Variant& one = cases.back().variants.emplace_back();
      words >> one.positions >> one.symbol >> one.at >> one.bytes;
      one.grid = three();
      one.block = three();
      words >> one.gathers;
    } else if (what == "argument") {
      Argument& one = cases.back().arguments.emplace_back();
      words >> one.at >> one.bytes >> one.is_output >> one.kind >> one.expected;
    } else if (what == "time") {
      words >> cases.back().rival >> cases.back().axis >> cases.back().grow;
    }
  }
  return cases;
}

struct Launch {
  Handle function;
  Size grid, block;
  std::vector<char> parameters;

  void operator()() const {
    size_t size = parameters.size();
    void* extra[] = {reinterpret_cast<void*>(1), const_cast<char*>(parameters.data()),
                     reinterpret_cast<void*>(2), &size, nullptr};
    check(driver->launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0,
                         nullptr, nullptr, extra),
          "launch");
  }
};

void append(std::vector<char>& block, const void* bytes, size_t count) {
  auto* first = static_cast<const char*>(bytes);
  block.insert(block.end(), first, first + count);
}

Address cancelled = 0;

std::vector<char> parameters_of(const std::vector<Address>& addresses, const Case& one,
                                const Size& grid, const Size& groups) {
  std::vector<char> block;
  append(block, addresses.data(), addresses.size() * 8);
  append(block, &cancelled, 8);
  append(block, grid.data(), 12);
  append(block, one.threadgroup.data(), 12);
  append(block, groups.data(), 12);
  append(block, "\0\0\0\0", 4);
  return block;
}

float float_of(const char* at, int kind) {
  if (kind == 3) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  if (kind == 1) {
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25)
                                  : std::ldexp(fraction, -24);
    return static_cast<float>(bits >> 15 ? -value : value);
  }
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

struct Difference {
  size_t elements = 0, all = 0;
  double largest = 0, scale = 0;
  std::string first;
};

Difference compare(const char* got, const char* expected, size_t bytes, int kind) {
  const size_t width = kind == 3 || kind == 0 ? 4 : 2;
  Difference result;
  for (size_t i = 0; i + width <= bytes; i += width) {
    ++result.all;
    float a = kind ? float_of(got + i, kind) : 0, b = kind ? float_of(expected + i, kind) : 0;
    if (kind && std::isfinite(b)) result.scale = std::max(result.scale, std::fabs(double{b}));
    if (std::memcmp(got + i, expected + i, width) == 0) continue;
    if (kind && std::isnan(a) && std::isnan(b)) continue;
    if (result.elements++ == 0) {
      uint32_t x = 0, y = 0;
      std::memcpy(&x, got + i, width);
      std::memcpy(&y, expected + i, width);
      char text[100];
      std::snprintf(text, sizeof text, "[%zu] %08x, not %08x", i / width, x, y);
      result.first = text;
      if (kind) {
        std::snprintf(text, sizeof text, " (%.9g, %.9g)", double{a}, double{b});
        result.first += text;
      }
    }
    if (kind) result.largest = std::max(result.largest, std::fabs(double{a} - double{b}));
  }
  if (bytes % width &&
      std::memcmp(got + bytes - bytes % width, expected + bytes - bytes % width, bytes % width)) {
    ++result.elements;
  }
  return result;
}

// Waits for the event; a kernel that takes more than ten seconds hangs.
void wait_for(Handle event, const std::string& what) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const int state = driver->query(event);
    if (state == 0) return;
    if (state != 600) check(state, what);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(10)) {
      std::printf("FATAL %s: hangs\n", what.c_str());
      std::fflush(stdout);
      std::_Exit(3);
    }
  }
}

struct Loaded {
  Handle module = nullptr, function = nullptr;
  Loaded(const char* image, const std::string& symbol) {
    check(driver->load(&module, image), "load " + symbol);
    check(driver->function(&function, module, symbol.c_str()), "find " + symbol);
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Runner {
 public:
  Runner(std::string data, std::string rivals)
      : data_(std::move(data)), rivals_(std::move(rivals)) {
    check(driver->allocate(&arena_, arena_bytes), "allocate");
    check(driver->allocate(&cancelled, 256), "allocate");
    check(driver->fill(cancelled, 0, 256), "fill");
    check(driver->make_event(&begin_, 0), "event");
    check(driver->make_event(&end_, 0), "event");
  }

  // Whether the variant gives the CPU's bits.
  bool compare_variant(const Case& one, const Variant& variant) {
    std::vector<Address> addresses;
    size_t used = 0;
    for (const Argument& argument : one.arguments) {
      addresses.push_back(arena_ + used);
      check(driver->up(arena_ + used, data_.data() + argument.at, argument.bytes), "upload");
      used += (argument.bytes + 1023) / 512 * 512;
    }
    Loaded code(data_.data() + variant.at, variant.symbol);
    Launch launch{code.function, variant.grid, variant.block,
                  parameters_of(addresses, one, one.grid, one.groups)};
    launch();
    check(driver->record(end_, nullptr), "record");
    wait_for(end_, one.group + " " + one.name + " " + variant.positions);
    bool good = true;
    for (size_t i = 0; i < one.arguments.size(); ++i) {
      const Argument& argument = one.arguments[i];
      if (!argument.is_output) continue;
      std::vector<char> got(argument.bytes);
      check(driver->down(got.data(), addresses[i], got.size()), "download");
      Difference d =
          compare(got.data(), data_.data() + argument.expected, got.size(), argument.kind);
      if (d.elements == 0) continue;
      good = false;
      std::printf("DIFFERS %s %s %s%s: argument %zu, %zu of %zu, largest %.3g of %.3g; %s\n",
                  one.group.c_str(), one.name.c_str(), variant.positions.c_str(),
                  variant.gathers ? " (gathers)" : "", i, d.elements, d.all, d.largest, d.scale,
                  d.first.c_str());
    }
    check(driver->unload(code.module), "unload");
    return good;
  }

  void time(const Case& one) {
    const Variant& variant = one.variants.front();
    std::vector<Address> addresses;
    size_t used = 0, moved = 0;
    for (const Argument& argument : one.arguments) {
      const size_t copies = argument.bytes >= 2048 ? one.grow : 1;
      addresses.push_back(arena_ + used);
      check(driver->up(arena_ + used, data_.data() + argument.at, argument.bytes), "upload");
      for (size_t copy = 1; copy < copies; ++copy)
        check(driver->move(arena_ + used + copy * argument.bytes, arena_ + used, argument.bytes),
              "copy");
      moved += copies * argument.bytes;
      used += (copies * argument.bytes + 1023) / 512 * 512;
    }
    Size grid = one.grid, groups = one.groups, blocks = variant.grid;
    grid[one.axis] *= one.grow;
    groups[one.axis] *= one.grow;
    blocks[one.axis] *= one.grow;
    Loaded ours(data_.data() + variant.at, variant.symbol);
    Loaded theirs(rivals_.data(), one.rival);
    Launch our{ours.function, blocks, variant.block, parameters_of(addresses, one, grid, groups)};
    Launch their{theirs.function, blocks, variant.block, {}};
    append(their.parameters, addresses.data(), addresses.size() * 8);
    auto milliseconds = [&](const Launch& launch, int times) {
      check(driver->record(begin_, nullptr), "record");
      for (int i = 0; i < times; ++i) launch();
      check(driver->record(end_, nullptr), "record");
      wait_for(end_, one.name);
      float result = 0;
      check(driver->elapsed(&result, begin_, end_), "elapsed");
      return double{result} / times;
    };
    milliseconds(our, 3);
    milliseconds(their, 3);
    const int times = std::clamp(static_cast<int>(20 / milliseconds(our, 5)), 5, 2000);
    std::vector<double> a, b;
    for (int round = 0; round < 7; ++round) {
      a.push_back(milliseconds(our, times));
      b.push_back(milliseconds(their, times));
    }
    std::printf(
        "TIME %-40s ours %9.2f us, nvcc %9.2f us, speed %.3f of nvcc (%.2f .. %.2f), %.0f GB/s of "
        "arguments\n",
        one.name.c_str(), median(a) * 1e3, median(b) * 1e3, median(b) / median(a),
        *std::min_element(b.begin(), b.end()) / *std::max_element(a.begin(), a.end()),
        *std::max_element(b.begin(), b.end()) / *std::min_element(a.begin(), a.end()),
        static_cast<double>(moved) / median(a) * 1e-6);
    std::fflush(stdout);
  }

 private:
  static constexpr size_t arena_bytes = size_t{4} << 30;
  std::string data_, rivals_;
  Address arena_ = 0;
  Handle begin_ = nullptr, end_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
  std::string folder, from;
  bool compares = true, times = true;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--from" && i + 1 < count) {
      from = words[++i];
    } else if (word == "--no-times") {
      times = false;
    } else if (word == "--only-times") {
      compares = false;
    } else {
      folder = word;
    }
  }
  Driver table;
  driver = &table;
  int device = 0;
  Handle context = nullptr;
  check(driver->init(0), "cuInit");
  check(driver->device(&device, 0), "cuDeviceGet");
  check(driver->retain(&context, device), "context");
  check(driver->set_current(context), "context");
  const std::vector<Case> cases = read_manifest(folder + "/manifest");
  Runner runner(read_file(folder + "/data"), read_file(folder + "/rivals.cubin"));
  std::map<std::string, std::array<size_t, 2>> tally;
  const size_t first = from.empty() ? 0 : std::strtoul(from.c_str(), nullptr, 10);
  for (size_t i = first; compares && i < cases.size(); ++i) {
    for (const Variant& variant : cases[i].variants) {
      std::printf("\rAT %zu %s", i, variant.positions.c_str());
      std::fflush(stdout);
      std::printf("\r");
      const bool good = runner.compare_variant(cases[i], variant);
      ++tally[cases[i].group + " " + variant.positions + (variant.gathers ? " gathers" : "")][good];
    }
  }
  std::printf("\n");
  for (auto& [what, results] : tally)
    std::printf("SUM %-30s %zu equal, %zu not\n", what.c_str(), results[1], results[0]);
  for (const Case& one : cases) {
    if (times && !one.rival.empty()) runner.time(one);
  }
}
