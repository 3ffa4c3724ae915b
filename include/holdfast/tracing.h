// Which transforms are tracing on the calling thread.
#pragma once

namespace holdfast::detail {

// How many transforms of this thread are tracing, one inside the other.
int tracing_depth();
inline bool in_tracing() { return tracing_depth() > 0; }
// Is one of them tracing for any shape? Then no number may be taken from a shape.
bool in_dynamic_tracing();
// Is one of them differentiating?
bool in_grad_tracing();
// Does the thread call a function in order to save it? The second: with no other transform in
// between.
bool in_export_tracing();
bool is_export_innermost();
// Does evaluation on this thread keep the graph?
bool retain_graph();

struct InTracing {
  explicit InTracing(bool dynamic = false, bool grad = false);
  ~InTracing();
  InTracing(const InTracing&) = delete;
  InTracing& operator=(const InTracing&) = delete;

 private:
  bool dynamic_, grad_;
};
class InExportTracing {
 public:
  explicit InExportTracing(bool dynamic = false);
  ~InExportTracing();

 private:
  InTracing tracing_;
  int outer_;
};
struct RetainGraph {
  RetainGraph();
  ~RetainGraph();
};

}  // namespace holdfast::detail
