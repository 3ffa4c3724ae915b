#include "exec/layers/validation/validator.h"
#include "validation/cases.h"

namespace holdfast::testing {
namespace {

void raw_range(int64_t begin, int64_t end, bool writes) {
  OwnStream s;
  RawBuffer raw(64);
  eval(lone_op("Raw", s, [&](Encoder& encoder, array& out) {
    writes ? encoder.raw_output(raw.buffer, begin, end) : encoder.raw_input(raw.buffer, begin, end);
    encoder.output(out);
    hold(encoder, "touch", raw.buffer.raw_ptr());
  }));
}

// A temporary with memory for fewer elements than it has. (An output of the op would be refused.)
void small_temporary(size_t bytes) {
  OwnStream s;
  eval(lone_op("Small", s, [bytes](Encoder& encoder, array& out) {
    array temporary(Shape{16}, int32, nullptr, {});
    temporary.set_data(encoder.allocate(bytes));
    encoder.output(temporary);
    encoder.output(out);
    hold(encoder, "write", temporary.data<int32_t>());
  }));
}

// Dispatches a kernel "probe" with arguments x and y.
void dispatch(const KernelBinding& x, array& out, Encoder& encoder, uint32_t element = 4) {
  Ref<exec::Pipeline> kernel = idle_kernel("probe", {reads("x", 0, element), writes("y", 1)});
  KernelBinding bindings[] = {x, KernelBinding::output(out)};
  encoder.dispatch(*kernel, bindings, {16}, {16});
}

void bound_bytes(size_t size, uint32_t element) {
  OwnStream s;
  eval(lone_op("Probe", s, [=](Encoder& encoder, array& out) {
    char bytes[64] = {};
    dispatch(KernelBinding::bytes(bytes, size), out, encoder, element);
  }));
}

void bound_array(int count, uint32_t element) {
  OwnStream s;
  array x = astype(counting(count), int8, s);
  eval(x);
  eval(make_op("Probe", s, {x}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    dispatch(KernelBinding::input(in[0]), out[0], encoder, element);
  }));
}

// An int32 array `offset` bytes into adopted memory.
void adopted_at(int offset, bool as_output) {
  OwnStream s;
  alignas(64) static char memory[128];
  array x(memory + offset, {16}, int32, [](void*) {});
  eval(make_op("Probe", s, {x}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    if (!as_output) {
      dispatch(KernelBinding::input(in[0]), out[0], encoder);
      return;
    }
    array target = in[0];
    dispatch(KernelBinding::input(out[0]), target, encoder);
  }));
}

void view_at(int64_t offset) {
  OwnStream s;
  eval(lone_op("Probe", s, [=](Encoder& encoder, array& out) {
    array x(Shape{8}, int32, nullptr, {});
    x.set_data(encoder.allocate(64), 8, Strides{1}, {true, true, true}, offset);
    dispatch(KernelBinding::input(x), out, encoder);
  }));
}

// An argument whose type needs `alignment`, bound to an array `offset` bytes into its buffer.
void typed_view(int64_t offset, uint32_t alignment, bool as_output = false) {
  OwnStream s;
  eval(lone_op("Probe", s, [=](Encoder& encoder, array& out) {
    array x(Shape{8}, int32, nullptr, {});
    x.set_data(encoder.allocate(128), 8, Strides{1}, {true, true, true}, offset);
    msl::KernelArgument vectors = as_output ? writes("x", 0) : reads("x", 0);
    vectors.alignment = alignment;
    KernelBinding bindings[] = {as_output ? KernelBinding::output(x) : KernelBinding::input(x),
                                KernelBinding::output(out)};
    encoder.dispatch(*idle_kernel("probe", {vectors, writes("y", 1)}), bindings, {8}, {8});
  }));
}

// What is bound to x was bound for this dispatch, or for one of another kernel.
void kept(KernelBinding::Kind kind, bool binds_again) {
  OwnStream s;
  eval(make_op("Probe", s, {counting(16)}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    array between(Shape{16}, int32, nullptr, {});
    encoder.allocate(between);
    bool is_written = kind == KernelBinding::Kind::output;
    KernelBinding x = kind == KernelBinding::Kind::bytes ? KernelBinding::bytes("1234", 4)
                      : is_written                       ? KernelBinding::output(between)
                                                         : KernelBinding::input(in[0]);
    Ref<exec::Pipeline> first = idle_kernel("first", {reads("x", 0), writes("y", 1)});
    if (!binds_again) x.bound_for = first.get();
    KernelBinding bindings[] = {x, KernelBinding::output(out[0])};
    auto argument = is_written ? writes("x", 0) : reads("x", 0);
    encoder.dispatch(*idle_kernel("second", {argument, writes("y", 1)}), bindings, {16}, {16});
  }));
}

// A kernel that writes y, which is bound as what it is or as an input.
void written_slot(uint32_t slot, bool as_output) {
  OwnStream s;
  array x = counting(16);
  eval(make_op("Probe", s, {x}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    std::vector<msl::KernelArgument> arguments;
    std::vector<KernelBinding> bindings;
    for (uint32_t i = 0; i <= slot; ++i) {
      arguments.push_back(i == slot ? writes("y", i) : reads("x" + std::to_string(i), i));
      bindings.push_back(i < slot || !as_output ? KernelBinding::input(in[0])
                                                : KernelBinding::output(out[0]));
    }
    encoder.dispatch(*idle_kernel("probe", arguments), bindings, {16}, {16});
  }));
}

// Input and output over one buffer of 128 bytes, `distance` elements apart.
void overlapping(int64_t distance) {
  OwnStream s;
  eval(lone_op("Probe", s, [=](Encoder& encoder, array& out) {
    array x(Shape{16}, int32, nullptr, {});
    x.set_data(encoder.allocate(128));
    array y(Shape{16}, int32, nullptr, {});
    y.copy_shared_buffer(x, Strides{1}, {true, true, true}, 16, distance);
    dispatch(KernelBinding::input(x), y, encoder);
    encoder.input(y);
    encoder.output(out);
    hold(encoder, "use", nullptr);
  }));
}

void two_outputs(bool share) {
  OwnStream s;
  eval(lone_op("Probe", s, [=](Encoder& encoder, array& out) {
    array y(Shape{16}, int32, nullptr, {}), z(Shape{16}, int32, nullptr, {});
    encoder.allocate(y);
    share ? z.copy_shared_buffer(y) : encoder.allocate(z);
    KernelBinding bindings[] = {KernelBinding::output(y), KernelBinding::output(z),
                                KernelBinding::output(out)};
    encoder.dispatch(*idle_kernel("probe", {writes("y", 0), writes("z", 1)}), bindings, {16}, {16});
  }));
}

void shared_adopted_memory(int distance) {
  OwnStream s;
  alignas(64) static int32_t memory[64];
  array x(memory, {16}, int32, [](void*) {});
  array y(memory + distance, {16}, int32, [](void*) {});
  eval(make_op("Probe", s, {x, y}, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    array target = in[1];
    dispatch(KernelBinding::input(in[0]), target, encoder);
  }));
}

// --- the fourth history: the first call's weights stay bound ---

// Dispatches by hand: two kernels of one name, each with its weights, which are parts of one
// buffer. `rebinds`: what the encoder of the second one does.
void weights(int layers, bool rebinds, bool reads_last = true) {
  OwnStream s;
  std::vector<array> inputs;
  array all = counting(16 * layers);
  for (int i = 0; i < layers; ++i) inputs.push_back(slice(all, {16 * i}, {16 * i + 16}, s));
  eval(inputs);
  eval(make_op("Layers", s, inputs, {16}, [=](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    exec::Queue& queue = encoder.queue();
    Ref<exec::Pipeline> kernel = idle_kernel("layer", {reads("weights", 0), writes("y", 1)});
    for (size_t i = 0; i < in.size(); ++i) {
      Bound weights = encoder.input(in[i]), y = encoder.output(out[0]);
      const array& used = rebinds || (reads_last && i + 1 < in.size()) ? in[i] : in[0];
      auto* arguments =
          new (queue.parameters(2 * sizeof(exec::DispatchArgument), 8)) exec::DispatchArgument[2];
      arguments[0].place = {weights.index, used.offset()};
      arguments[1].place = {y.index, out[0].offset()};
      auto* dispatched = new (queue.parameters(sizeof(exec::Dispatch), 8)) exec::Dispatch;
      dispatched->arguments = arguments;
      dispatched->argument_count = 2;
      dispatched->addresses = static_cast<void**>(queue.parameters(2 * sizeof(void*), 8));
      queue.retain(*kernel);
      exec::Command& command = queue.begin_command();
      command.kind = exec::Command::Kind::dispatch;
      command.detail = "dispatch";
      command.pipeline = kernel.get();
      command.pipeline_identity = kernel->identity();
      command.dispatch = dispatched;
      queue.end_command();
    }
  }));
}

#define BINDING(id, name, planted, clean, ...)                                        \
  {                                                                                   \
    "bindings." id, name, "bindings", [] { planted; }, [] { clean; }, { __VA_ARGS__ } \
  }

const ValidationCase cases[] = {
    BINDING("out-of-range", "a command reads beyond the end of a buffer", raw_range(0, 65, false),
            raw_range(0, 64, false), {"op", "Raw"}, {"command", "touch"}, {"bytes", "0-65"},
            {"access", "read"}, {"buffer_bytes", "64"}),
    BINDING("out-of-range", "a command writes before the start of a buffer", raw_range(-4, 8, true),
            raw_range(4, 8, true), {"op", "Raw"}, {"bytes", "-4-8"}, {"access", "write"}),
    BINDING("out-of-range", "a temporary has memory for half of its elements", small_temporary(32),
            small_temporary(64), {"op", "Small"}, {"bytes", "0-64"}, {"buffer_bytes", "32"}),
    BINDING("too-small", "two bytes are bound to an int", bound_bytes(2, 4), bound_bytes(4, 4),
            {"kernel", "probe"}, {"argument", "x"}, {"slot", "0"}, {"bound_bytes", "2"}),
    BINDING("too-small", "a float is bound to a struct of 24 bytes", bound_bytes(4, 24),
            bound_bytes(24, 24), {"kernel", "probe"}, {"element_bytes", "24"}),
    BINDING("too-small", "an array of one byte is bound to a pointer to int", bound_array(1, 4),
            bound_array(4, 4), {"op", "Probe"}, {"bound_bytes", "1"}),
    BINDING("misaligned", "an input starts in the middle of an item", adopted_at(2, false),
            adopted_at(4, false), {"kernel", "probe"}, {"argument", "x"}, {"item_bytes", "4"}),
    BINDING("misaligned", "an output starts in the middle of an item", adopted_at(1, true),
            adopted_at(8, true), {"kernel", "probe"}, {"argument", "y"}),
    BINDING("misaligned", "a view is an odd number of bytes into its buffer", view_at(5),
            view_at(8), {"argument", "x"}, {"offset", "5"}),
    BINDING("misaligned", "an argument of vectors of four starts at the second number",
            typed_view(4, 16), typed_view(16, 16), {"argument", "x"}, {"offset", "4"},
            {"alignment", "16"}),
    BINDING("misaligned", "an argument of structs with a long starts between two of them",
            typed_view(12, 8), typed_view(8, 8), {"alignment", "8"}),
    BINDING("misaligned", "an argument of vectors that is written starts in the middle of one",
            typed_view(8, 16, true), typed_view(32, 16, true), {"offset", "8"},
            {"alignment", "16"}),
    BINDING("kept", "an input was bound for another kernel",
            kept(KernelBinding::Kind::input, false), kept(KernelBinding::Kind::input, true),
            {"kernel", "second"}, {"other_kernel", "first"}, {"argument", "x"}),
    BINDING("kept", "an output was bound for another kernel",
            kept(KernelBinding::Kind::output, false), kept(KernelBinding::Kind::output, true),
            {"kernel", "second"}, {"other_kernel", "first"}),
    BINDING("kept", "a number was bound for another kernel",
            kept(KernelBinding::Kind::bytes, false), kept(KernelBinding::Kind::bytes, true),
            {"kernel", "second"}, {"severity", "warning"}),
    BINDING("input-written", "a kernel writes its only input", written_slot(0, false),
            written_slot(0, true), {"kernel", "probe"}, {"argument", "y"}, {"slot", "0"}),
    BINDING("input-written", "a kernel writes its second input", written_slot(1, false),
            written_slot(1, true), {"argument", "y"}, {"slot", "1"}),
    BINDING("input-written", "a kernel writes its eighth input", written_slot(7, false),
            written_slot(7, true), {"argument", "y"}, {"slot", "7"}),
    BINDING("same-memory", "an output overlaps an input by all but one element", overlapping(1),
            overlapping(0), {"kernel", "probe"}, {"argument", "y"}, {"other_argument", "x"}),
    BINDING("same-memory", "two outputs are one buffer", two_outputs(true), two_outputs(false),
            {"argument", "y"}, {"other_argument", "z"}),
    BINDING("same-memory", "adopted memory of an output overlaps that of an input",
            shared_adopted_memory(8), shared_adopted_memory(16), {"argument", "y"},
            {"other_argument", "x"}),
    BINDING("left-over", "a same-named kernel uses the first call's weights", weights(2, false),
            weights(2, true), {"kernel", "layer"}, {"argument", "weights"}, {"offset", "0"},
            {"buffer_bytes", "128"}),
    BINDING("left-over", "the last of twelve layers uses the first one's weights",
            weights(12, false), weights(12, true), {"kernel", "layer"}, {"index", "11"}),
    BINDING("left-over", "all of twelve layers use the first one's weights",
            weights(12, false, false), weights(12, true), {"kernel", "layer"}, {"index", "1"}),
};

// --- resources ---

void many_slots(uint32_t count) {
  OwnStream s;
  eval(lone_op("Wide", s, [=](Encoder& encoder, array& out) {
    std::vector<KernelBinding> bindings;
    float value = 0;
    for (uint32_t i = 1; i < count; ++i) bindings.push_back(KernelBinding::bytes(&value, 4));
    bindings.push_back(KernelBinding::output(out));
    encoder.dispatch(*idle_kernel("wide", {writes("y", count - 1)}), bindings, {16}, {16});
  }));
}

void threadgroup_memory(uint32_t variables, uint32_t argument_bytes) {
  OwnStream s;
  eval(lone_op("Tiles", s, [=](Encoder& encoder, array& out) {
    msl::KernelArgument tile{"tile", msl::KernelArgument::Kind::threadgroup, true, 0, 4};
    KernelBinding bindings[] = {KernelBinding::output(out)};
    uint32_t sizes[] = {argument_bytes};
    encoder.dispatch(*idle_kernel("tiles", {writes("y", 0), tile}, variables), bindings, {16}, {16},
                     sizes);
  }));
}

void live_buffers(size_t count, size_t limit) {
  size_t usual = validation::Validator::live_buffer_limit.exchange(limit);
  std::vector<array> arrays;
  for (size_t i = 0; i < count; ++i) arrays.push_back(counting(4));
  validation::Validator::live_buffer_limit = usual;
}

#define RESOURCE(id, name, planted, clean, ...)                                         \
  {                                                                                     \
    "resources." id, name, "resources", [] { planted; }, [] { clean; }, { __VA_ARGS__ } \
  }

const ValidationCase resource_rows[] = {
    RESOURCE("buffer-slots", "a dispatch binds 32 slots", many_slots(32), many_slots(31),
             {"kernel", "wide"}, {"slots", "32"}, {"limit", "31"}),
    RESOURCE("buffer-slots", "a dispatch binds 40 slots", many_slots(40), many_slots(30),
             {"slots", "40"}),
    RESOURCE("buffer-slots", "a dispatch binds 100 slots", many_slots(100), many_slots(1),
             {"slots", "100"}),
    RESOURCE("threadgroup-memory", "a kernel has too large threadgroup variables",
             threadgroup_memory(33000, 0), threadgroup_memory(32768, 0), {"kernel", "tiles"},
             {"bytes", "33000"}, {"limit", "32768"}),
    RESOURCE("threadgroup-memory", "a threadgroup argument is too large",
             threadgroup_memory(0, 65536), threadgroup_memory(0, 32768), {"bytes", "65536"}),
    RESOURCE("threadgroup-memory", "variables and arguments together are too large",
             threadgroup_memory(32000, 1000), threadgroup_memory(32000, 768), {"bytes", "33000"}),
    RESOURCE("live-buffers", "more buffers than the limit", live_buffers(20, 10),
             live_buffers(5, 10), {"severity", "warning"}, {"limit", "10"}, {"live", "11"}),
    RESOURCE("live-buffers", "one buffer more than the limit", live_buffers(101, 100),
             live_buffers(100, 100), {"live", "101"}),
    RESOURCE("live-buffers", "a limit of one", live_buffers(2, 1), live_buffers(1, 1),
             {"live", "2"}),
};

}  // namespace

std::span<const ValidationCase> binding_cases() { return cases; }
std::span<const ValidationCase> resource_cases() { return resource_rows; }

}  // namespace holdfast::testing
