#include "graph/tracing.h"

namespace holdfast::detail {
namespace {

thread_local int tracing = 0;
thread_local int retaining = 0;

}  // namespace

int tracing_depth() { return tracing; }
bool retain_graph() { return retaining > 0; }
InTracing::InTracing() { ++tracing; }
InTracing::~InTracing() { --tracing; }
RetainGraph::RetainGraph() { ++retaining; }
RetainGraph::~RetainGraph() { --retaining; }

}  // namespace holdfast::detail
