#include "devices/cuda/assembler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

extern char** environ;

namespace holdfast::cuda {
namespace {

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// Removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw std::system_error(errno, std::generic_category(), "[ptx] cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Runs the program and waits for it. What it prints goes to the file `output`.
bool run(std::vector<std::string> words, const std::string& output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int failed =
      posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) throw std::system_error(failed, std::generic_category(), "[ptx] " + words[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The number before `words`, 0 when they are not there.
uint32_t number_before(const std::string& text, const char* words) {
  const size_t end = text.find(words);
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return static_cast<uint32_t>(std::strtoul(text.c_str() + begin, nullptr, 10));
}

}  // namespace

std::string find_assembler() {
  const char* path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (size_t at = 0; at < folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string program = folders.substr(at, end - at) + "/ptxas";
    if (end > at && is_program(program)) return program;
    at = end + 1;
  }
  const char* home = std::getenv("CUDA_HOME");
  const std::string program = std::string(home ? home : "/usr/local/cuda") + "/bin/ptxas";
  return is_program(program) ? program : "";
}

AssembledKernel assemble(const std::string& assembler, const std::string& ptx, uint32_t target) {
  TemporaryFolder folder;
  const std::string input = folder.file("kernel.ptx"), output = folder.file("kernel.cubin"),
                    messages = folder.file("messages");
  {
    std::ofstream file(input, std::ios::binary);
    file << ptx;
    if (!file.flush()) throw std::runtime_error("[ptx] cannot write " + input);
  }
  const bool good =
      run({assembler, "-v", "-O3", "-arch=sm_" + std::to_string(target), input, "-o", output},
          messages);
  const std::string said = contents_of(messages);
  if (!good) throw std::runtime_error("[ptx] " + assembler + " refuses the kernel: " + said);
  AssembledKernel result;
  const std::string cubin = contents_of(output);
  result.cubin.assign(cubin.begin(), cubin.end());
  result.registers = number_before(said, " registers");
  result.stack_bytes = number_before(said, " bytes stack frame");
  result.spill_store_bytes = number_before(said, " bytes spill stores");
  result.spill_load_bytes = number_before(said, " bytes spill loads");
  result.shared_bytes = number_before(said, " bytes smem");
  return result;
}

}  // namespace holdfast::cuda
