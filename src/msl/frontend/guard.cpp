#include "msl/frontend/guard.h"

#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace holdfast::msl {
namespace {

constexpr size_t deep_stack = size_t{256} << 20;  // address space; pages are taken as they are used

struct Job {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;          // guarded by mutex
  std::exception_ptr exception;  // guarded by mutex
};

thread_local Job* current_job = nullptr;

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

void* run(void* argument) {
  std::shared_ptr<Job> job = std::move(*static_cast<std::shared_ptr<Job>*>(argument));
  delete static_cast<std::shared_ptr<Job>*>(argument);
  current_job = job.get();
  std::exception_ptr exception;
  try {
    job->work();
  } catch (...) {
    exception = std::current_exception();
  }
  current_job = nullptr;
  finish(*job, exception);
  return nullptr;
}

}  // namespace

void run_guarded(std::function<void()> work) {
  if (current_job != nullptr) {
    work();
    return;
  }
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_fatal_error);
  });
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  auto argument = std::make_unique<std::shared_ptr<Job>>(job);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
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
