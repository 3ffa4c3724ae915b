#include <doctest/doctest.h>

#include <string>

#include <holdfast/holdfast.h>

#include "support/gate.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Counter : exec::Layer {
  explicit Counter(std::string layer_name = "", std::string* trace = nullptr)
      : name(std::move(layer_name)), log(trace) {}
  void on_create(const exec::Buffer&) override { created.fetch_add(1); }
  void on_retire(const exec::Buffer& buffer) override {
    retired.fetch_add(1);
    if (buffer.identity() == 0) dead_when_retired.fetch_add(1);
  }
  void on_commit(exec::CommandList& list) override {
    committed.fetch_add(static_cast<int>(list.commands.size()));
    if (log) *log += "commit " + name + ";";
  }
  void on_complete(const exec::CommandList& list) override {
    completed.fetch_add(static_cast<int>(list.commands.size()));
    for (const exec::Binding& binding : list.bindings) {
      if (binding.buffer->identity() != binding.identity) dead_at_completion.fetch_add(1);
    }
    if (log) *log += "complete " + name + ";";
  }
  std::string name;
  std::string* log;
  sync::Atomic<int> created{0}, retired{0}, committed{0}, completed{0};
  sync::Atomic<int> dead_when_retired{0}, dead_at_completion{0};
};

// Takes itself away, and nobody else holds it, when it is told of one of these.
struct Leaver : exec::Layer {
  enum When { creates, commands, encodes, reads };
  struct Seen {
    sync::Atomic<bool> is_alive{true}, was_told{false}, outlived_call{false};
  };
  Leaver(When moment, std::shared_ptr<Seen> record) : when(moment), seen(std::move(record)) {}
  ~Leaver() override { seen->is_alive.store(false); }
  void on_create(const exec::Buffer&) override { leave(creates); }
  void on_command(const exec::CommandList&) override { leave(commands); }
  void on_encode(const exec::CommandList&) override { leave(encodes); }
  void on_host_access(const exec::Buffer&, int64_t, int64_t) override { leave(reads); }
  void leave(When now) {
    if (now != when) return;
    std::shared_ptr<Seen> record = seen;
    record->was_told.store(true);
    exec::layers::remove(this);
    record->outlived_call.store(record->is_alive.load());
  }
  const When when;
  const std::shared_ptr<Seen> seen;
};

}  // namespace

TEST_CASE("layers: one that is taken away lives until it has been told") {
  Stream s = new_stream(Device::cpu);
  array known = counting(8);
  eval(known);
  for (Leaver::When when : {Leaver::creates, Leaver::commands, Leaver::encodes, Leaver::reads}) {
    CAPTURE(when);
    auto seen = std::make_shared<Leaver::Seen>();
    auto behind = std::make_shared<Counter>();
    exec::layers::add(std::make_shared<Leaver>(when, seen));
    exec::layers::add(behind);
    values(known);  // before there is a list, which would keep the layers it is committed under
    values(affine(counting(8), 1, 1, s));
    exec::layers::remove(behind.get());
    CHECK(seen->was_told.load());
    CHECK(seen->outlived_call.load());
    CHECK(behind->created.load() == 2);
  }
}

TEST_CASE("layers: a layer sees buffers come and go, and lists committed and completed") {
  Stream s = default_stream(Device::cpu);
  synchronize(s);
  uint32_t interests_before = exec::layers::interests.load();
  auto counter = std::make_shared<Counter>();
  exec::layers::add(counter);
  {
    array x = affine(affine(counting(8), 1, 1, s), 1, 1, s);
    CHECK(values(x)[0] == 2);
    CHECK(counter->created.load() == 3);
    CHECK(counter->committed.load() == 2);
    CHECK(counter->completed.load() == 2);
  }
  CHECK(counter->retired.load() == 3);
  CHECK(counter->dead_when_retired.load() == 0);
  // Nothing is released before the layers have seen the completion.
  CHECK(counter->dead_at_completion.load() == 0);
  exec::layers::remove(counter.get());
  CHECK(exec::layers::interests.load() == interests_before);
  values(affine(counting(8), 1, 1, s));
  CHECK(counter->committed.load() == 2);
}

TEST_CASE("layers: a list completes under the layers it was committed under") {
  Stream s = new_stream(Device::cpu);
  auto early = std::make_shared<Counter>();
  auto late = std::make_shared<Counter>();
  {
    Gate gate(s);
    gate.wait_until_reached();
    exec::layers::add(early);
    array x = affine(counting(8), 1, 1, s);
    async_eval(x);
    exec::layers::remove(early.get());
    exec::layers::add(late);
    gate.open();
    x.wait();
    CHECK(early->committed.load() == 1);
    CHECK(early->completed.load() == 1);
    CHECK(late->completed.load() == 0);
    CHECK(values(affine(x, 1, 1, s))[0] == 2);
    CHECK(late->committed.load() == 1);
    CHECK(late->completed.load() == 1);
  }
  exec::layers::remove(late.get());
  exec::Runtime::get().give_back(queue_of(s));
}

TEST_CASE("layers: completion goes through the chain in reverse") {
  Stream s = default_stream(Device::cpu);
  synchronize(s);
  std::string log;
  auto first = std::make_shared<Counter>("a", &log);
  auto second = std::make_shared<Counter>("b", &log);
  exec::layers::add(first);
  exec::layers::add(second);
  values(affine(counting(8), 1, 1, s));
  exec::layers::remove(first.get());
  exec::layers::remove(second.get());
  CHECK(log == "commit a;commit b;complete b;complete a;");
}

TEST_CASE("layers: a layer that ends itself keeps its lists") {
  Stream s = new_stream(Device::cpu);
  {
    Gate gate(s);
    auto counter = std::make_shared<Counter>();
    std::weak_ptr<Counter> watched = counter;
    exec::layers::add(counter);
    array x = affine(counting(8), 1, 1, s);
    async_eval(x);
    exec::layers::remove(counter.get());
    counter.reset();
    CHECK(!watched.expired());  // the list in flight owns its layers
    gate.open();
    x.wait();
    CHECK(eventually([&] { return watched.expired(); }));
  }
  exec::Runtime::get().give_back(queue_of(s));
}

namespace {

struct ListsOnly : Counter {
  using Counter::Counter;
  uint32_t interests() const override { return lists; }
};
struct Last : Counter {
  using Counter::Counter;
  bool is_last() const override { return true; }
};

struct Observing : exec::Layer {
  struct Seen final : exec::CommandObserver {
    explicit Seen(sync::Atomic<int>& into) : count(into) {}
    void before(const exec::CommandList&, uint32_t) noexcept override { count.fetch_add(1); }
    void after(const exec::CommandList&, uint32_t, bool failed) noexcept override {
      count.fetch_add(failed ? 1000 : 100);
    }
    sync::Atomic<int>& count;
  };
  void on_commit(exec::CommandList& list) override {
    kept.push_back(std::make_unique<Seen>(count));
    list.add_observer(*kept.back());
  }
  sync::Atomic<int> count{0};
  std::vector<std::unique_ptr<Seen>> kept;
};

}  // namespace

TEST_CASE("layers: hooks that no layer is interested in are left out" *
          doctest::test_suite("no other layers")) {
  Stream s = default_stream(Device::cpu);
  synchronize(s);
  auto layer = std::make_shared<ListsOnly>();
  exec::layers::add(layer);
  values(affine(counting(8), 1, 1, s));
  exec::layers::remove(layer.get());
  CHECK(layer->committed.load() == 1);
  CHECK(layer->created.load() == 0);
  CHECK(layer->retired.load() == 0);
}

TEST_CASE("layers: one that needs lists as they will run sees them after the others") {
  Stream s = default_stream(Device::cpu);
  synchronize(s);
  std::string log;
  auto last = std::make_shared<Last>("last", &log);
  auto first = std::make_shared<Counter>("first", &log),
       second = std::make_shared<Counter>("second", &log);
  exec::layers::add(last);
  exec::layers::add(first);
  exec::layers::add(second);
  values(affine(counting(8), 1, 1, s));
  for (const exec::Layer* layer :
       {static_cast<exec::Layer*>(last.get()), static_cast<exec::Layer*>(first.get()),
        static_cast<exec::Layer*>(second.get())}) {
    exec::layers::remove(layer);
  }
  CHECK(log ==
        "commit first;commit second;commit last;complete last;complete second;complete first;");
}

TEST_CASE("layers: several observe the commands of a list") {
  Stream s = default_stream(Device::cpu);
  synchronize(s);
  auto first = std::make_shared<Observing>(), second = std::make_shared<Observing>();
  exec::layers::add(first);
  exec::layers::add(second);
  values(affine(affine(counting(8), 1, 1, s), 1, 1, s));
  exec::layers::remove(first.get());
  exec::layers::remove(second.get());
  CHECK(first->count.load() == 202);
  CHECK(second->count.load() == 202);
}
