// Is this thread inside a transform that traces, or that keeps the graph?
#pragma once

namespace holdfast::detail {

// How many transforms of this thread are tracing, one inside the other.
int tracing_depth();
inline bool in_tracing() { return tracing_depth() > 0; }
bool retain_graph();

struct InTracing {
  InTracing();
  ~InTracing();
};
struct RetainGraph {
  RetainGraph();
  ~RetainGraph();
};

}  // namespace holdfast::detail
