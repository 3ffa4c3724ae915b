// Trains a small transformer on a text, character by character, and lets it write.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>

#include "examples/transformer/model.h"

namespace {

namespace hf = holdfast;

constexpr const char* usage = R"(usage: transformer [options]

Trains a small transformer to predict the next character of a text, then writes some text with it.

  --text FILE      the text (default: a few lines about kelp)
  --steps N        steps of training (default 300)
  --batch N        sequences in a step (default 16)
  --context N      characters in a sequence (default 64)
  --width N        width of the model, a multiple of the heads (default 64)
  --heads N        heads of attention (default 4)
  --layers N       layers (default 2)
  --rate X         rate of learning (default 0.003)
  --checkpoint     compute each layer a second time for its gradient, to save memory
  --no-compile     run the step as it is written
  --help           this text
)";

constexpr const char* kelp =
    "The kelp stands in the water like a wood, and the swell goes through it as the wind goes "
    "through trees. It has no roots. What looks like roots is the holdfast: a fist of fingers "
    "that grips the rock and takes nothing from it, and only holds. The stem is as long as the "
    "water is deep, and the blades lie on the water and take the light. When the storm comes, "
    "the water pulls at the blades and the blades pull at the stem and the stem pulls at the "
    "holdfast, and the holdfast holds. A kelp that lets go is thrown on the beach, and the crabs "
    "come for it. A kelp that holds on has lost some blades by the morning, and grows new ones, "
    "as long as a hand in a day. So the wood stands, and the fish live in it, and the otters "
    "sleep on it with a blade around them, so that they are still there when they wake. ";

struct Options {
  transformer::Config model;
  std::string text = kelp;
  int steps = 300, batch = 16;
  float rate = 3e-3f;
  bool compile = true;
};

[[noreturn]] void fail(const std::string& why) {
  throw std::invalid_argument(why + "; --help says what there is");
}

int positive(const std::string& option, const char* value) {
  char* end = nullptr;
  long number = std::strtol(value, &end, 10);
  if (end == value || *end != 0 || number < 1 || number > 1'000'000) {
    fail(option + " expects a whole number from 1 to 1000000, got \"" + value + "\"");
  }
  return static_cast<int>(number);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    auto value = [&]() -> const char* {
      if (++i == argc) fail(option + " needs a value");
      return argv[i];
    };
    if (option == "--text") {
      const char* path = value();
      std::ifstream file(path, std::ios::binary);
      o.text.assign(std::istreambuf_iterator<char>(file), {});
      if (!file && o.text.empty()) fail(std::string("cannot read \"") + path + "\"");
    } else if (option == "--steps") {
      o.steps = positive(option, value());
    } else if (option == "--batch") {
      o.batch = positive(option, value());
    } else if (option == "--context") {
      o.model.context = positive(option, value());
    } else if (option == "--width") {
      o.model.width = positive(option, value());
    } else if (option == "--heads") {
      o.model.heads = positive(option, value());
    } else if (option == "--layers") {
      o.model.layers = positive(option, value());
    } else if (option == "--rate") {
      const char* given = value();
      char* end = nullptr;
      o.rate = std::strtof(given, &end);
      if (*end != 0 || !(o.rate > 0)) fail("--rate expects a number above 0");
    } else if (option == "--checkpoint") {
      o.model.checkpoint = true;
    } else if (option == "--no-compile") {
      o.compile = false;
    } else {
      fail("unknown option \"" + option + "\"");
    }
  }
  if (o.model.width % o.model.heads != 0) fail("--width must be a multiple of --heads");
  if (o.text.size() < static_cast<size_t>(o.model.context) + 2) {
    fail("the text must be longer than the context of " + std::to_string(o.model.context));
  }
  return o;
}

// Characters as numbers: each that is in the text has one.
struct Alphabet {
  std::string characters;
  std::vector<int> numbers = std::vector<int>(256, -1);
  explicit Alphabet(const std::string& text) {
    for (char c : text) {
      int& number = numbers[static_cast<unsigned char>(c)];
      if (number >= 0) continue;
      number = static_cast<int>(characters.size());
      characters += c;
    }
  }
};

// The text that the model writes after `start`.
std::string write_text(const Options& o, const std::vector<hf::array>& parameters,
                       const Alphabet& alphabet, const std::string& start, int length) {
  std::vector<int> tokens;
  for (char c : start) tokens.push_back(alphabet.numbers[static_cast<unsigned char>(c)]);
  std::string written = start;
  hf::array key = hf::random::key(1);
  for (int i = 0; i < length; ++i) {
    int count = std::min(static_cast<int>(tokens.size()), o.model.context);
    hf::array window(tokens.end() - count, {1, count}, hf::int32);
    hf::array scores = hf::take(transformer::logits(o.model, parameters, window), count - 1, 1);
    auto [next, own] = hf::random::split(key);
    key = next;
    tokens.push_back(hf::random::categorical(scores * 1.5f, -1, own).item<int>());
    written += alphabet.characters[static_cast<size_t>(tokens.back())];
  }
  return written;
}

void run(Options o) {
  Alphabet alphabet(o.text);
  o.model.vocabulary = static_cast<int>(alphabet.characters.size());
  std::vector<hf::array> parameters = transformer::make_parameters(o.model);
  size_t count = parameters.size(), size = 0;
  for (const hf::array& p : parameters) size += p.size();
  std::printf("%zu characters, %d kinds; %zu parameters in %d layers\n", o.text.size(),
              o.model.vocabulary, size, o.model.layers);

  std::function<std::vector<hf::array>(const std::vector<hf::array>&)> step =
      [&](const std::vector<hf::array>& in) {
        return transformer::train_step(o.model, in, o.rate);
      };
  if (o.compile) step = hf::compile(step);

  std::vector<hf::array> state = transformer::make_state(std::move(parameters));
  std::mt19937 random(0);
  std::uniform_int_distribution<size_t> place(
      0, o.text.size() - static_cast<size_t>(o.model.context) - 2);
  hf::eval(state);
  hf::reset_peak_memory();
  auto started = std::chrono::steady_clock::now();
  for (int i = 1; i <= o.steps; ++i) {
    std::vector<int> tokens, next;
    for (int b = 0; b < o.batch; ++b) {
      size_t begin = place(random);
      for (int t = 0; t < o.model.context; ++t) {
        auto number = [&](size_t at) {
          return alphabet.numbers[static_cast<unsigned char>(o.text[at])];
        };
        tokens.push_back(number(begin + static_cast<size_t>(t)));
        next.push_back(number(begin + static_cast<size_t>(t) + 1));
      }
    }
    hf::Shape shape{o.batch, o.model.context};
    state.push_back(hf::array(static_cast<float>(i)));
    state.push_back(hf::array(tokens.data(), shape, hf::int32));
    state.push_back(hf::array(next.data(), shape, hf::int32));
    state = step(state);
    hf::eval(state);
    hf::array loss = state.back();
    state.pop_back();
    if (i == 1 || i % 50 == 0 || i == o.steps) {
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
      std::printf("step %5d   loss %.4f   %8.0f characters a second   peak %.1f MiB\n", i,
                  static_cast<double>(loss.item<float>()),
                  i * static_cast<double>(tokens.size()) / seconds,
                  static_cast<double>(hf::get_peak_memory()) / (1 << 20));
      std::fflush(stdout);
    }
  }
  state.resize(count, hf::array(0));
  std::printf("\n%s\n", write_text(o, state, alphabet, o.text.substr(0, 8), 240).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      std::fputs(usage, stdout);
      return 0;
    }
  }
  try {
    run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "transformer: %s\n", e.what());
    return 1;
  }
}
