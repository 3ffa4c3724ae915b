// The `holdfast` command: finds the subcommand in the table and runs it.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/holdfast/commands.h"
#include "tools/holdfast/lm_options.h"

namespace holdfast::tool {
namespace {

int run_version(Arguments arguments) {
  if (!arguments.empty()) throw UsageError("unexpected argument \"" + arguments[0] + "\"");
  std::printf("holdfast %s\n", HOLDFAST_VERSION);
  return 0;
}

int run_help(Arguments arguments);

constexpr Command all_commands[] = {
#if HOLDFAST_TOOL_BENCHMARKS
    {"demo", "[--report FILE.html]", "a short demonstration: what the library is, in five seconds",
     "  --report FILE.html   write a page about what the last scene ran, and keep its capture "
     "beside it\n",
     run_demo},
    {"bench", "[SUITE...] [--quick] [--json FILE] [--peers] [--list]",
     "measure this machine and the library on it",
     "  SUITE        only these suites (default: all; --list names them)\n"
     "  --quick      all suites in under a minute, with more noise\n"
     "  --json FILE  also write the rows and the machine as JSON\n"
     "  --peers      measure MLX's Python package in the same run, where it is installed\n"
     "  --list       name the suites and stop\n"
     "\n"
     "A row with a bar says in the column `ok` whether it is met; the exit status does not depend\n"
     "on it. Ratios are medians over pairs of runs that alternate; the note gives the number of\n"
     "pairs and the interval in which the true median lies with 95 % confidence.\n"
     "\n"
     "holdfast bench decode [OPTION...]: tokens a second of a language model of random weights\n"
     "  --config NAME|FILE  smollm2-135m (default), qwen3-0.6b, qwen3.5-35b-a3b, "
     "qwen3.5-moe-small,\n"
     "                      or a config.json\n"
     "  --batch LIST        sequences (default: 1,16,64)\n"
     "  --context LIST      tokens that each has behind it (default: 1024)\n"
     "  --cache LIST        dense, affine8, turbo4v2, ... (default: dense,turbo4v2)\n"
     "  --bits N            of the weights; 0 for unquantised ones (default: 4)\n"
     "  --dtype NAME        what is computed in (default: bfloat16)\n"
     "  --steady            the same bits at any batch size, as engines of 7 sequences or more "
     "have it\n"
     "  --steps N           of which the median counts (default: 16)\n"
     "  --json FILE         also write the rows\n",
     run_bench},
    {"ops", "[--markdown]", "all ops with the dtypes that they take",
     "  --markdown   the page docs/ops.md\n", run_ops},
#endif
    {"generate", "MODEL PROMPT [OPTION...]", "text from a language model",
     "MODEL is a Hugging Face folder (config.json, safetensors, tokenizer.json) or a GGUF "
     "file.\n" HOLDFAST_LM_OPTIONS "\n"
     "  holdfast generate SmolLM2-135M-Instruct.Q4_1.gguf \"What is a command buffer?\"\n",
     run_generate},
    {"kernel",
     "check FILE... | warm FILE... | run FILE --out NAME=DTYPE[SHAPE] --grid X[,Y[,Z]] [OPTION...]",
     "compile and run kernels of .metal files",
     "holdfast kernel check FILE...\n"
     "  compiles every kernel of the files, and prints of each: widened or not and why, the\n"
     "  attributes and arguments it uses, its threadgroup memory. A function constant without a\n"
     "  --constant is 0 or false, and not defined; those that a kernel refers to are named. Exit\n"
     "  status 1 when one does not compile.\n"
     "  --kernel NAME            only this kernel (may be given several times)\n"
     "  --brief                  one line for each kernel that compiles\n"
     "  --seconds N              processor time for each kernel (default: 120)\n"
     "  --target sm_NN           for an NVIDIA GPU (sm_80 and later; no GPU is needed) instead of\n"
     "                           this processor: the size of the PTX and, where NVIDIA's "
     "assembler\n"
     "                           is installed, registers, local memory, spills and shared memory\n"
     "  --assembler PATH         that assembler (default: ptxas of the search path or CUDA_HOME)\n"
     "\n"
     "holdfast kernel warm --target sm_NN FILE... [-- PROGRAM...]\n"
     "  compiles every kernel of the files into the kernel cache, or every kernel that the "
     "program\n"
     "  uses, for an NVIDIA GPU of a machine without the compiler.\n"
     "\n"
     "holdfast kernel run FILE\n"
     "  --kernel NAME            the function, or its host_name (default: the only kernel)\n"
     "  --in NAME=DTYPE[SHAPE]:CONTENTS\n"
     "  --out NAME=DTYPE[SHAPE][:CONTENTS]\n"
     "                           an argument by its name. DTYPE is f32, f16, bf16, i8 to i64, u8 "
     "to\n"
     "                           u64 or bool; without [SHAPE] it is one value. CONTENTS is "
     "random,\n"
     "                           zeros, ones, range, a number, or numbers with commas\n"
     "  --in NAME=FILE.npy       an array from a file\n"
     "  --grid X[,Y[,Z]]         threads\n"
     "  --threadgroup X[,Y[,Z]]  threads of a threadgroup (default: 1)\n"
     "  --threadgroup-memory SLOT=BYTES\n"
     "                           the size of a [[threadgroup(SLOT)]] argument\n"
     "  --repeat N               runs to time\n"
     "  --compare reference      run the reference lowering as well, and compare the bits; exit\n"
     "                           status 1 when they differ\n"
     "\n"
     "All:\n"
     "  -I DIR                   where #include looks, too\n"
     "  --constant NAME=TYPE:VALUE  a function constant, by name or index\n"
     "  --math MODE              safe (default), relaxed or fast\n"
     "  --guard MODE             on (default; see HOLDFAST_GUARD_KERNELS): prevent accesses "
     "outside "
     "of the arguments; off\n"
     "  --lowering WHICH         automatic (default), widened or reference\n"
     "  --instruction-set SET    baseline, avx2 or avx512 (default: the best of this machine)\n"
     "\n"
     "  holdfast kernel run axpy.metal --in x=f32[4096]:random --in a=f32:2 --out y=f32[4096] \\\n"
     "      --grid 4096 --threadgroup 256 --repeat 100 --compare reference\n",
     run_kernel},
    {"chaos",
     "[-n COUNT] [--seed FIRST] [--knobs LIST] [--timeout SECONDS] -- PROGRAM [ARGUMENT...]",
     "run a program under seeds of chaos until one makes it fail",
     "  -n COUNT           seeds to try (default: 100)\n"
     "  --seed FIRST       the first of them (default: 1)\n"
     "  --knobs LIST       only these of order, split, delay, poison, with commas (default: all)\n"
     "  --timeout SECONDS  how long a run may take, 0: for ever (default: 300)\n"
     "\n"
     "PROGRAM fails when its exit status is not 0, a signal ends it, or it takes too long and is\n"
     "killed. Then its output is shown, the knobs that are not needed for the failure are dropped\n"
     "(all are kept of one that takes too long), the setting that repeats it is printed, and the\n"
     "exit status is 1. Combine it with HOLDFAST_VALIDATE=1 and HOLDFAST_VALIDATE_MODE=abort.\n"
     "\n"
     "  holdfast chaos -n 1000 -- ./my_program\n",
     run_chaos},
    {"info", "", "device, threads, instruction set and memory", "", run_info},
    {"switches", "[--markdown]", "the environment switches, with their values now",
     "  --markdown   the table as the README has it\n", run_switches},
    {"trace", "info|list|show|replay|diff|export|report FILE [OPTION...]",
     "look at a capture, and run it again",
     "holdfast trace info FILE            is it hermetic? counts and sizes\n"
     "holdfast trace list FILE            every command\n"
     "holdfast trace show FILE COMMAND    bindings, values, source\n"
     "holdfast trace replay FILE          run it again, and compare the bits; exit status 1 when "
     "they\n"
     "                                    differ, naming the first command that does\n"
     "  --passes N     so many times      --only A..B  check and time only these commands\n"
     "  --bench        print times        --device cpu the device that there is\n"
     "  --validate     under the validator; status 1 when it finds an error\n"
     "holdfast trace diff FILE FILE       first difference, and times by kernel; status 1 when "
     "there\n"
     "                                    is one\n"
     "holdfast trace export FILE --perfetto OUT.json\n"
     "holdfast trace report FILE [-o OUT.html]\n"
     "                                    one page: timeline, table, memory, dependencies, "
     "sources\n"
     "\n"
     "A capture is made with metal::start_capture or HOLDFAST_CAPTURE=FILE; see docs/capture.md.\n",
     run_trace},
    {"version", "", "the version", "", run_version},
    {"help", "[COMMAND]", "this text, or a command's", "", run_help},
};

const Command* find(const std::string& name) {
  for (const Command& command : all_commands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

void print_usage(std::FILE* out, const Command& command) {
  std::string usage = std::string("usage: holdfast ") + command.name;
  if (*command.usage) usage += std::string(" ") + command.usage;
  std::fprintf(out, "%s\n", usage.c_str());
}

void print_help(const Command& command) {
  print_usage(stdout, command);
  std::printf("\n%s\n", command.description);
  if (*command.details) std::printf("\n%s", command.details);
}

void print_overview(std::FILE* out) {
  std::fprintf(out, "usage: holdfast COMMAND [ARGUMENT...]\n\n");
  for (const Command& command : all_commands) {
    std::fprintf(out, "  %-10s %s\n", command.name, command.description);
  }
  std::fprintf(out, "\n`holdfast COMMAND --help` says more about a command.\n");
}

int unknown(const std::string& name) {
  std::fprintf(stderr, "holdfast: there is no command \"%s\"\n\n", name.c_str());
  print_overview(stderr);
  return 2;
}

int run_help(Arguments arguments) {
  if (arguments.empty()) {
    print_overview(stdout);
    return 0;
  }
  const Command* command = find(arguments[0]);
  if (!command) return unknown(arguments[0]);
  print_help(*command);
  return 0;
}

bool is_help(const std::string& argument) { return argument == "--help" || argument == "-h"; }

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_overview(stderr);
    return 2;
  }
  if (is_help(words[0])) return run_help({});
  if (words[0] == "--version") return run_version({});
  const Command* command = find(words[0]);
  if (!command) return unknown(words[0]);
  Arguments arguments = Arguments(words).subspan(1);
  for (const std::string& argument : arguments) {
    if (is_help(argument)) {
      print_help(*command);
      return 0;
    }
  }
  try {
    return command->run(arguments);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "holdfast %s: %s\n", command->name, error.what());
    print_usage(stderr, *command);
    return 2;
  }
}

}  // namespace

int main_of(const std::vector<std::string>& words) {
  try {
    return run(words);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "holdfast: %s\n", error.what());
    return 1;
  }
}

}  // namespace holdfast::tool

int main(int count, char** words) {
  return holdfast::tool::main_of(std::vector<std::string>(words + 1, words + count));
}
