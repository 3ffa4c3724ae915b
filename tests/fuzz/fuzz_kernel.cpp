// The kernel compiler on texts that no programmer would write: files of a corpus, mutated. All of
// what `holdfast kernel check` does runs, from the token pass to the object. What is allowed: a
// kernel, or a CompileError that names what is wrong. What is found: the end of the process, any
// other exception, IR that LLVM's verifier refuses, more than the bounds of time and memory below.
//
//   fuzz-kernel [--seconds N] [--seed S] [--out FOLDER] CORPUS   the files as they are, then
//   mutated fuzz-kernel FILE...                                          these files alone, with
//   all options
//
// A case is its seed and number: the same text and options each time. That of a finding is written
// to FOLDER. Cases run in child processes, so that the one that ends its process is known.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "devices/cpu/jit/compiler.h"
#include "tests/fuzz/kernel_words.h"
#include "tools/holdfast/isolated.h"

namespace {

using namespace holdfast;
using namespace holdfast::fuzzing;
namespace fs = std::filesystem;

constexpr unsigned seconds_of_a_case = 30;
// Address space: each compilation that was given up keeps its stack (msl/frontend/guard.h).
constexpr uint64_t bytes_of_a_batch = uint64_t{12} << 30;
constexpr uint32_t batch = 16;
constexpr size_t most_kernels = 3, longest_text = 200'000;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return n == 0 ? 0 : next() % n; }
  bool one_in(size_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

struct Corpus {
  std::vector<std::string> names, texts;
  std::vector<std::vector<std::string>> tokens;
};

// Words, numbers, other characters by themselves; spaces go with what precedes them.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> tokens;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Corpus load(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".metal") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Corpus corpus;
  for (const fs::path& path : paths) {
    corpus.names.push_back(path.filename().string());
    corpus.texts.push_back(read(path));
    corpus.tokens.push_back(split(corpus.texts.back()));
  }
  return corpus;
}

template <size_t n>
const char* any(Random& random, const char* const (&list)[n]) {
  return list[random.below(n)];
}

void mutate(std::vector<std::string>& tokens, const Corpus& corpus, Random& random) {
  auto at = [&] { return tokens.begin() + static_cast<ptrdiff_t>(random.below(tokens.size())); };
  auto run = [&](std::vector<std::string>::iterator from, size_t most) {
    return from + static_cast<ptrdiff_t>(std::min<size_t>(
                      1 + random.below(most), static_cast<size_t>(tokens.end() - from)));
  };
  if (tokens.empty()) tokens.push_back(" ");
  // The next token from a random one on that is good, as far as there is one.
  auto find = [&](auto is_good) {
    auto from = at(), found = std::find_if(from, tokens.end(), is_good);
    return found != tokens.end() ? found : from;
  };
  switch (random.below(20)) {
    case 12:
    case 13:
      *find([](const std::string& t) { return std::isdigit(static_cast<unsigned char>(t[0])); }) =
          std::string(any(random, numbers)) + " ";
      break;
    case 14:
      *find([](const std::string& t) { return t[0] && std::strchr("+-*/%&|^<>", t[0]); }) =
          std::string(any(random, operators)) + " ";
      break;
    case 15:
    case 16:
      *find([](const std::string& t) {
        return std::any_of(std::begin(types), std::end(types), [&](const char* type) {
          return t.starts_with(type) && t.size() <= std::strlen(type) + 1;
        });
      }) = std::string(any(random, types)) + " ";
      break;
    case 17:
    case 18:
    case 19: {  // a statement where one may be
      auto end = find([](const std::string& t) { return t[0] == ';' || t[0] == '{'; });
      tokens.insert(end + 1, std::string("\n") + any(random, lines) + "\n");
      break;
    }
    case 0: {
      auto from = at();
      tokens.erase(from, run(from, 1 + random.below(8)));
      break;
    }
    case 1:
    case 2:
      *at() = std::string(any(random, words)) + " ";
      break;
    case 3:
    case 4:
      tokens.insert(at(), std::string(any(random, words)) + " ");
      break;
    case 5:
    case 6:
      tokens.insert(at(), std::string("\n") + any(random, lines) + "\n");
      break;
    case 7:
      std::swap(*at(), *at());
      break;
    case 8: {  // deep nesting, long lists
      auto from = at();
      std::vector<std::string> piece(from, run(from, 4)), copies;
      const size_t count = random.one_in(6) ? 20'000 : 1 + random.below(200);
      for (size_t i = 0; i < count && copies.size() < 40'000; ++i)
        copies.insert(copies.end(), piece.begin(), piece.end());
      tokens.insert(at(), copies.begin(), copies.end());
      break;
    }
    case 9:
    case 10: {  // a piece of another file
      const auto& other = corpus.tokens[random.below(corpus.tokens.size())];
      if (other.empty()) break;
      const size_t from = random.below(other.size());
      const size_t length =
          std::min(other.size() - from, 1 + random.below(random.one_in(4) ? 400 : 12));
      tokens.insert(at(), other.begin() + static_cast<ptrdiff_t>(from),
                    other.begin() + static_cast<ptrdiff_t>(from + length));
      break;
    }
    default: {  // any byte
      std::string& token = *at();
      if (token.empty()) break;
      token[random.below(token.size())] = static_cast<char>(random.next());
      if (random.one_in(3)) tokens.resize(1 + random.below(tokens.size()));
    }
  }
}

struct Case {
  std::string name;
  msl::KernelSource source;
  jit::CompileOptions options;
};

Case make_case(const Corpus& corpus, uint64_t seed, uint32_t number) {
  const size_t count = corpus.texts.size();
  Random random(seed * 1'000'003 + number);
  Case made;
  std::string text;
  if (number < count) {
    made.name = corpus.names[number];
    text = corpus.texts[number];
  } else {
    const size_t base = random.below(count);
    made.name = corpus.names[base] + ", mutated";
    std::vector<std::string> tokens = corpus.tokens[base];
    const size_t rounds = 1 + random.below(random.one_in(4) ? 16 : 3);
    for (size_t i = 0; i < rounds; ++i) mutate(tokens, corpus, random);
    for (const std::string& token : tokens) {
      if (text.size() + token.size() > longest_text) break;
      text += token;
    }
  }
  made.source.kernel = "fuzz.metal";
  made.source.text = text;
  made.source.parts = {{"fuzz.metal", 0, text.size()}};
  made.source.math = static_cast<msl::MathMode>(random.below(3));
  made.source.assume_missing_constants =
      number < count ? (number + seed) % 2 == 0 : !random.one_in(4);
  if (random.one_in(4))
    made.source.constants = {{0, "", "bool", {1}}, {3, "", "int", {random.next()}}};
  constexpr jit::Lowering lowerings[] = {jit::Lowering::automatic, jit::Lowering::automatic,
                                         jit::Lowering::automatic, jit::Lowering::reference,
                                         jit::Lowering::checked,   jit::Lowering::widened};
  made.options.lowering =
      number < count ? jit::Lowering::automatic : lowerings[random.below(std::size(lowerings))];
  made.options.instruction_set = static_cast<jit::InstructionSet>(random.below(3));
  made.options.guarded = !random.one_in(4);
  return made;
}

// What is wrong with the answer; empty when nothing is.
std::string try_source(msl::KernelSource source, const jit::CompileOptions& options) {
  auto is_suspicious = [](const std::string& text) {
    return text.find("internal error") != std::string::npos ||
           text.find("IR is broken") != std::string::npos ||
           text.find("a bug of") != std::string::npos;
  };
  auto attempt = [&](auto work) -> std::string {
    try {
      return work();
    } catch (const msl::CompileError& error) {
      return is_suspicious(error.what()) ? error.what() : "";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  std::vector<msl::KernelInterface> kernels;
  std::string wrong = attempt([&] {
    kernels = jit::default_compiler().list(source);
    return std::string();
  });
  if (kernels.size() > most_kernels) kernels.resize(most_kernels);
  for (const msl::KernelInterface& kernel : kernels) {
    source.entry = kernel.entry;
    std::string found = attempt([&] {
      jit::CompiledKernel compiled = jit::default_compiler().compile(source, options);
      return is_suspicious(compiled.remark) ? compiled.remark : "";
    });
    if (wrong.empty()) wrong = found;
  }
  return wrong;
}

struct Settings {
  double seconds = 15;
  uint64_t seed = 1;
  fs::path out = ".";
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int fuzz(const Corpus& corpus, const Settings& settings) {
  const double end = now() + settings.seconds;
  const auto whole = static_cast<uint32_t>(corpus.texts.size());
  uint32_t next = 0, failures = 0;
  std::vector<std::string> found;
  while ((next < whole || now() < end) && failures < 20) {
    const uint32_t first = next;
    tool::Ending ending =
        tool::run_isolated({seconds_of_a_case, bytes_of_a_batch}, [&](tool::Progress& progress) {
          for (uint32_t i = first; i < first + batch && (i < whole || now() < end); ++i) {
            Case made = make_case(corpus, settings.seed, i);
            progress.begin(i, made.name);
            const std::string wrong = try_source(made.source, made.options);
            if (wrong.empty()) continue;
            progress.begin(i, wrong);
            return 3;
          }
          return 0;
        });
    next = ending.status == 0 ? first + batch : ending.step + 1;
    if (ending.status == 0) continue;
    ++failures;
    Case made = make_case(corpus, settings.seed, ending.step);
    const fs::path file = settings.out / ("kernel-" + std::to_string(settings.seed) + "-" +
                                          std::to_string(ending.step) + ".metal");
    std::ofstream(file, std::ios::binary) << made.source.text;
    std::printf(
        "FOUND case %u of seed %llu (%s, lowering %d, set %d, math %d, guarded %d): %s\n  written "
        "to %s\n",
        ending.step, static_cast<unsigned long long>(settings.seed), made.name.c_str(),
        static_cast<int>(made.options.lowering), static_cast<int>(made.options.instruction_set),
        static_cast<int>(made.source.math), made.options.guarded,
        ending.status < 0 ? ending.problem.c_str() : ending.name.c_str(), file.c_str());
    std::fflush(stdout);
  }
  std::printf("%u cases, %zu files of corpus, seed %llu: %u findings\n", next, corpus.texts.size(),
              static_cast<unsigned long long>(settings.seed), failures);
  return failures == 0 ? 0 : 1;
}

// Files by themselves, with every lowering and instruction set.
int reproduce(const std::vector<std::string>& files) {
  bool all_good = true;
  for (const std::string& file : files) {
    for (int k = 0; k < 18; ++k) {
      msl::KernelSource source;
      source.kernel = "fuzz.metal";
      source.text = read(file);
      source.parts = {{"fuzz.metal", 0, source.text.size()}};
      source.assume_missing_constants = k % 2 == 0;
      jit::CompileOptions options;
      constexpr jit::Lowering lowerings[] = {jit::Lowering::automatic, jit::Lowering::reference,
                                             jit::Lowering::checked};
      options.lowering = lowerings[k / 2 % 3];
      options.instruction_set = static_cast<jit::InstructionSet>(k / 6);
      options.guarded = true;
      std::string wrong;
      tool::Ending ending =
          tool::run_isolated({seconds_of_a_case, bytes_of_a_batch}, [&](tool::Progress& progress) {
            progress.begin(0, "");
            std::string text = try_source(source, options);
            progress.begin(0, text);
            return text.empty() ? 0 : 3;
          });
      if (ending.status == 0) continue;
      all_good = false;
      std::printf("%s, lowering %d, set %d, assumed %d: %s\n", file.c_str(),
                  static_cast<int>(options.lowering), static_cast<int>(options.instruction_set),
                  source.assume_missing_constants,
                  ending.status < 0 ? ending.problem.c_str() : ending.name.c_str());
    }
  }
  return all_good ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const bool has_value = i + 1 < count;
    if (argument == "--seconds" && has_value) {
      settings.seconds = std::atof(arguments[++i]);
    } else if (argument == "--seed" && has_value) {
      settings.seed = std::strtoull(arguments[++i], nullptr, 10);
      if (settings.seed == 0)
        settings.seed =
            static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
            1'000'000'007;
    } else if (argument == "--out" && has_value) {
      settings.out = arguments[++i];
    } else {
      paths.push_back(argument);
    }
  }
  jit::default_compiler();  // once, for all children
  if (paths.size() == 1 && fs::is_directory(paths[0])) return fuzz(load(paths[0]), settings);
  if (!paths.empty()) return reproduce(paths);
  std::fprintf(stderr,
               "usage: fuzz-kernel [--seconds N] [--seed S] [--out FOLDER] CORPUS | FILE...\n");
  return 2;
}
