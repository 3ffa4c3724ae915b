#include <holdfast/graph_utils.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include <holdfast/primitive.h>
#include <holdfast/utils.h>

namespace holdfast {

const std::string& NodeNamer::get_name(const array& x) {
  auto [place, is_new] = names.try_emplace(x.id());
  if (is_new) {
    for (int rest = given_++; rest >= 0; rest = rest / 26 - 1) {
      place->second.insert(place->second.begin(), static_cast<char>('A' + rest % 26));
    }
  }
  return place->second;
}

void NodeNamer::set_name(const array& x, std::string name) { names[x.id()] = std::move(name); }

namespace {

// The arrays that outputs are made of: leaves, and one array of each primitive, inputs before what
// uses them.
struct Walk {
  std::vector<array> leaves, steps;

  explicit Walk(const std::vector<array>& outputs) {
    for (const array& output : outputs) visit(output);
  }

 private:
  // A list of its own instead of recursion: graphs are deep.
  void visit(const array& output) {
    std::vector<std::pair<array, size_t>> open;
    enter(output, open);
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (next < node.inputs().size()) {
        enter(node.inputs()[next++], open);
      } else {
        steps.push_back(node);
        open.pop_back();
      }
    }
  }
  void enter(const array& node, std::vector<std::pair<array, size_t>>& open) {
    if (!node.has_primitive()) {
      if (seen_.insert(node.id()).second) leaves.push_back(node);
      return;
    }
    if (!seen_.insert(node.id()).second) return;
    for (const array& sibling : node.siblings()) seen_.insert(sibling.id());
    open.emplace_back(node, 0);
  }

  std::unordered_set<std::uintptr_t> seen_;
};

void print_array(std::ostream& os, NodeNamer& namer, const array& a) {
  os << namer.get_name(a) << " [" << a.shape() << ", " << a.dtype() << "]";
}
void print_arrays(std::ostream& os, NodeNamer& namer, const std::vector<array>& arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (i > 0) os << ", ";
    print_array(os, namer, arrays[i]);
  }
}

// A label of the user's may hold anything.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

void print_graph(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  Walk walk(outputs);
  os << "Inputs: ";
  print_arrays(os, namer, walk.leaves);
  os << "\nOutputs: ";
  print_arrays(os, namer, outputs);
  os << "\n";
  for (const array& step : walk.steps) {
    os << step.primitive().name() << " ";
    print_arrays(os, namer, step.inputs());
    os << " -> ";
    print_arrays(os, namer, step.outputs());
    os << "\n";
  }
}

void export_to_dot(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  Walk walk(outputs);
  os << "digraph {\n";
  auto describe = [&](const array& a) {
    std::ostringstream text;
    text << namer.get_name(a) << "\\n" << a.shape() << "\\n" << a.dtype();
    return "\"" + text.str() + "\"";
  };
  auto id = [](const array& a) { return "a" + std::to_string(a.id()); };
  for (const array& leaf : walk.leaves)
    os << "  " << id(leaf) << " [label=" << describe(leaf) << "];\n";
  size_t count = 0;
  for (const array& step : walk.steps) {
    std::string primitive = "p" + std::to_string(count++);
    os << "  " << primitive << " [label=" << quoted(step.primitive().name())
       << ", shape=rectangle];\n";
    for (const array& input : step.inputs())
      os << "  " << id(input) << " -> " << primitive << ";\n";
    for (const array& output : step.outputs()) {
      os << "  " << id(output) << " [label=" << describe(output) << "];\n";
      os << "  " << primitive << " -> " << id(output) << ";\n";
    }
  }
  for (const array& output : outputs) os << "  " << id(output) << " [style=bold];\n";
  os << "}\n";
}

}  // namespace holdfast
