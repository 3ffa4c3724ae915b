// base/ref.h: references that count.
#include <doctest/doctest.h>

#include <unordered_set>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/sync.h"
#include "tests/support/threads.h"

using namespace holdfast;
using testing::on_threads;

namespace {

constexpr int copies = controlled::enabled() ? 20 : 2000;

struct Counted : RefCounted {
  explicit Counted(sync::Atomic<int>& live) : alive(live) { alive.fetch_add(1); }
  ~Counted() { alive.fetch_sub(1); }
  sync::Atomic<int>& alive;
  int payload = 0;
};

// A type with an end of its own.
struct Pooled : RefCounted {
  void release() {
    if (drop_reference()) ++returned;
  }
  int returned = 0;
};

}  // namespace

TEST_CASE("ref: copies share, moves do not count, the last owner destroys") {
  sync::Atomic<int> live{0};
  Ref<Counted> first = make_ref<Counted>(live);
  CHECK(first->is_unique());
  Ref<Counted> second = first;
  CHECK(first->reference_count() == 2);
  CHECK(first == second);
  Ref<const Counted> third = std::move(second);
  CHECK_FALSE(second);
  CHECK(second == nullptr);
  CHECK(third == first.get());
  CHECK(first->reference_count() == 2);
  third.reset();
  CHECK(first->is_unique());

  first = *&first;
  CHECK(first->is_unique());
  Counted* raw = first.detach();
  CHECK_FALSE(first);
  CHECK(live.load() == 1);
  CHECK(raw->retain_unless_gone());
  CHECK(raw->reference_count() == 2);
  first = Ref<Counted>::adopt(raw);
  Ref<Counted> adopted = Ref<Counted>::adopt(raw);
  Ref<Counted> stolen = first.steal();
  CHECK_FALSE(first);
  CHECK((*stolen).payload == 0);
  CHECK(std::unordered_set<Ref<Counted>>{stolen, adopted}.size() == 1);
  stolen = nullptr;
  CHECK(live.load() == 1);
  adopted = Ref<Counted>();
  CHECK(live.load() == 0);

  Pooled pooled;
  {
    Ref<Pooled> own = Ref<Pooled>::adopt(&pooled);
  }
  CHECK(pooled.returned == 1);
  CHECK_FALSE(pooled.retain_unless_gone());
}

TEST_CASE("ref: the last of several threads destroys, once, and sees what the others wrote") {
  struct Shared : RefCounted {
    explicit Shared(std::vector<int>& sums) : ended(sums) {}
    ~Shared() { ended.push_back(written[0] + written[1] + written[2] + written[3]); }
    std::vector<int>& ended;
    int written[4] = {};
  };
  controlled::for_each_schedule(
      40,
      [](const auto&) {
        std::vector<int> ended;
        std::vector<Ref<Shared>> owners(4, make_ref<Shared>(ended));
        on_threads(4, [&](int role) {
          Ref<Shared> own = std::move(owners[static_cast<size_t>(role)]);
          for (int i = 0; i < copies; ++i) Ref<Shared> copy = own;
          own->written[role] = 1 << role;
        });
        INFO(controlled::describe());
        CHECK(ended == std::vector<int>{15});
      },
      /*count_native=*/50);
}
