#include "cuda/fake_driver.h"

#include "cuda/fake_machine.h"

namespace holdfast::testing {
namespace {

using namespace cuda;
using namespace fake;

class State : public Machine {
 public:
  State() {
#define FUNCTION(member, symbol, ...)                          \
  driver.member.call = [](auto... parameters) -> int {         \
    if (const int failed = get().enter(symbol)) return failed; \
    return get().member##_(parameters...);                     \
  };
#include "devices/cuda/driver_functions.def"
#undef FUNCTION
    driver.error_name.call = [](int code, const char** name) {
      return get().error_name_(code, name);
    };
  }

  static State& get() {
    static auto* state = new State;
    return *state;
  }

  Driver driver;

  // --- the functions ---

  int init_(unsigned) { return 0; }
  int driver_version_(int* version) { return *version = 13000, 0; }
  int error_name_(int code, const char** name) {
    *name = code == result::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == illegal_address     ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                          : "CUDA_ERROR_OF_A_TEST";
    return 0;
  }
  int device_count_(int* count) { return *count = 1, 0; }
  int device_(int* device, int) { return *device = 0, 0; }
  int device_name_(char* name, int size, int) {
    std::strncpy(name, "fake GPU", static_cast<size_t>(size));
    return 0;
  }
  int device_attribute_(int* value, int which, int) {
    *value = which == attribute::major ? 9 : which == attribute::writes_64_bits ? 1 : 0;
    return 0;
  }
  int device_memory_(size_t* bytes, int) { return *bytes = size_t{1} << 30, 0; }
  int retain_context_(Context* context, int) {
    return *context = reinterpret_cast<Context>(uintptr_t{8}), 0;
  }
  int set_context_(Context) { return 0; }
  int allocate_(Address* address, size_t bytes) {
    std::lock_guard lock(mutex);
    if (bytes == 0) return invalid_value;
    if (used + bytes > memory) return result::out_of_memory;
    const size_t length = (bytes + page - 1) / page * page;
    // What lies behind is no memory.
    char* base = static_cast<char*>(
        mmap(nullptr, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED) return result::out_of_memory;
    mprotect(base + length, page, PROT_NONE);
    std::memset(base, 0x5a, std::min<size_t>(length, 4 * page));
    allocations[reinterpret_cast<Address>(base)] = bytes;
    used += bytes;
    *address = reinterpret_cast<Address>(base) + bias;
    return 0;
  }
  int release_(Address address) {
    std::lock_guard lock(mutex);
    auto found = allocations.find(address - bias);
    if (found == allocations.end()) return invalid_value;
    munmap(reinterpret_cast<void*>(found->first), (found->second + page - 1) / page * page + page);
    used -= found->second;
    allocations.erase(found);
    return 0;
  }
  int allocate_host_(void** bytes, size_t size, unsigned) {
    std::lock_guard lock(mutex);
    *bytes = std::aligned_alloc(page, (size + page - 1) / page * page);
    pinned[reinterpret_cast<Address>(*bytes)] = size;
    return 0;
  }
  int release_host_(void* bytes) {
    std::lock_guard lock(mutex);
    if (pinned.erase(reinterpret_cast<Address>(bytes)) == 0) return invalid_value;
    std::free(bytes);
    return 0;
  }
  int create_stream_(Stream* stream, unsigned flags) {
    std::lock_guard lock(mutex);
    if (flags != non_blocking_stream) return invalid_value;
    auto* made = new FakeStream;
    streams.insert(made);
    *stream = reinterpret_cast<Stream>(made);
    return 0;
  }
  int destroy_stream_(Stream stream) {
    if (const int failed = synchronize_stream_(stream)) return failed;
    std::lock_guard lock(mutex);
    auto* gone = reinterpret_cast<FakeStream*>(stream);
    if (streams.erase(gone) == 0) return invalid_handle;
    delete gone;
    return 0;
  }
  int synchronize_stream_(Stream stream) {
    auto* waited = reinterpret_cast<FakeStream*>(stream);
    std::unique_lock lock(mutex);
    const uint64_t last = waited->given;
    while (waited->done < last && !lost) changed.wait(lock);
    return lost;
  }
  int query_stream_(Stream stream) {
    std::lock_guard lock(mutex);
    auto* asked = reinterpret_cast<FakeStream*>(stream);
    return lost ? lost : asked->done == asked->given ? 0 : result::not_ready;
  }
  int create_event_(Event* event, unsigned) {
    std::lock_guard lock(mutex);
    auto* made = new FakeEvent;
    events.insert(made);
    *event = reinterpret_cast<Event>(made);
    return 0;
  }
  // Steps may still name it: it is kept.
  int destroy_event_(Event event) {
    std::lock_guard lock(mutex);
    return events.erase(reinterpret_cast<FakeEvent*>(event)) == 0 ? invalid_handle : 0;
  }
  int record_event_(Event event, Stream stream) {
    auto* recorded = reinterpret_cast<FakeEvent*>(event);
    uint64_t version;
    {
      std::lock_guard lock(mutex);
      version = ++recorded->recorded;
    }
    add(stream, [this, recorded, version] {
      std::lock_guard lock(mutex);
      recorded->done = std::max(recorded->done, version);
      changed.notify_all();
    });
    return 0;
  }
  int wait_event_(Stream stream, Event event, unsigned) {
    auto* awaited = reinterpret_cast<FakeEvent*>(event);
    uint64_t version;
    {
      std::lock_guard lock(mutex);
      version = awaited->recorded;
    }
    add_step(reinterpret_cast<FakeStream*>(stream), [this, awaited, version] {
      std::lock_guard lock(mutex);
      return awaited->done >= version;
    });
    return 0;
  }
  int synchronize_event_(Event event) {
    auto* waited = reinterpret_cast<FakeEvent*>(event);
    std::unique_lock lock(mutex);
    const uint64_t version = waited->recorded;
    while (waited->done < version && !lost) changed.wait(lock);
    return lost;
  }
  int write_value_(Stream stream, Address address, uint64_t value, unsigned) {
    add(stream, [this, address, value] {
      char* word = find(address, 8);
      if (!word) return fault(illegal_address);
      std::atomic_ref(*reinterpret_cast<uint64_t*>(word)).store(value, std::memory_order_release);
    });
    return 0;
  }
  // From pinned memory when the stream comes to it, from other memory at once, as the driver does.
  int copy_in_(Address target, const void* source, size_t bytes, Stream stream) {
    const auto from = reinterpret_cast<Address>(source);
    if (find(from, bytes)) {
      add(stream, [=, this] { run_copy(target, from, bytes); });
      return 0;
    }
    auto* first = static_cast<const char*>(source);
    add(stream, [this, target, copy = std::vector<char>(first, first + bytes)] {
      char* to = find(target, copy.size());
      if (!to) return fault(illegal_address);
      std::memcpy(to, copy.data(), copy.size());
    });
    return 0;
  }
  int copy_out_(void* target, Address source, size_t bytes, Stream stream) {
    add(stream, [=, this] {
      char* from = find(source, bytes);
      if (!from) return fault(illegal_address);
      std::memcpy(target, from, bytes);
    });
    return 0;
  }
  int copy_(Address target, Address source, size_t bytes, Stream stream) {
    add(stream, [=, this] { run_copy(target, source, bytes); });
    return 0;
  }
  int add_fill(const FillNode& fill, Stream stream) {
    add(stream, [=, this] { run_fill(fill); });
    return 0;
  }
  int fill_8_(Address at, unsigned char value, size_t count, Stream stream) {
    return add_fill({at, 0, value, 1, count, 1}, stream);
  }
  int fill_16_(Address at, unsigned short value, size_t count, Stream stream) {
    return add_fill({at, 0, value, 2, count, 1}, stream);
  }
  int fill_32_(Address at, unsigned value, size_t count, Stream stream) {
    return add_fill({at, 0, value, 4, count, 1}, stream);
  }
  int fill_rows_32_(Address at, size_t pitch, unsigned value, size_t width, size_t height,
                    Stream stream) {
    return add_fill({at, pitch, value, 4, width, height}, stream);
  }
  int load_module_(Module* module, const void* image) {
    std::lock_guard lock(mutex);
    const std::string code = static_cast<const char*>(image);
    auto found = kernels.find(code.substr(0, code.find('\n')));
    if (found == kernels.end()) return 200;
    auto* made = new FakeModule{found->second, code.substr(code.find('\n') + 1)};
    modules.insert(made);
    *module = reinterpret_cast<Module>(made);
    return 0;
  }
  int unload_module_(Module module) {
    std::lock_guard lock(mutex);
    auto* gone = reinterpret_cast<FakeModule*>(module);
    // Its address is never used again, so that a launch that names it is found.
    return modules.erase(gone) == 0 ? invalid_handle : 0;
  }
  int function_(Function* function, Module module, const char* symbol) {
    if (reinterpret_cast<FakeModule*>(module)->symbol != symbol) return not_found;
    *function = reinterpret_cast<Function>(module);
    return 0;
  }
  int function_attribute_(int* value, int, Function) { return *value = 1024, 0; }

  bool take_launch(const KernelNode& node, Launch& launch) {
    launch.module = reinterpret_cast<FakeModule*>(node.function);
    {
      std::lock_guard lock(mutex);
      if (!modules.contains(launch.module)) return false;
    }
    std::copy_n(node.grid, 3, launch.grid);
    std::copy_n(node.block, 3, launch.threads);
    launch.shared_bytes = node.shared_bytes;
    const uint64_t threads = uint64_t{node.block[0]} * node.block[1] * node.block[2];
    if (threads == 0 || threads > 1024 || node.block[2] > 64 || node.grid[0] == 0 ||
        node.grid[0] > 0x7fffffff || node.grid[1] > 65535 || node.grid[2] > 65535 ||
        node.shared_bytes > 48 * 1024)
      return false;
    const FakeKernel& kernel = *launch.module->kernel;
    const ParameterLayout layout = launch.module->layout();
    launch.block.resize(layout.bytes);
    const size_t count = kernel.interface.arguments.size();
    for (size_t i = 0; i < count; ++i)
      std::memcpy(launch.block.data() + 8 * i, node.parameters[i], 8);
    std::memcpy(launch.block.data() + layout.launch, node.parameters[count],
                layout.bytes - layout.launch);
    return true;
  }
  int launch_(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared, Stream stream, void** parameters, void**) {
    Launch launch;
    if (!take_launch(
            {function, {gx, gy, gz}, {bx, by, bz}, shared, parameters, nullptr, nullptr, nullptr},
            launch))
      return invalid_value;
    add(stream, [this, launch = std::move(launch)] { run_kernel(launch); });
    return 0;
  }
  int create_graph_(Graph* graph, unsigned) {
    std::lock_guard lock(mutex);
    auto* made = new FakeGraph;
    graphs.insert(made);
    *graph = reinterpret_cast<Graph>(made);
    return 0;
  }
  int destroy_graph_(Graph graph) {
    std::lock_guard lock(mutex);
    auto* gone = reinterpret_cast<FakeGraph*>(graph);
    if (graphs.erase(gone) == 0) return invalid_handle;
    delete gone;
    return 0;
  }
  FakeNode& add_node(GraphNode* made, Graph graph, const GraphNode* before, size_t count) {
    auto& nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
    auto node = std::make_unique<FakeNode>();
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < nodes.size(); ++k) {
        if (nodes[k].get() == reinterpret_cast<FakeNode*>(before[i])) node->before.push_back(k);
      }
    }
    *made = reinterpret_cast<GraphNode>(node.get());
    nodes.push_back(std::move(node));
    return *nodes.back();
  }
  int add_kernel_node_(GraphNode* made, Graph graph, const GraphNode* before, size_t count,
                       const KernelNode* what) {
    Launch launch;
    if (!take_launch(*what, launch)) return invalid_value;
    add_node(made, graph, before, count).launch = std::move(launch);
    return 0;
  }
  int add_copy_node_(GraphNode* made, Graph graph, const GraphNode* before, size_t count,
                     const CopyNode* what, Context) {
    FakeNode& node = add_node(made, graph, before, count);
    node.kind = FakeNode::Kind::copy;
    node.copy = *what;
    return what->height == 1 && what->depth == 1 && what->width > 0 ? 0 : invalid_value;
  }
  int add_fill_node_(GraphNode* made, Graph graph, const GraphNode* before, size_t count,
                     const FillNode* what, Context) {
    FakeNode& node = add_node(made, graph, before, count);
    node.kind = FakeNode::Kind::fill;
    node.fill = *what;
    return what->width > 0 && what->height > 0 ? 0 : invalid_value;
  }
  int instantiate_(GraphExec* exec, Graph graph, unsigned long long) {
    std::lock_guard lock(mutex);
    auto* made = new FakeExec;
    for (auto& node : reinterpret_cast<FakeGraph*>(graph)->nodes) {
      made->places[node.get()] = made->nodes.size();
      made->nodes.push_back(*node);
    }
    execs.insert(made);
    *exec = reinterpret_cast<GraphExec>(made);
    return 0;
  }
  int destroy_exec_(GraphExec exec) {
    std::lock_guard lock(mutex);
    auto* gone = reinterpret_cast<FakeExec*>(exec);
    if (execs.erase(gone) == 0) return invalid_handle;
    delete gone;
    return 0;
  }
  FakeNode* node_of(GraphExec exec, GraphNode node, FakeNode::Kind kind) {
    auto* in = reinterpret_cast<FakeExec*>(exec);
    auto found = in->places.find(node);
    if (found == in->places.end() || in->nodes[found->second].kind != kind) return nullptr;
    return &in->nodes[found->second];
  }
  int set_kernel_node_(GraphExec exec, GraphNode which, const KernelNode* what) {
    FakeNode* node = node_of(exec, which, FakeNode::Kind::kernel);
    return node && take_launch(*what, node->launch) ? 0 : invalid_value;
  }
  int set_copy_node_(GraphExec exec, GraphNode which, const CopyNode* what, Context) {
    FakeNode* node = node_of(exec, which, FakeNode::Kind::copy);
    if (!node || what->width == 0) return invalid_value;
    node->copy = *what;
    return 0;
  }
  int set_fill_node_(GraphExec exec, GraphNode which, const FillNode* what, Context) {
    FakeNode* node = node_of(exec, which, FakeNode::Kind::fill);
    if (!node || what->width == 0) return invalid_value;
    node->fill = *what;
    return 0;
  }
  int launch_graph_(GraphExec exec, Stream stream) {
    auto* launched = reinterpret_cast<FakeExec*>(exec);
    {
      std::lock_guard lock(mutex);
      if (!execs.contains(launched)) return invalid_handle;
    }
    add(stream, [this, nodes = launched->nodes] { run_graph(nodes); });
    return 0;
  }
  // What is linked is what was added.
  int create_link_(unsigned, int*, void**, Link* link) {
    return *link = reinterpret_cast<Link>(new std::string), 0;
  }
  int add_to_link_(Link link, int, void* data, size_t size, const char*, unsigned, int*, void**) {
    reinterpret_cast<std::string*>(link)->assign(static_cast<char*>(data), size - 1);
    return 0;
  }
  int complete_link_(Link link, void** code, size_t* size) {
    auto* text = reinterpret_cast<std::string*>(link);
    *code = text->data();
    *size = text->size();
    return 0;
  }
  int destroy_link_(Link link) {
    delete reinterpret_cast<std::string*>(link);
    return 0;
  }
};

}  // namespace

FakeDriver& FakeDriver::get() {
  static auto* fake = new FakeDriver;
  return *fake;
}

Driver& FakeDriver::driver() { return State::get().driver; }

CompiledKernel FakeDriver::add(const std::string& name, FakeKernel kernel) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  const std::string code = name + " " + std::to_string(state.kernels.size());
  CompiledKernel compiled;
  compiled.interface = kernel.interface;
  compiled.guarded = kernel.is_guarded;
  compiled.can_be_cancelled = !kernel.has_inline_constants;
  compiled.images.push_back(
      {Positions::rows, 16, true, kernel.has_inline_constants, "rows", code + "\nrows"});
  compiled.images.push_back({Positions::general, 1, false, false, "general", code + "\ngeneral"});
  state.kernels[code] = new FakeKernel(std::move(kernel));
  return compiled;
}

void FakeDriver::set_seed(uint64_t seed, int slowness) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.random.seed(seed);
  state.slowness = slowness;
}

void FakeDriver::hold() {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.is_held = true;
}

void FakeDriver::release() {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.is_held = false;
  state.changed.notify_all();
}

void FakeDriver::set_memory(size_t bytes) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.memory = bytes;
}

void FakeDriver::fail_call(uint64_t k, int code, const std::string& symbol) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.failing_call = k;
  state.failing_code = code;
  state.failing_symbol = symbol;
}

void FakeDriver::mend() {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  state.failing_call = 0;
  state.lost = 0;
  state.changed.notify_all();
}

uint64_t FakeDriver::calls(const std::string& symbol) {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  return symbol.empty() ? state.call_count : state.calls_of[symbol];
}

FakeCounts FakeDriver::counts() {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  return {state.allocations.size(), state.used,           state.streams.size(),
          state.events.size(),      state.modules.size(), state.execs.size()};
}

bool FakeDriver::is_lost() {
  State& state = State::get();
  std::lock_guard lock(state.mutex);
  return state.lost != 0;
}

}  // namespace holdfast::testing
