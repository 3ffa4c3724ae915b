// Functions of the program that wait inside a command, a deleter or a reader: for another stream,
// or for what a function on another stream does. The thread that runs such a function is not the
// last one that could run what it waits for, be it the only worker on the only core.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <holdfast/holdfast.h>

#include "support/child.h"
#include "support/inspection.h"
#include "support/test_ops.h"
#include "support/threads.h"

using namespace holdfast;
using namespace holdfast::testing;
using namespace std::chrono_literals;

namespace {

array calling(Stream s, std::function<void()> function) {
  return make_op("calling", s, {}, {1},
                 [function](Encoder& encoder, const std::vector<array>&, auto& outputs) {
                   encoder.allocate(outputs[0]);
                   encoder.output(outputs[0]);
                   encoder.host_callback("calling", function);
                 });
}

// Closed until somebody opens it.
class Latch {
 public:
  void open() {
    std::lock_guard guard(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_open_; });
  }

 private:
  sync::Mutex mutex_;
  sync::CondVar changed_;
  bool is_open_ = false;  // guarded by mutex_
};

// Gives its bytes once the latch is open.
class WaitingReader : public io::Reader {
 public:
  explicit WaitingReader(Latch& latch) : latch_(latch) {}
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return position_; }
  void seek(int64_t off, std::ios_base::seekdir way) override {
    size_t base = way == std::ios_base::beg ? 0 : way == std::ios_base::cur ? position_ : size();
    position_ = base + static_cast<size_t>(off);
  }
  void read(char* data, size_t n) override { std::copy_n(bytes_.data() + position_, n, data); }
  void read(char* data, size_t n, size_t offset) override {
    if (offset + n == size()) latch_.wait();  // the elements, not the header
    std::copy_n(bytes_.data() + offset, n, data);
  }
  std::string label() const override { return "a reader that waits"; }

 private:
  size_t size() const { return bytes_.size(); }
  Latch& latch_;
  size_t position_ = 0;
  const std::string bytes_ = [] {
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    header.resize(118 - 1, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + "\x01\x02\x03";
  }();
};

// Runs `body` on a thread of its own. One that does not end fails, and is let go by the latch.
void check_ends(const std::string& what, Latch& latch, const std::function<void()>& body) {
  sync::Atomic<bool> has_ended{false};
  std::exception_ptr error;
  sync::Thread thread("body", [&] {
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
    has_ended.store(true);
  });
  CHECK_MESSAGE(eventually([&] { return has_ended.load(); }), what);
  latch.open();
  thread.join();
  if (error) std::rethrow_exception(error);
}

int workers() {
  int found = 0;
  for (auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    found += name.starts_with("holdfast-") ? 1 : 0;
  }
  return found;
}

void run_all(std::vector<Stream>& s) {
  {
    Latch latch;
    check_ends("a function waits for one that comes later", latch, [&] {
      array waits = calling(s[0], [&] { latch.wait(); });
      async_eval(waits);
      array opens = calling(s[1], [&] { latch.open(); });
      async_eval(opens);
      CHECK(waits.event().wait_for(20s));
    });
  }
  {
    Latch latch;
    check_ends("one that is submitted with it", latch, [&] {
      array waits = calling(s[0], [&] { latch.wait(); });
      array opens = calling(s[1], [&] { latch.open(); });
      eval(waits, opens);
    });
  }
  {
    Latch latch, never;
    std::vector<Latch> chain(s.size() - 1);
    check_ends("a chain over all streams, the last one first", never, [&] {
      std::vector<array> calls;
      for (size_t i = 0; i < s.size(); ++i) {
        calls.push_back(calling(s[i], [&, i] {
          if (i < chain.size()) chain[i].wait();
          if (i > 0) chain[i - 1].open();
        }));
      }
      for (array& call : calls) async_eval(call);
      for (array& call : calls) CHECK(call.event().wait_for(20s));
      for (Latch& one : chain) one.open();
    });
  }
  {
    Latch latch;
    check_ends("a function looks again and again", latch, [&] {
      array work = affine(counting(4), 1, 1, s[1]);
      array looks = calling(s[0], [&] {
        async_eval(work);
        CHECK(eventually([&] { return work.is_available(); }));
      });
      async_eval(looks);
      CHECK(looks.event().wait_for(20s));
    });
  }
  {
    Latch latch;
    check_ends("a function waits with a limit", latch, [&] {
      array work = affine(counting(4), 1, 1, s[1]);
      array waits = calling(s[0], [&] {
        async_eval(work);
        CHECK(work.wait_for(20s));
        CHECK(synchronize_for(s[1], 20s));
      });
      async_eval(waits);
      CHECK(waits.event().wait_for(20s));
    });
  }
  {
    // Shared with the deleter, which runs after the event that the body waits for.
    auto latch = std::make_shared<Latch>();
    check_ends("a deleter waits", *latch, [&] {
      static int32_t elements[4] = {1, 2, 3, 4};
      // The list is the last owner when it is submitted: its end runs the deleter.
      array result = [&] {
        array adopted(elements, Shape{4}, int32, [latch](void*) { latch->wait(); });
        return affine(adopted, 1, 1, s[0]);
      }();
      async_eval(result);
      CHECK(result.event().wait_for(20s));
      array opens = calling(s[1], [&] { latch->open(); });
      async_eval(opens);
      CHECK(opens.event().wait_for(20s));
      exec::Runtime::get().drain();
    });
  }
  {
    Latch latch;
    check_ends("a reader waits", latch, [&] {
      array loaded = load(std::make_shared<WaitingReader>(latch), s[0]);
      async_eval(loaded);
      array opens = calling(s[1], [&] { latch.open(); });
      async_eval(opens);
      CHECK(loaded.wait_for(20s));
      CHECK(loaded.data<uint8_t>()[2] == 3);
    });
  }
  {
    Latch latch;
    check_ends("a function prints, reads and evaluates", latch, [&] {
      array text = calling(s[0], [&] {
        std::ostringstream out;
        out << affine(counting(2), 1, 1, s[1]);
        CHECK(out.str() == "array([1, 2], dtype=int32)");
        CHECK(affine(counting(1), 1, 5, s[2]).item<int32_t>() == 5);
      });
      async_eval(text);
      CHECK(text.wait_for(20s));
    });
  }
}

}  // namespace

TEST_CASE("child: functions that wait") {
  if (!is_child("child: functions that wait")) return;
  std::vector<Stream> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(new_stream(Device::cpu));
  controlled::for_each_schedule(
      8,
      [&](const controlled::Schedule&) {
        INFO(controlled::describe());
        run_all(streams);
      },
      4);
  // One for each function that waited at the same time, and no more.
  CHECK(workers() <= static_cast<int>(exec::Runtime::get().queue_count()) + 2);
}

TEST_CASE("functions that wait take no runner away, whatever the number of threads") {
  for (const char* threads : {"HOLDFAST_THREADS=1", "HOLDFAST_THREADS=2"}) {
    ChildResult child = run_child("child: functions that wait", {threads});
    CHECK_MESSAGE(child.exit_code == 0, child.output);
  }
}
