// Chaos: a layer that makes the rare common. What it does is legal: a correct program computes the
// same values under every seed.
//
// Each decision is drawn from the seed and from what is decided on (the queue's stream, the list's
// serial, the command's place), never from time: the same lists get the same decisions again,
// whatever the threads do. On the preset `controlled` the threads replay as well.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::exec {

namespace chaos {

enum Knob : uint32_t {
  order = 1,   // commands run in another order that their edges allow
  split = 2,   // lists are committed early
  delay = 4,   // lists complete late
  poison = 8,  // memory is overwritten when its buffer ends
  all = 15,
};

struct Setting {
  uint64_t seed = 0;
  uint32_t knobs = all;
};
// "7" or "7:order,delay". Throws std::invalid_argument that names `what`.
Setting parse(const std::string& text, const std::string& what);
// The same text for a setting.
std::string to_text(const Setting& setting);

// While it lives, everything that is committed is under chaos.
class Scope {
 public:
  explicit Scope(Setting setting);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::shared_ptr<void> layer_;
};

// Starts chaos when HOLDFAST_CHAOS is set; for the start of the runtime.
void start_from_environment();

}  // namespace chaos
}  // namespace holdfast::exec
