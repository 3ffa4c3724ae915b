#include "devices/cuda/graph_cache.h"

#include <algorithm>
#include <cstring>

namespace holdfast::cuda {
namespace {

KernelNode kernel_node(const Segment::Node& node, void** parameters) {
  KernelNode result{};
  result.function = node.kernel.function;
  std::copy_n(node.kernel.shape.grid, 3, result.grid);
  std::copy_n(node.kernel.shape.block, 3, result.block);
  result.shared_bytes = node.kernel.shared_bytes;
  result.parameters = parameters;
  return result;
}

CopyNode copy_node(const Segment::Node& node) {
  CopyNode result{};
  result.source.memory = result.target.memory = memory_of_device;
  result.source.device = node.copy.source;
  result.target.device = node.copy.target;
  result.source.pitch = result.target.pitch = result.width = node.copy.bytes;
  result.source.height = result.target.height = result.height = result.depth = 1;
  return result;
}

FillNode fill_node(const Segment::Node& node) {
  return {node.fill.target,       node.fill.pitch, node.fill.value,
          node.fill.element_size, node.fill.width, node.fill.height};
}

// A kernel takes its arguments one by one: 8 bytes each, and the rest as one.
class KernelParameters {
 public:
  KernelParameters(const Segment& segment, const Segment::Node& node) {
    char* block = const_cast<char*>(segment.parameters.data()) + node.kernel.first_byte;
    const size_t launch = 8 * node.kernel.pipeline->interface().arguments.size();
    places_.reserve(launch / 8 + 1);
    for (size_t at = 0; at <= launch; at += 8) places_.push_back(block + at);
  }
  void** get() { return places_.data(); }

 private:
  std::vector<void*> places_;
};

}  // namespace

void Segment::clear() {
  nodes.clear();
  edges.clear();
  parameters.clear();
}

bool Segment::has_topology_of(const Segment& other) const {
  return edges == other.edges && std::equal(nodes.begin(), nodes.end(), other.nodes.begin(),
                                            other.nodes.end(), [](const Node& a, const Node& b) {
                                              return a.kind == b.kind &&
                                                     a.edge_count == b.edge_count;
                                            });
}

uint64_t Segment::topology_hash() const {
  uint64_t hash = nodes.size();
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29); };
  for (const Node& node : nodes) {
    add(static_cast<uint64_t>(node.kind) + 4 * uint64_t{node.edge_count});
    for (uint32_t i = 0; i < node.edge_count; ++i) add(edges[node.first_edge + i]);
  }
  return hash;
}

bool Segment::is_equal(size_t index, const Segment& other) const {
  const Node &a = nodes[index], &b = other.nodes[index];
  switch (a.kind) {
    case Kind::copy:
      return a.copy.target == b.copy.target && a.copy.source == b.copy.source &&
             a.copy.bytes == b.copy.bytes;
    case Kind::fill:
      return a.fill.target == b.fill.target && a.fill.pitch == b.fill.pitch &&
             a.fill.width == b.fill.width && a.fill.height == b.fill.height &&
             a.fill.value == b.fill.value && a.fill.element_size == b.fill.element_size;
    case Kind::kernel:
      break;
  }
  return a.kernel.pipeline == b.kernel.pipeline && a.kernel.function == b.kernel.function &&
         std::equal(a.kernel.shape.grid, a.kernel.shape.grid + 3, b.kernel.shape.grid) &&
         std::equal(a.kernel.shape.block, a.kernel.shape.block + 3, b.kernel.shape.block) &&
         a.kernel.shared_bytes == b.kernel.shared_bytes &&
         a.kernel.byte_count == b.kernel.byte_count &&
         std::memcmp(parameters.data() + a.kernel.first_byte,
                     other.parameters.data() + b.kernel.first_byte, a.kernel.byte_count) == 0;
}

void Segment::launch(Driver& driver, Stream stream) {
  for (const Node& node : nodes) {
    switch (node.kind) {
      case Kind::kernel: {
        const LaunchShape& shape = node.kernel.shape;
        driver.launch(node.kernel.function, shape.grid[0], shape.grid[1], shape.grid[2],
                      shape.block[0], shape.block[1], shape.block[2], node.kernel.shared_bytes,
                      stream, KernelParameters(*this, node).get(), nullptr);
        break;
      }
      case Kind::copy:
        driver.copy(node.copy.target, node.copy.source, node.copy.bytes, stream);
        break;
      case Kind::fill: {
        const auto& fill = node.fill;
        if (fill.height > 1) {
          driver.fill_rows_32(fill.target, fill.pitch, fill.value, fill.width, fill.height, stream);
        } else if (fill.element_size == 4) {
          driver.fill_32(fill.target, fill.value, fill.width, stream);
        } else if (fill.element_size == 2) {
          driver.fill_16(fill.target, static_cast<unsigned short>(fill.value), fill.width, stream);
        } else {
          driver.fill_8(fill.target, static_cast<unsigned char>(fill.value), fill.width, stream);
        }
        break;
      }
    }
  }
}

GraphCache::~GraphCache() {
  while (!entries_.empty()) remove(entries_.begin());
}

void GraphCache::remove(Entries::iterator entry) {
  auto [begin, end] = table_.equal_range(entry->hash);
  auto row = std::find_if(begin, end, [&](const auto& one) { return one.second == entry; });
  if (row != end) table_.erase(row);
  node_count_ -= std::min(node_count_, entry->segment.nodes.size());
  // A graph that is running ends first: the driver sees to it.
  if (gpu_.can_release() && gpu_.try_to_use()) {
    if (entry->exec) gpu_.driver().destroy_exec.attempt(entry->exec);
    if (entry->graph) gpu_.driver().destroy_graph.attempt(entry->graph);
  }
  entries_.erase(entry);
}

GraphCache::Entries::iterator GraphCache::find(const Segment& segment, uint64_t hash) {
  auto [begin, end] = table_.equal_range(hash);
  for (auto row = begin; row != end; ++row) {
    if (row->second->segment.has_topology_of(segment)) return row->second;
  }
  return entries_.end();
}

void GraphCache::build(Entry& entry) {
  Driver& driver = gpu_.driver();
  driver.create_graph(&entry.graph, 0);
  std::vector<GraphNode> before;
  for (const Segment::Node& node : entry.segment.nodes) {
    before.clear();
    for (uint32_t i = 0; i < node.edge_count; ++i)
      before.push_back(entry.nodes[entry.segment.edges[node.first_edge + i]]);
    GraphNode made = nullptr;
    Ref<const exec::Pipeline> pipeline;
    switch (node.kind) {
      case Segment::Kind::kernel: {
        KernelParameters parameters(entry.segment, node);
        const KernelNode what = kernel_node(node, parameters.get());
        driver.add_kernel_node(&made, entry.graph, before.data(), before.size(), &what);
        pipeline = Ref<const exec::Pipeline>(node.kernel.pipeline);
        break;
      }
      case Segment::Kind::copy: {
        const CopyNode what = copy_node(node);
        driver.add_copy_node(&made, entry.graph, before.data(), before.size(), &what,
                             gpu_.context());
        break;
      }
      case Segment::Kind::fill: {
        const FillNode what = fill_node(node);
        driver.add_fill_node(&made, entry.graph, before.data(), before.size(), &what,
                             gpu_.context());
        break;
      }
    }
    entry.nodes.push_back(made);
    entry.pipelines.push_back(std::move(pipeline));
  }
  driver.instantiate(&entry.exec, entry.graph, 0);
}

void GraphCache::update(Entry& entry, const Segment& segment) {
  Driver& driver = gpu_.driver();
  for (size_t i = 0; i < segment.nodes.size(); ++i) {
    if (segment.is_equal(i, entry.segment)) continue;
    ++stats_.updated_nodes;
    const Segment::Node& node = segment.nodes[i];
    switch (node.kind) {
      case Segment::Kind::kernel: {
        KernelParameters parameters(segment, node);
        const KernelNode what = kernel_node(node, parameters.get());
        driver.set_kernel_node(entry.exec, entry.nodes[i], &what);
        entry.pipelines[i] = Ref<const exec::Pipeline>(node.kernel.pipeline);
        break;
      }
      case Segment::Kind::copy: {
        const CopyNode what = copy_node(node);
        driver.set_copy_node(entry.exec, entry.nodes[i], &what, gpu_.context());
        break;
      }
      case Segment::Kind::fill: {
        const FillNode what = fill_node(node);
        driver.set_fill_node(entry.exec, entry.nodes[i], &what, gpu_.context());
        break;
      }
    }
  }
  entry.segment = segment;
}

void GraphCache::evict() {
  while (entries_.size() > 1 && (entries_.size() > limits_.graphs || node_count_ > limits_.nodes)) {
    ++stats_.evictions;
    remove(std::prev(entries_.end()));
  }
}

void GraphCache::launch(const Segment& segment, Stream stream) {
  const uint64_t hash = segment.topology_hash();
  auto entry = find(segment, hash);
  const bool is_new = entry == entries_.end();
  ++(is_new ? stats_.misses : stats_.hits);
  if (is_new) {
    entries_.emplace_front();
    entry = entries_.begin();
    entry->hash = hash;
  }
  // A graph that is half built or half updated is of no use.
  try {
    if (is_new) {
      entry->segment = segment;
      node_count_ += segment.nodes.size();
      table_.emplace(hash, entry);
      build(*entry);
    } else {
      entries_.splice(entries_.begin(), entries_, entry);
      update(*entry, segment);
    }
    gpu_.driver().launch_graph(entry->exec, stream);
  } catch (...) {
    remove(entry);
    throw;
  }
  evict();
}

}  // namespace holdfast::cuda
