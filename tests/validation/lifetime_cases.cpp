#include "validation/cases.h"

namespace holdfast::testing {
namespace {

// --- buffers that are bound to a command, by an encoder that does not retain ---

void input_dropped(bool retains) {
  OwnStream s;
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  std::optional<array> x = counting(48);
  array y = affine(*x, 3, 1, s);
  async_eval(y);
  x.reset();
  retains ? gate.open() : give_up_work(s, gate);
}

void output_dropped(bool retains) {
  OwnStream s;
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  array x = counting(48);
  std::optional<array> y = affine(x, 3, 1, s);
  async_eval(*y);
  y.reset();
  retains ? gate.open() : give_up_work(s, gate);
}

// While the list is still open: by the hook of the op that follows.
void raw_buffer_freed(bool retains) {
  OwnStream s;
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  allocator::Buffer raw = allocator::malloc(64);
  array x = counting(16);
  array y = make_op("ReadsRaw", s, {x}, {16},
                    [raw](Encoder& encoder, const auto& in, std::vector<array>& out) {
                      encoder.allocate(out[0]);
                      encoder.input(in[0]);
                      encoder.raw_input(raw, 0, 64);
                      encoder.output(out[0]);
                      hold(encoder, "reads raw", raw.raw_ptr());
                    });
  array z = with_encode_hook(y, [raw] { allocator::free(raw); }, s);
  async_eval(z);
  retains ? gate.open() : give_up_work(s, gate);
}

// --- memory that a command holds the address of ---

// The first history: a primitive that forgets to register its temporary.
void temporary(bool binds) {
  OwnStream s;
  label::Scope label("model/layer0");
  array y = lone_op("Scratch", s, [binds](Encoder& encoder, array& out) {
    array scratch(Shape{100}, int32, nullptr, {});
    encoder.allocate(scratch);
    if (binds) encoder.output(scratch);
    hold(encoder, "fill scratch", scratch.data<int32_t>());
    if (binds) encoder.input(scratch);
    encoder.output(out);
    hold(encoder, "use scratch", scratch.data<int32_t>());
  });
  eval(y);
}

void malloced_scratch(bool binds) {
  OwnStream s;
  array y = lone_op("Workspace", s, [binds](Encoder& encoder, array& out) {
    RawBuffer scratch(256);
    if (binds) encoder.raw_output(scratch.buffer, 0, 256);
    encoder.output(out);
    hold(encoder, "use workspace", static_cast<char*>(scratch.buffer.raw_ptr()) + 128);
  });
  eval(y);
}

// An op that throws has encoded nothing: what it held was no mistake.
void op_that_throws() {
  OwnStream s;
  array y = lone_op("Throws", s, [](Encoder& encoder, array&) {
    RawBuffer scratch(256);
    hold(encoder, "use workspace", scratch.buffer.raw_ptr());
    throw std::runtime_error("half-way");
  });
  try {
    eval(y);
  } catch (const std::runtime_error&) {
  }
}

// --- pipelines ---

// The second history: the library drops a kernel that is in flight.
void library_is_cleared(bool retains) {
  OwnStream s;
  FakeCompiler compiler;
  exec::KernelLibrary library(compiler.parts(8));
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  array x = counting(32);
  array y = make_op(
      "Scale", s, {x}, {32}, [&](Encoder& encoder, const auto& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        Ref<exec::Pipeline> pipeline = library.get(request_for("3 1", "axpy"));
        KernelBinding bindings[] = {KernelBinding::input(in[0]), KernelBinding::output(out[0])};
        encoder.dispatch(*pipeline, bindings, {32}, {32});
      });
  async_eval(y);
  library.clear();
  retains ? gate.open() : give_up_work(s, gate);
}

void kernel_is_evicted(bool retains) {
  OwnStream s;
  FakeCompiler compiler;
  exec::KernelLibrary library(compiler.parts(1));
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  array x = counting(32);
  array y = make_op(
      "Scale", s, {x}, {32}, [&](Encoder& encoder, const auto& in, std::vector<array>& out) {
        encoder.allocate(out[0]);
        Ref<exec::Pipeline> pipeline = library.get(request_for("3 1", "first"));
        KernelBinding bindings[] = {KernelBinding::input(in[0]), KernelBinding::output(out[0])};
        encoder.dispatch(*pipeline, bindings, {32}, {32});
      });
  async_eval(y);
  library.get(request_for("5 1", "second"));
  retains ? gate.open() : give_up_work(s, gate);
}

// The pipeline is a local variable of the op.
void local_pipeline(bool retains) {
  OwnStream s;
  std::optional<WithoutRetaining> ablation;
  if (!retains) ablation.emplace(s);
  Gate gate(s);
  array y = lone_op("Local", s, [](Encoder& encoder, array& out) {
    Ref<exec::Pipeline> pipeline = idle_kernel("short lived", {writes("y", 0)});
    KernelBinding bindings[] = {KernelBinding::output(out)};
    encoder.dispatch(*pipeline, bindings, {16}, {16});
  });
  async_eval(y);
  retains ? gate.open() : give_up_work(s, gate);
}

// --- ownership ---

void temporary_kept_by(bool owner) {
  OwnStream s;
  array y = lone_op("Scratch", s, [owner](Encoder& encoder, array& out) {
    array scratch(Shape{100}, int32, nullptr, {});
    encoder.allocate(scratch);
    encoder.output(scratch);
    encoder.output(out);
    if (owner) {
      encoder.native("keeps", 1, 0, [scratch](int64_t, int64_t) {});
    } else {
      hold(encoder, "binds", scratch.data<int32_t>());
    }
  });
  eval(y);
}

void copy_kept_by(bool owner) {
  OwnStream s;
  array x = counting(16);
  std::optional<array> kept;
  array y = make_op("Copies", s, {x}, {16},
                    [&](Encoder& encoder, const auto& in, std::vector<array>& out) {
                      array copy(Shape{16}, int32, nullptr, {});
                      encoder.allocate(copy);
                      encoder.copy(in[0], copy);
                      encoder.allocate(out[0]);
                      encoder.copy(copy, out[0]);
                      if (owner) kept = copy;
                    });
  eval(y);
}

void workspace_kept_by(bool owner) {
  OwnStream s;
  allocator::Buffer kept(nullptr);
  array y = lone_op("Workspace", s, [&](Encoder& encoder, array& out) {
    allocator::Buffer scratch = encoder.allocate(256);
    encoder.raw_output(scratch, 0, 256);
    encoder.output(out);
    hold(encoder, "use workspace", scratch.raw_ptr());
    owner ? void(kept = scratch) : allocator::free(scratch);
  });
  eval(y);
  if (owner) allocator::free(kept);
}

const ValidationCase cases[] = {
    {"lifetime.buffer-released",
     "an input is dropped in flight, and the list does not own it",
     "lifetime",
     [] { input_dropped(false); },
     [] { input_dropped(true); },
     {{"op", "Affine"}, {"command", "affine"}, {"buffer_bytes", "192"}, {"state", "in-flight"}}},
    {"lifetime.buffer-released",
     "an output is dropped in flight, and the list does not own it",
     "lifetime",
     [] { output_dropped(false); },
     [] { output_dropped(true); },
     {{"op", "Affine"}, {"buffer_op", "Affine"}, {"state", "in-flight"}}},
    {"lifetime.buffer-released",
     "a buffer of allocator::malloc is freed while its list is open",
     "lifetime",
     [] { raw_buffer_freed(false); },
     [] { raw_buffer_freed(true); },
     {{"op", "ReadsRaw"}, {"command", "reads raw"}, {"buffer_op", "malloc"}, {"state", "open"}}},
    {"lifetime.temporary-not-bound",
     "a primitive does not register its temporary",
     "lifetime",
     [] { temporary(false); },
     [] { temporary(true); },
     {{"op", "Scratch"},
      {"command", "use scratch"},
      {"label", "model/layer0"},
      {"buffer_bytes", "400"},
      {"buffer_op", "Scratch"}}},
    {"lifetime.temporary-not-bound",
     "a primitive frees its workspace when it has encoded",
     "lifetime",
     [] { malloced_scratch(false); },
     [] { malloced_scratch(true); },
     {{"op", "Workspace"}, {"buffer_op", "malloc"}, {"buffer_bytes", "256"}}},
    {"lifetime.temporary-not-bound",
     "as above, beside an op that throws half-way",
     "lifetime",
     [] { malloced_scratch(false); },
     op_that_throws,
     {{"op", "Workspace"}}},
    {"lifetime.pipeline-released",
     "the kernel library is cleared while a kernel is in flight",
     "lifetime",
     [] { library_is_cleared(false); },
     [] { library_is_cleared(true); },
     {{"op", "Scale"}, {"pipeline", "axpy"}, {"kernel", "axpy"}}},
    {"lifetime.pipeline-released",
     "the kernel library evicts a kernel that is in flight",
     "lifetime",
     [] { kernel_is_evicted(false); },
     [] { kernel_is_evicted(true); },
     {{"op", "Scale"}, {"pipeline", "first"}}},
    {"lifetime.pipeline-released",
     "a pipeline is a local variable of the op",
     "lifetime",
     [] { local_pipeline(false); },
     [] { local_pipeline(true); },
     {{"op", "Local"}, {"pipeline", "short lived"}, {"state", "open"}}},
    {"ownership.only-binding",
     "a temporary is kept by its binding alone",
     "ownership",
     [] { temporary_kept_by(false); },
     [] { temporary_kept_by(true); },
     {{"op", "Scratch"}, {"buffer_bytes", "400"}}},
    {"ownership.only-binding",
     "a copy of an input is kept by its binding alone",
     "ownership",
     [] { copy_kept_by(false); },
     [] { copy_kept_by(true); },
     {{"op", "Copies"}}},
    {"ownership.only-binding",
     "a workspace is kept by its binding alone",
     "ownership",
     [] { workspace_kept_by(false); },
     [] { workspace_kept_by(true); },
     {{"op", "Workspace"}, {"buffer_bytes", "256"}}},
};

}  // namespace

std::span<const ValidationCase> lifetime_cases() { return cases; }

}  // namespace holdfast::testing
