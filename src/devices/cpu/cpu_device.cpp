#include "devices/cpu/cpu_device.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/machine.h"
#include "devices/cpu/execute.h"

namespace holdfast::exec {
namespace {

// Waking a sleeping worker costs 10 to 30 µs: each one must have this many bytes to move to pay for
// it.
constexpr int64_t work_per_helper = int64_t{256} << 10;
// How long a worker that has run out of work looks for more before it sleeps: ops of a step follow
// each other in less, and find it awake.
constexpr auto look_before_sleep = std::chrono::microseconds(HOLDFAST_CONTROLLED ? 2 : 50);
// How long the thread that owns a job spins for its last helpers before it sleeps.
constexpr int spins_for_helpers = 4000;
// How often a thread that comes from work or goes to it tries to get the device's mutex before it
// sleeps: where many do at once, each holds it for less than sleeping and waking takes.
constexpr int tries_for_mutex = HOLDFAST_CONTROLLED ? 1 : 100;

// A queue is in one of four states:
//   idle      it has no list
//   ready     its first list may start; in the ready list, served in turn
//   blocked   its first list waits for another queue; in the blocked list
//   running   some thread runs its first list, which was taken out
struct CpuQueue : DeviceQueue {
  CpuQueue(Device& of, bool is_asynchronous_)
      : DeviceQueue(of), is_asynchronous(is_asynchronous_) {}
  // Its lists run on workers, not on threads that wait for them, as long as there are workers.
  const bool is_asynchronous;
  enum class State { idle, ready, blocked, running };
  State state = State::idle;
  CommandList* first = nullptr;
  CommandList* last = nullptr;
  CpuQueue* previous = nullptr;  // in the ready or the blocked list
  CpuQueue* next = nullptr;
  sync::CondVar changed;  // completed a list, or became ready
  int waiters = 0;
  bool is_promised = false;  // no thread was called for its first list: who submitted it will wait
  Stamp awaits{};            // what a command of the list that runs waits for
  uint64_t search = 0;       // the last search of find_ready that came by
  CpuQueue* next_found = nullptr;  // in that search's list of queues to look at
};

// A list that the calling thread runs, or helps with: the innermost, and those whose commands wait
// for it.
struct Running {
  CpuQueue& queue;
  Running* const outer;
  static thread_local Running* innermost;
};
thread_local Running* Running::innermost = nullptr;

class RunningScope {
 public:
  explicit RunningScope(Running* running) : before_(std::exchange(Running::innermost, running)) {}
  ~RunningScope() { Running::innermost = before_; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  RunningCommands commands_;
  Running* before_;
};

struct QueueList {
  CpuQueue* first = nullptr;
  CpuQueue* last = nullptr;
  void push(CpuQueue* queue) {
    queue->previous = last;
    queue->next = nullptr;
    (last ? last->next : first) = queue;
    last = queue;
  }
  void remove(CpuQueue* queue) {
    (queue->previous ? queue->previous->next : first) = queue->next;
    (queue->next ? queue->next->previous : last) = queue->previous;
    queue->previous = queue->next = nullptr;
  }
};

// A command that several threads run. Lives on the stack of the thread that owns it.
struct Job {
  Job(void (*function)(void*, int64_t, int64_t), void* argument, int64_t task_count, int helpers)
      : run(function),
        parameters(argument),
        tasks(task_count),
        shares(3 * (helpers + 1)),
        wanted(helpers) {}

  void (*const run)(void*, int64_t, int64_t);
  void* const parameters;
  const int64_t tasks;
  const int64_t shares;  // a thread takes one of so many parts of what is left, or a single task
  sync::Atomic<int64_t> next_task{0};
  sync::Atomic<int> active{0};  // helpers inside; changed with the device's mutex held
  int wanted;                   // helpers that may still join; guarded by the mutex
  std::exception_ptr error;     // guarded by the mutex
  sync::CondVar left;
  Job* next = nullptr;
  Running* const running = Running::innermost;  // of the thread that owns the job

  // Less and less at a time: long ranges cost their threads less, and short ones at the end let all
  // of them finish together.
  void drain() {
    int64_t begin = next_task.load(std::memory_order_relaxed);
    while (begin < tasks) {
      int64_t end = begin + std::max<int64_t>(1, (tasks - begin) / shares);
      if (!next_task.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      run(parameters, begin, end);
      begin = next_task.load(std::memory_order_relaxed);
    }
  }
};

class Cores final : public CpuDevice, private TaskRunner {
 public:
  explicit Cores(int threads) : threads_(threads > 0 ? threads : machine::threads()) {
    workers_.reserve(static_cast<size_t>(threads_));
  }

  std::unique_ptr<DeviceQueue> create_queue() override {
    return std::make_unique<CpuQueue>(*this, false);
  }

  std::unique_ptr<DeviceQueue> create_asynchronous_queue(Device& device) override {
    return std::make_unique<CpuQueue>(device, true);
  }

  void submit(CommandList& list, bool wake) noexcept override {
    std::unique_lock lock(mutex_);
    auto& queue = static_cast<CpuQueue&>(*list.queue);
    list.next = nullptr;
    (queue.first ? queue.last->next : queue.first) = &list;
    queue.last = &list;
    ++unfinished_;
    if (queue.state == CpuQueue::State::idle) {
      place(queue, lock);
      queue.is_promised = true;
    }
    // Also for a list before it: whoever promised to wait for that one may have had no need to.
    if (queue.state == CpuQueue::State::ready && queue.is_promised) {
      announce(queue, wake, lock);
      queue.is_promised = !wake;
    }
  }

  void help(DeviceQueue& device_queue) noexcept override {
    std::unique_lock lock(mutex_);
    auto& queue = static_cast<CpuQueue&>(device_queue);
    while (queue.state == CpuQueue::State::ready && may_run_here(queue)) run_first(queue, lock);
    if (ready_.first) wake_worker(lock);
  }

  void kick(DeviceQueue& device_queue) noexcept override {
    std::unique_lock lock(mutex_);
    DeviceQueue* foreign = nullptr;
    CpuQueue* runnable = find_ready(static_cast<CpuQueue&>(device_queue), &foreign, lock);
    if (runnable) announce(*runnable, true, lock);
    lock.unlock();
    if (!runnable && foreign) foreign->device.kick(*foreign);
  }

  void completed_elsewhere() noexcept override {
    std::lock_guard lock(mutex_);
    unblock(lock);
  }

  bool wait(DeviceQueue& device_queue, uint64_t serial,
            std::optional<sync::Clock::time_point> deadline) override {
    auto& queue = static_cast<CpuQueue&>(device_queue);
    std::unique_lock lock(mutex_);
    CpuQueue* waiting = Running::innermost && !deadline ? &Running::innermost->queue : nullptr;
    if (waiting) waiting->awaits = {&queue, serial};
    struct Ended {
      CpuQueue* waiting;
      ~Ended() {
        if (waiting) waiting->awaits = {};
      }
    } ended{waiting};
    bool has_slept = false;
    DeviceQueue* helped = nullptr;  // of another scheduler
    while (queue.completed.load(std::memory_order_acquire) < serial) {
      DeviceQueue* foreign = nullptr;
      CpuQueue* runnable = find_ready(queue, &foreign, lock);
      const bool runs_here = runnable && (deadline ? workers_.empty() : may_run_here(*runnable));
      if (runnable && !runs_here) wake_worker(lock);
      if (runs_here || (runnable && workers_.empty())) {
        run_first(*runnable, lock);
        continue;
      }
      if (foreign && foreign != helped) {
        helped = foreign;
        lock.unlock();
        deadline ? foreign->device.kick(*foreign) : foreign->device.help(*foreign);
        lock.lock();
        continue;
      }
      if (!runnable && waits_for_itself(queue, lock)) {
        throw std::logic_error(
            "[wait] expected work that can end before the function that waits for it, got work of "
            "the stream that the function runs on, or work that waits for that stream");
      }
      ++queue.waiters;
      if (deadline) {
        bool woken = false;
        queue.changed.wait_until(lock, *deadline, [&] { return std::exchange(woken, true); });
      } else {
        queue.changed.wait(lock);
      }
      --queue.waiters;
      has_slept = true;
      if (deadline && sync::now() >= *deadline) break;
    }
    // We may have been told, in place of a worker, that there is more to run.
    if (has_slept && queue.state == CpuQueue::State::ready) announce(queue, true, lock);
    // While we ran lists, others may have found all cores busy.
    if (ready_.first) wake_worker(lock);
    return queue.completed.load(std::memory_order_acquire) >= serial;
  }

  void shut_down(std::chrono::nanoseconds limit) noexcept override {
    auto deadline = sync::now() + limit;
    std::unique_lock lock(mutex_);
    while (unfinished_ > 0 && sync::now() < deadline) {
      if (ready_.first) wake_worker(lock);
      if (ready_.first && workers_.empty()) {
        run_first(*ready_.first, lock);
      } else {
        // Not run here: a command may not end.
        drained_.wait_until(lock, deadline, [&] { return unfinished_ == 0; });
      }
    }
    stopping_ = true;
    calls_.fetch_add(1, std::memory_order_relaxed);
    work_.notify_all();
    bool drained = unfinished_ == 0;
    // Threads of the user's may go on to submit and to wait: they find no workers.
    std::vector<sync::Thread> workers = std::exchange(workers_, {});
    lock.unlock();
    if (drained) {
      for (sync::Thread& worker : workers) worker.join();
    } else {
      // A command that does not end is not waited for: the process ends around it.
      [[maybe_unused]] static std::vector<sync::Thread>* left_running;
      left_running = new std::vector<sync::Thread>(std::move(workers));
    }
  }

 private:
  // --- queues ---

  bool may_start(const CommandList& list) {
    return std::all_of(list.waits.begin(), list.waits.end(),
                       [this](const Stamp& wait) { return is_completed_or_awaited(wait); });
  }

  // By a thread that waits for it, or for what comes after it?
  bool may_run_here(const CpuQueue& queue) const {
    return !queue.is_asynchronous || workers_.empty();
  }

  // Puts a queue that is in no list where its first list belongs.
  void place(CpuQueue& queue, sync::Held) {
    if (!queue.first) {
      queue.state = CpuQueue::State::idle;
    } else if (may_start(*queue.first)) {
      queue.state = CpuQueue::State::ready;
      ready_.push(&queue);
    } else {
      queue.state = CpuQueue::State::blocked;
      blocked_.push(&queue);
    }
  }

  // Tells somebody that the queue is ready: a thread that waits for it, else a worker.
  void announce(CpuQueue& queue, bool wake, sync::Held held) {
    if (queue.waiters > 0) {
      queue.changed.notify_all();
    } else if (wake) {
      wake_worker(held);
    }
  }

  // A ready queue that brings `queue` forward: itself, or one that its first list waits for,
  // however many queues stand between. If there is none, all of these are linked by next_found;
  // `foreign`: of another scheduler, and awaited.
  CpuQueue* find_ready(CpuQueue& queue, DeviceQueue** foreign, sync::Held) {
    ++searches_;
    queue.search = searches_;
    queue.next_found = nullptr;
    CpuQueue* last = &queue;
    for (CpuQueue* at = &queue; at; at = at->next_found) {
      auto look_behind = [&](const Stamp& wait) {
        if (&wait.queue->device.scheduler != this) {
          if (!is_completed_or_awaited(wait)) *foreign = wait.queue;
          return;
        }
        auto& other = static_cast<CpuQueue&>(*wait.queue);
        if (other.completed.load(std::memory_order_acquire) >= wait.serial) return;
        if (std::exchange(other.search, searches_) == searches_) return;
        other.next_found = nullptr;
        last = last->next_found = &other;
      };
      if (at->state == CpuQueue::State::ready) return at;
      if (at->state == CpuQueue::State::blocked) {
        for (const Stamp& wait : at->first->waits) look_behind(wait);
      } else if (at->awaits.queue) {
        look_behind(at->awaits);
      }
    }
    return nullptr;
  }

  // After find_ready has found none: does the queue need a list to end that the calling thread
  // runs?
  static bool waits_for_itself(const CpuQueue& queue, sync::Held) {
    for (const CpuQueue* at = &queue; at; at = at->next_found) {
      for (Running* running = Running::innermost; running; running = running->outer) {
        if (&running->queue == at) return true;
      }
    }
    return false;
  }

  // Runs the first list of a ready queue. The mutex is released meanwhile.
  void run_first(CpuQueue& queue, std::unique_lock<sync::Mutex>& lock) {
    ready_.remove(&queue);
    queue.state = CpuQueue::State::running;
    queue.is_promised = false;
    CommandList* list = queue.first;
    queue.first = list->next;
    uint64_t serial = list->serial;
    ++running_;
    lock.unlock();
    {
      Running running{queue, Running::innermost};
      RunningScope scope(&running);
      execute(*list, *this);
    }
    queue.executed.store(serial, std::memory_order_release);
    CommandList::AfterCompletion after_completion = list->finish(*list);
    lock.lock();
    --running_;
    queue.completed.store(serial, std::memory_order_release);
    if (--unfinished_ == 0) drained_.notify_all();
    place(queue, lock);
    if (queue.waiters > 0) {
      queue.changed.notify_all();
    } else if (queue.state == CpuQueue::State::ready) {
      wake_worker(lock);
    }
    unblock(lock);
    if (is_awaited(queue)) {
      lock.unlock();
      notify_others(queue);
      lock.lock();
    }
    if (after_completion) {
      ++running_;
      lock.unlock();
      begin_waiting();
      after_completion();
      end_waiting();
      lock.lock();
      --running_;
    }
  }

  // A list completed: whoever waited for it may be ready.
  void unblock(sync::Held held) {
    for (CpuQueue* queue = blocked_.first; queue;) {
      CpuQueue* next = queue->next;
      if (may_start(*queue->first)) {
        blocked_.remove(queue);
        place(*queue, held);
        announce(*queue, true, held);
      }
      queue = next;
    }
  }

  // --- workers ---

  // Do as many threads run lists or help as there are cores for? Those inside functions of the
  // program do not count: they may wait for what a thread that is called now will run. One worker
  // may always be awake, so that work without a waiter goes on.
  bool cores_are_busy(sync::Held) const {
    int awake = static_cast<int>(workers_.size()) - idle_workers_ + woken_workers_;
    return awake > 0 && running_ - waiting_ + woken_workers_ >= threads_;
  }

  // Without a worker the work is done by whoever waits for it; with all cores busy, by the first
  // thread that gets free.
  void wake_worker(sync::Held held) noexcept {
    if (call_worker(held)) work_.notify_one();
  }

  // The same, but for a worker that sleeps: whether one is to be notified, best without the mutex.
  bool call_worker(sync::Held held) noexcept {
    if (cores_are_busy(held)) return false;
    if (idle_workers_ > woken_workers_) {
      ++woken_workers_;
      calls_.fetch_add(1, std::memory_order_relaxed);
      return woken_workers_ > looking_workers_;
    }
    // A queue runs one list at a time: there are never more workers than cores and queues.
    if (static_cast<int>(workers_.size()) >= threads_ + waiting_ || stopping_) return false;
    try {
      if (!fault::hit(fault::Point::thread_start)) {
        workers_.emplace_back("holdfast-" + std::to_string(workers_.size()), [this] { work(); });
        return false;
      }
    } catch (...) {
    }
    // Those who wait for a queue that is blocked look again whom they can help.
    for (CpuQueue* queue = blocked_.first; queue; queue = queue->next) queue->changed.notify_all();
    return false;
  }

  void work() {
    std::unique_lock lock(mutex_);
    bool has_worked = false;
    while (!stopping_) {
      if (jobs_) {
        help(*jobs_, lock);
        has_worked = true;
      } else if (ready_.first) {
        run_first(*ready_.first, lock);
        has_worked = true;
      } else {
        ++idle_workers_;
        // Whoever gives us work needs a core, too.
        if (std::exchange(has_worked, false) && looking_workers_ + 1 < threads_) {
          look_for_work(lock);
        } else {
          work_.wait(lock);
        }
        --idle_workers_;
        if (woken_workers_ > 0) --woken_workers_;
      }
    }
  }

  static void lock_soon(std::unique_lock<sync::Mutex>& lock) {
    for (int i = 0; i < tries_for_mutex; ++i) {
      if (lock.try_lock()) return;
      sync::pause();
    }
    lock.lock();
  }

  // Returns when a worker is called, or after a while.
  void look_for_work(std::unique_lock<sync::Mutex>& lock) {
    ++looking_workers_;
    const uint64_t seen = calls_.load(std::memory_order_relaxed);
    lock.unlock();
    const auto end = sync::now() + look_before_sleep;
    while (calls_.load(std::memory_order_relaxed) == seen && sync::now() < end) sync::pause();
    lock_soon(lock);
    --looking_workers_;
  }

  // --- jobs ---

  // Calls two of the helpers that a job wants, who call two each: waking one takes the time of a
  // small job, and nobody should spend it for all. Releases the mutex.
  void call_helpers(const Job& job, std::unique_lock<sync::Mutex>& lock) {
    int asleep = 0;
    for (int i = 0; i < 2 && i < job.wanted; ++i) asleep += call_worker(lock) ? 1 : 0;
    lock.unlock();
    for (; asleep > 0; --asleep) work_.notify_one();
  }

  void help(Job& job, std::unique_lock<sync::Mutex>& lock) {
    if (--job.wanted == 0) unlink(job, lock);
    job.active.fetch_add(1, std::memory_order_relaxed);
    ++running_;
    call_helpers(job, lock);
    std::exception_ptr error;
    {
      RunningScope scope(job.running);
      error = drain(job);
    }
    lock_soon(lock);
    --running_;
    if (error && !job.error) job.error = error;
    // The owner may leave as soon as it sees 0, but not while we hold the mutex.
    if (job.active.fetch_sub(1, std::memory_order_release) == 1) job.left.notify_all();
  }

  static std::exception_ptr drain(Job& job) noexcept {
    try {
      job.drain();
      return nullptr;
    } catch (...) {
      job.next_task.store(job.tasks, std::memory_order_relaxed);
      return std::current_exception();
    }
  }

  void unlink(Job& job, sync::Held) {
    for (Job** link = &jobs_; *link; link = &(*link)->next) {
      if (*link == &job) {
        *link = job.next;
        return;
      }
    }
  }

  void run_tasks(void (*run)(void*, int64_t, int64_t), void* parameters, int64_t tasks,
                 int64_t work) override {
    int64_t helpers =
        std::min({static_cast<int64_t>(threads_ - 1), tasks - 1, work / work_per_helper});
    if (helpers <= 0) {
      run(parameters, 0, tasks);
      return;
    }
    Job job(run, parameters, tasks, static_cast<int>(helpers));
    std::unique_lock lock(mutex_, std::defer_lock);
    lock_soon(lock);
    job.next = jobs_;
    jobs_ = &job;
    call_helpers(job, lock);
    std::exception_ptr error = drain(job);
    lock_soon(lock);
    if (job.wanted > 0) unlink(job, lock);
    if (job.active.load(std::memory_order_acquire) > 0) {
      lock.unlock();
      for (int i = 0; i < spins_for_helpers && job.active.load(std::memory_order_acquire) > 0;
           ++i) {
        sync::pause();
      }
      lock_soon(lock);
      job.left.wait(lock, [&] { return job.active.load(std::memory_order_acquire) == 0; });
    }
    if (!error) error = job.error;
    lock.unlock();
    if (error) std::rethrow_exception(error);
  }

  // What the calling thread was to run next has to be run by another one.
  void begin_waiting() noexcept override {
    std::lock_guard guard(mutex_);
    ++waiting_;
    if (ready_.first) wake_worker(guard);
  }

  void end_waiting() noexcept override {
    std::lock_guard guard(mutex_);
    --waiting_;
  }

  const int threads_;
  sync::Mutex mutex_{sync::Rank::device};
  // Everything below is guarded by mutex_.
  sync::CondVar work_;     // a job or a ready queue for a worker
  sync::CondVar drained_;  // for shut_down
  QueueList ready_, blocked_;
  Job* jobs_ = nullptr;
  std::vector<sync::Thread> workers_;
  int idle_workers_ = 0;             // asleep or looking, or woken and not yet running
  int woken_workers_ = 0;            // of those: told to run
  int looking_workers_ = 0;          // of those: not asleep yet
  sync::Atomic<uint64_t> calls_{0};  // of workers; changed with the mutex held
  int running_ = 0;                  // threads that run a list or help: workers and others
  int waiting_ = 0;                  // of those: inside a function of the program
  int unfinished_ = 0;               // lists submitted and not completed
  uint64_t searches_ = 0;            // of find_ready
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<CpuDevice> make_cpu_device(int threads) { return std::make_unique<Cores>(threads); }

}  // namespace holdfast::exec
