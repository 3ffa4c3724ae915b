#include "msl/frontend/guard.h"

#include <link.h>
#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>

#include <condition_variable>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/pass_on_signal.h"

namespace holdfast::msl {
namespace {

constexpr size_t deep_stack = size_t{256} << 20;  // address space; pages are taken as they are used

// Below the stack: as much as one function may take at once. It is opened a piece at a time to get
// out of the C library with a stack that is full.
constexpr size_t guard_size = size_t{1} << 20, guard_piece = size_t{64} << 10;

struct Job {
  std::function<void()> work;
  // What the handler of signals hands over: made before, since it can make nothing.
  std::exception_ptr overflow = std::make_exception_ptr(
      CompileError("[kernel] error: the source is nested too deeply for the compiler"));
  std::exception_ptr null_access = std::make_exception_ptr(
      std::runtime_error("the compiler went through a null pointer: a bug of the compiler"));
  uintptr_t stack_end = 0;  // the guard ends here, where the stack begins to be usable
  std::unique_ptr<char[]> handler_stack;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;          // guarded by mutex
  std::exception_ptr exception;  // guarded by mutex
};

// Allocated with the thread, so that the handler can look at it whatever the thread was doing.
__attribute__((tls_model("initial-exec"))) thread_local Job* current_job = nullptr;

void finish(Job& job, std::exception_ptr exception) {
  std::lock_guard lock(job.mutex);
  job.exception = std::move(exception);
  job.is_done = true;
  job.changed.notify_all();
}

void on_fatal_error(void*, const char* reason, bool) {
  Job* job = current_job;
  if (job == nullptr) return;  // not ours: LLVM goes on as it would have
  finish(*job, std::make_exception_ptr(
                   std::runtime_error(std::string("the compiler gave up: ") + reason)));
  for (;;) pause();
}

// The code of the C library.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
};
CodeRange c_library;  // set before the handlers

int find_c_library(dl_phdr_info* object, size_t, void*) {
  const auto inside = reinterpret_cast<uintptr_t>(&malloc);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || inside < begin || inside >= begin + segment.p_memsz) continue;
    c_library = {begin, begin + segment.p_memsz};
    return 1;
  }
  return 0;
}

constexpr int caught[] = {SIGSEGV, SIGBUS};
struct sigaction previous[std::size(caught)];

void pass_on(int signal, siginfo_t* info, void* context) {
  pass_on_signal(previous[signal == SIGSEGV ? 0 : 1], signal, info, context);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Job* job = current_job;
  if (job == nullptr || info->si_code <= 0) return pass_on(signal, info, context);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  uintptr_t counter = 0;
#if defined(__x86_64__)
  counter = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  counter = static_cast<ucontext_t*>(context)->uc_mcontext.pc;
#endif
  const bool in_c_library = counter >= c_library.begin && counter < c_library.end;
  if (job->stack_end != 0 && address < job->stack_end && address >= job->stack_end - guard_size) {
    if (in_c_library) {
      const uintptr_t begin = address / guard_piece * guard_piece;
      if (begin >= job->stack_end - guard_size &&
          mprotect(reinterpret_cast<void*>(begin), job->stack_end - begin,
                   PROT_READ | PROT_WRITE) == 0) {
        return;
      }
      return pass_on(signal, info, context);
    }
    finish(*job, std::move(job->overflow));
  } else if (address < 4096 && !in_c_library && info->si_code == SEGV_MAPERR) {
    finish(*job, std::move(job->null_access));
  } else {
    return pass_on(signal, info, context);
  }
  for (;;) pause();
}

void install_signal_handlers() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (c_library.end == 0 && dl_iterate_phdr(find_c_library, nullptr) == 0) return;
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  sigemptyset(&action.sa_mask);
  // SA_NODEFER: the handler from before may jump out, which would leave the signal blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < std::size(caught); ++i) {
    struct sigaction now{};
    if (sigaction(caught[i], nullptr, &now) != 0 || now.sa_sigaction == on_fault) continue;
    previous[i] = now;
    sigaction(caught[i], &action, nullptr);
  }
}

void install_handlers() {
  llvm::install_fatal_error_handler(on_fatal_error);
  llvm::install_bad_alloc_error_handler(on_fatal_error);
  install_signal_handlers();
}

// A full stack cannot run its own handler.
void use_handler_stack(Job& job) {
  constexpr size_t size = size_t{64} << 10;
  job.handler_stack = std::make_unique<char[]>(size);
  stack_t stack{};
  stack.ss_sp = job.handler_stack.get();
  stack.ss_size = size;
  sigaltstack(&stack, nullptr);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* lowest = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0)
    job.stack_end = reinterpret_cast<uintptr_t>(lowest);
  pthread_attr_destroy(&attributes);
}

void* run(void* argument) {
  std::shared_ptr<Job> job = std::move(*static_cast<std::shared_ptr<Job>*>(argument));
  delete static_cast<std::shared_ptr<Job>*>(argument);
  use_handler_stack(*job);
  current_job = job.get();
  std::exception_ptr exception;
  try {
    job->work();
  } catch (...) {
    exception = std::current_exception();
  }
  current_job = nullptr;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  finish(*job, exception);
  return nullptr;
}

}  // namespace

void install_guard_handlers() { install_signal_handlers(); }

void give_up(const CompileError& error) {
  Job* job = current_job;
  if (job == nullptr) throw error;
  finish(*job, std::make_exception_ptr(error));
  for (;;) pause();
}

void run_guarded(std::function<void()> work) {
  if (current_job != nullptr) {
    work();
    return;
  }
  static std::once_flag installed;
  std::call_once(installed, install_handlers);
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  auto argument = std::make_unique<std::shared_ptr<Job>>(job);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setguardsize(&attributes, guard_size);
  int failed = 1;
  pthread_t thread;
  // Less where the system gives less (a limit on address space).
  for (size_t size = deep_stack; failed != 0 && size >= (size_t{1} << 20); size /= 4) {
    pthread_attr_setstacksize(&attributes, size);
    failed = pthread_create(&thread, &attributes, run, argument.get());
  }
  pthread_attr_destroy(&attributes);
  if (failed != 0) throw std::runtime_error("no thread could be started to compile a kernel");
  (void)argument.release();
  std::unique_lock lock(job->mutex);
  job->changed.wait(lock, [&] { return job->is_done; });
  if (job->exception) std::rethrow_exception(job->exception);
}

}  // namespace holdfast::msl
