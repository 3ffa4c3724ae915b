// GraphCache: the graphs of a queue. Lists of one topology have one graph, whose nodes are updated
// where they differ from those of the last launch.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "devices/cuda/gpu.h"
#include "devices/cuda/gpu_kernel.h"

namespace holdfast::cuda {

// Work of one stream with its order, addresses and all.
struct Segment {
  enum class Kind : uint8_t { kernel, copy, fill };
  struct Kernel {
    const GpuKernel* pipeline;
    Function function;
    LaunchShape shape;
    uint32_t shared_bytes, first_byte, byte_count;  // of its block, in `parameters`
  };
  struct Copy {
    Address target, source;
    size_t bytes;
  };
  // `height` rows of `width` elements, `pitch` bytes from each other.
  struct Fill {
    Address target;
    size_t pitch, width, height;
    uint32_t value, element_size;
  };
  struct Node {
    Kind kind = Kind::kernel;
    uint32_t first_edge = 0, edge_count = 0;  // nodes that come before, in `edges`
    union {
      Kernel kernel{};
      Copy copy;
      Fill fill;
    };
  };
  std::vector<Node> nodes;
  std::vector<uint32_t> edges;
  std::vector<char> parameters;

  void clear();
  bool has_topology_of(const Segment& other) const;
  uint64_t topology_hash() const;
  // Is the node the same, addresses and all?
  bool is_equal(size_t node, const Segment& other) const;

  // One call for each node, in order.
  void launch(Driver& driver, Stream stream);
};

// Used by one thread at a time, with the GPU in use. Owns the pipelines that its graphs refer to.
class GraphCache {
 public:
  struct Limits {
    size_t graphs = 64, nodes = 16384;
  };
  struct Stats {
    uint64_t hits = 0, misses = 0, evictions = 0, updated_nodes = 0;
  };
  explicit GraphCache(Gpu& gpu) : gpu_(gpu) {}
  GraphCache(Gpu& gpu, Limits limits) : gpu_(gpu), limits_(limits) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Throws Error: then nothing was launched.
  void launch(const Segment& segment, Stream stream);
  const Stats& stats() const { return stats_; }
  size_t graph_count() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    Segment segment;  // as it was launched last
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    std::vector<GraphNode> nodes;
    std::vector<Ref<const exec::Pipeline>> pipelines;  // by node
  };
  using Entries = std::list<Entry>;  // the one that was used last comes first

  Entries::iterator find(const Segment& segment, uint64_t hash);
  void build(Entry& entry);
  void update(Entry& entry, const Segment& segment);
  void evict();
  void remove(Entries::iterator entry);

  Gpu& gpu_;
  const Limits limits_{};
  Entries entries_;
  std::unordered_multimap<uint64_t, Entries::iterator> table_;
  size_t node_count_ = 0;
  Stats stats_;
};

}  // namespace holdfast::cuda
