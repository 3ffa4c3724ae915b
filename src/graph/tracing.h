// Is this thread inside a transform that traces, or that keeps the graph?
#pragma once

namespace holdfast::detail {

bool in_tracing();
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
