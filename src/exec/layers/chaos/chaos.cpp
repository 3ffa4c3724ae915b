#include "exec/layers/chaos/chaos.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/environment.h"
#include "devices/memory_space.h"
#include "exec/layers/layer.h"
#include "exec/queue.h"

namespace holdfast::exec::chaos {
namespace {

struct KnobName {
  const char* name;
  Knob knob;
};
constexpr KnobName knob_names[] = {
    {"order", order}, {"split", split}, {"delay", delay}, {"poison", poison}};

constexpr unsigned char poison_byte = 0xcb;
constexpr size_t longest_poison = size_t{64} << 10;
constexpr int longest_delay_us = 200;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// Numbers for one list.
class Draws {
 public:
  Draws(uint64_t seed, const CommandList& list, uint64_t purpose)
      : state_(mix(seed) ^ mix(stream_of(list) * 4 + purpose) ^ mix(list.serial << 20)) {}
  uint64_t below(uint64_t limit) { return mix(state_ += 0x9e3779b97f4a7c15ull) % limit; }

 private:
  static uint64_t stream_of(const CommandList& list) {
    return static_cast<uint64_t>(static_cast<Queue*>(list.owner)->stream().index) + 1;
  }
  uint64_t state_;
};

class ChaosLayer final : public Layer {
 public:
  explicit ChaosLayer(Setting setting) : setting_(setting) {}

  void on_commit(CommandList& list) override {
    if (has(order) && list.commands.size() > 1) shuffle(list);
  }

  void on_complete(const CommandList& list) override {
    if (!has(delay)) return;
    Draws draws(setting_.seed, list, 1);
    // Most lists are not held up: it is their order that matters.
    if (draws.below(4) != 0) return;
    sync::sleep_for(std::chrono::microseconds(draws.below(longest_delay_us)));
  }

  bool wants_commit(const CommandList& list) override {
    if (!has(split)) return false;
    Draws draws(setting_.seed, list, 2);
    return static_cast<uint64_t>(list.ops) > draws.below(6);
  }

  void on_retire(const Buffer& buffer) override {
    Storage* storage = buffer.storage();
    if (!has(poison) || !storage || storage->adopted || !storage->is_idle()) return;
    try {
      const std::string poison(std::min(storage->capacity, longest_poison),
                               static_cast<char>(poison_byte));
      for (size_t at = 0; at < storage->capacity; at += poison.size()) {
        storage->space->write(*storage, at, poison.data(),
                              std::min(poison.size(), storage->capacity - at));
      }
    } catch (const std::exception&) {
      // Memory that could not be written keeps what was in it.
    }
  }

 private:
  bool has(Knob knob) const { return setting_.knobs & knob; }

  // Some order in which every command comes after its predecessors. A command without bindings
  // stays where it is, and so does what stands before and behind it: the host may count on that.
  // The commands of an op that a capture has a note of stay together.
  void shuffle(CommandList& list) {
    Draws draws(setting_.seed, list, 0);
    size_t count = list.commands.size();
    std::vector<uint32_t> waits_for(count), place(count);
    std::vector<uint32_t> leader(count);  // the first of those that stay together
    std::iota(leader.begin(), leader.end(), 0);
    for (const NotedOp& op : list.notes) {
      std::fill_n(leader.begin() + op.first_command, op.command_count, op.first_command);
    }
    std::vector<std::vector<uint32_t>> successors(count);
    auto add = [&](size_t before, size_t after) {
      if (leader[before] == leader[after]) return;
      successors[leader[before]].push_back(leader[after]);
      ++waits_for[leader[after]];
    };
    size_t fence = count;  // the last command without bindings
    for (size_t i = 0; i < count; ++i) {
      const Command& command = list.commands[i];
      for (uint32_t e = 0; e < command.edge_count; ++e) {
        add(list.edges[command.first_edge + e].predecessor, i);
      }
      if (command.binding_count == 0) {
        for (size_t before = fence == count ? 0 : fence; before < i; ++before) add(before, i);
        fence = i;
      } else if (fence != count) {
        add(fence, i);
      }
    }
    std::vector<uint32_t> ready, sequence;
    for (uint32_t i = 0; i < count; ++i) {
      if (waits_for[i] == 0 && leader[i] == i) ready.push_back(i);
    }
    // Half of the lists take what became ready last: far from the order of the program.
    bool takes_last = draws.below(2) == 0;
    while (!ready.empty()) {
      size_t chosen = takes_last ? ready.size() - 1 : draws.below(ready.size());
      uint32_t index = ready[chosen];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
      for (uint32_t i = index; i < count && leader[i] == index; ++i) {
        place[i] = static_cast<uint32_t>(sequence.size());
        sequence.push_back(i);
      }
      for (uint32_t next : successors[index]) {
        if (--waits_for[next] == 0) ready.push_back(next);
      }
    }
    std::vector<Command> shuffled;
    shuffled.reserve(count);
    for (uint32_t index : sequence) shuffled.push_back(std::move(list.commands[index]));
    list.commands = std::move(shuffled);
    for (Edge& edge : list.edges) edge.predecessor = place[edge.predecessor];
    for (NotedOp& op : list.notes) op.first_command = place[op.first_command];
    std::sort(list.notes.begin(), list.notes.end(),
              [](const NotedOp& a, const NotedOp& b) { return a.first_command < b.first_command; });
  }

  const Setting setting_;
};

}  // namespace

Setting parse(const std::string& text, const std::string& what) {
  auto reject = [&]() -> Setting {
    throw std::invalid_argument(
        "[chaos] " + what +
        " must be a seed, or a seed and knobs as 7:order,split,delay,poison, got \"" + text + "\"");
  };
  Setting setting;
  size_t colon = std::min(text.find(':'), text.size());
  auto [end, error] = std::from_chars(text.data(), text.data() + colon, setting.seed);
  if (error != std::errc() || end != text.data() + colon) return reject();
  if (colon == text.size()) return setting;
  setting.knobs = 0;
  for (size_t at = colon + 1; at <= text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    at = comma + 1;
    const KnobName* row = std::find_if(std::begin(knob_names), std::end(knob_names),
                                       [&](const KnobName& known) { return name == known.name; });
    if (row == std::end(knob_names)) return reject();
    setting.knobs |= row->knob;
  }
  return setting;
}

std::string to_text(const Setting& setting) {
  std::string text = std::to_string(setting.seed);
  char separator = ':';
  for (const KnobName& row : knob_names) {
    if (!(setting.knobs & row.knob)) continue;
    text += separator + std::string(row.name);
    separator = ',';
  }
  return text;
}

Scope::Scope(Setting setting) {
  auto layer = std::make_shared<ChaosLayer>(setting);
  layer_ = layer;
  layers::add(std::move(layer));
}

Scope::~Scope() { layers::remove(static_cast<ChaosLayer*>(layer_.get())); }

void start_from_environment() {
  const std::string& text = environment::settings().chaos;
  if (text.empty()) return;
  static Scope* scope = new Scope(parse(text, "HOLDFAST_CHAOS"));
  (void)scope;
}

}  // namespace holdfast::exec::chaos
