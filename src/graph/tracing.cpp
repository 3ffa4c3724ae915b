#include <holdfast/tracing.h>

namespace holdfast::detail {
namespace {

thread_local int tracing = 0;
thread_local int dynamic_tracing = 0;
thread_local int grad_tracing = 0;
thread_local int retaining = 0;
thread_local int exporting = 0;  // the depth of the innermost export

}  // namespace

int tracing_depth() { return tracing; }
bool retain_graph() { return retaining > 0; }
bool in_dynamic_tracing() { return dynamic_tracing > 0; }
bool in_grad_tracing() { return grad_tracing > 0; }
bool in_export_tracing() { return exporting > 0; }
bool is_export_innermost() { return exporting > 0 && exporting == tracing; }
InTracing::InTracing(bool dynamic, bool grad) : dynamic_(dynamic), grad_(grad) {
  ++tracing;
  dynamic_tracing += dynamic_;
  grad_tracing += grad_;
}
InTracing::~InTracing() {
  --tracing;
  dynamic_tracing -= dynamic_;
  grad_tracing -= grad_;
}
InExportTracing::InExportTracing(bool dynamic) : tracing_(dynamic), outer_(exporting) {
  exporting = tracing;
}
InExportTracing::~InExportTracing() { exporting = outer_; }
RetainGraph::RetainGraph() { ++retaining; }
RetainGraph::~RetainGraph() { --retaining; }

}  // namespace holdfast::detail
