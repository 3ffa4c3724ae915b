// The graph of an array as text and as a picture.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <holdfast/array.h>

namespace holdfast {

// Names of arrays: those that were set, else A, B, …, Z, AA, AB, … in the order in which they are
// asked for.
struct NodeNamer {
  std::unordered_map<std::uintptr_t, std::string> names;
  const std::string& get_name(const array& x);
  void set_name(const array& x, std::string name);

 private:
  int given_ = 0;
};

// One line for the inputs, one for the outputs, one for each primitive: its name, its inputs, ->,
// its outputs. Does not evaluate: what has been evaluated is an input.
void print_graph(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs);
inline void print_graph(std::ostream& os, const std::vector<array>& outputs) {
  print_graph(os, NodeNamer(), outputs);
}
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void print_graph(std::ostream& os, Arrays&&... outputs) {
  print_graph(os, NodeNamer(), std::vector<array>{std::forward<Arrays>(outputs)...});
}
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void print_graph(std::ostream& os, NodeNamer namer, Arrays&&... outputs) {
  print_graph(os, std::move(namer), std::vector<array>{std::forward<Arrays>(outputs)...});
}

// In the language of Graphviz.
void export_to_dot(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs);
inline void export_to_dot(std::ostream& os, const std::vector<array>& outputs) {
  export_to_dot(os, NodeNamer(), outputs);
}
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void export_to_dot(std::ostream& os, Arrays&&... outputs) {
  export_to_dot(os, NodeNamer(), std::vector<array>{std::forward<Arrays>(outputs)...});
}
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void export_to_dot(std::ostream& os, NodeNamer namer, Arrays&&... outputs) {
  export_to_dot(os, std::move(namer), std::vector<array>{std::forward<Arrays>(outputs)...});
}

}  // namespace holdfast
