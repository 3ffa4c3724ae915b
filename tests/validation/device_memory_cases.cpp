// Programs that use a GPU with memory of its own (HOLDFAST_GPU=simulated): what the host does to an
// array that the GPU uses, and ops that no GPU runs.
#include "validation/cases.h"

namespace holdfast::testing {
namespace {

// --- ops of a GPU's stream that run on the host ---

// Sums of the inputs by native commands, which no GPU runs.
std::vector<array> native_sums(const std::vector<array>& inputs, size_t outputs, Device device) {
  return make_multi_op(
      "NativeSums", default_stream(device), inputs, inputs[0].shape(), outputs,
      [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
        for (array& target : out) {
          encoder.allocate(target);
          std::vector<Bound> sources;
          for (const array& a : in) sources.push_back(encoder.input(a));
          const Bound to = encoder.output(target);
          encoder.native("sum", static_cast<int64_t>(target.size()), 0,
                         [sources, to](const NativeContext& context, int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) {
                             int32_t total = 0;
                             for (Bound source : sources) total += context.data<int32_t>(source)[i];
                             context.data<int32_t>(to)[i] = total;
                           }
                         });
        }
      });
}

void native_op(Device device) { eval(native_sums({of_gpu()}, 1, device)); }

// Of an input that the host has.
void several_outputs(Device device) { eval(native_sums({counting(64)}, 3, device)); }

// It is copied once.
void same_input_twice(Device device) {
  array x = of_gpu();
  eval(native_sums({x, x}, 1, device));
}

// --- the host and the GPU at one array ---

// A copy of x, or sevens in its memory, by commands that a GPU runs. The copy comes after `others`.
array copy_on_gpu(const array& x, Stream s, std::vector<array> others = {}) {
  others.insert(others.begin(), x);
  return make_op("Copy", s, others, x.shape(),
                 [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   encoder.allocate(out[0]);
                   encoder.copy(in[0], out[0]);
                 });
}
array fill_in_place(const array& x, Stream s) {
  return make_op("FillInPlace", s, {x}, x.shape(),
                 [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                   const int32_t seven = 7;
                   out[0].copy_shared_buffer(in[0]);
                   encoder.input(in[0]);
                   encoder.fill(out[0], &seven);
                 });
}

enum class Memory { leaf, adopted, raw };

// The host writes to memory that the GPU's copy command reads.
void written_while_copied(Memory memory, bool waits) {
  OwnStream s(Device::gpu), t;
  int32_t mine[16] = {};
  RawBuffer raw(64);
  array x = memory == Memory::adopted ? array(mine, {16}, int32, [](void*) {})
            : memory == Memory::leaf  ? counting(16)
                                      : array(raw.buffer, {16}, int32, [](allocator::Buffer) {});
  int32_t* elements = x.data<int32_t>();
  std::fill_n(elements, 16, 3);
  Gate gate(t);
  array y = copy_on_gpu(x, s, {affine(counting(1), 1, 0, t)});
  async_eval(y);
  if (waits) {
    gate.open();
    y.wait();
  }
  elements[5] = 77;
  gate.open();
  y.wait();
}

// The GPU writes to an array whose address the host has.
void kept_pointer(bool is_kept) {
  array x = of_gpu();
  const int32_t* elements = is_kept ? std::as_const(x).data<int32_t>() : nullptr;
  array y = fill_in_place(x, default_stream(Device::gpu));
  eval(y);
  if (!is_kept) elements = std::as_const(y).data<int32_t>();
  (void)elements;
}

// As before, for writing, with a copy back in between.
void kept_pointer_for_writing(bool is_kept) {
  Stream s = default_stream(Device::gpu);
  array x = of_gpu();
  if (is_kept) x.data<int32_t>()[0] = 5;
  eval(copy_on_gpu(x, s));
  eval(fill_in_place(x, s));
}

// Of a view: the bytes are those of the whole.
void kept_pointer_of_view(bool is_kept) {
  array x = of_gpu();
  array part = slice(x, {16}, {32}, default_stream(Device::gpu));
  eval(part);
  if (is_kept) (void)std::as_const(part).data<int32_t>();
  eval(fill_in_place(x, default_stream(Device::gpu)));
}

#define ON_DEVICE(id, name, checks, planted, clean, ...) \
  {id, name, checks, [] { planted; }, [] { clean; }, {__VA_ARGS__}, true}

const ValidationCase cases[] = {
    ON_DEVICE("performance.host-fallback", "a primitive encodes native code for a GPU's stream",
              "performance", native_op(Device::gpu), native_op(Device::cpu), {"op", "NativeSums"},
              {"severity", "note"}, {"device", "gpu"}, {"bytes_to_host", "256"},
              {"bytes_to_device", "256"}),
    ON_DEVICE("performance.host-fallback", "as before, with several outputs", "performance",
              several_outputs(Device::gpu), several_outputs(Device::cpu), {"op", "NativeSums"},
              {"bytes_to_host", "0"}, {"bytes_to_device", "768"}),
    ON_DEVICE("performance.host-fallback", "as before, of one array twice", "performance",
              same_input_twice(Device::gpu), same_input_twice(Device::cpu), {"op", "NativeSums"},
              {"bytes_to_host", "256"}, {"bytes_to_device", "256"}),
    ON_DEVICE("host-writes.input-changed",
              "an array is written through data() while it is copied to the device", "host-writes",
              written_while_copied(Memory::leaf, false), written_while_copied(Memory::leaf, true),
              {"op", "host"}, {"other_op", "Copy"}, {"other_command", "copy to the device"},
              {"buffer_op", "array"}),
    ON_DEVICE("host-writes.input-changed",
              "adopted memory is written while it is copied to the device", "host-writes",
              written_while_copied(Memory::adopted, false),
              written_while_copied(Memory::adopted, true), {"other_op", "Copy"}),
    ON_DEVICE("host-writes.input-changed",
              "a buffer of allocator::malloc is written while it is copied to the device",
              "host-writes", written_while_copied(Memory::raw, false),
              written_while_copied(Memory::raw, true), {"buffer_op", "malloc"}),
    ON_DEVICE("host-writes.pointer-kept", "the GPU fills an array that the host has looked at",
              "host-writes", kept_pointer(true), kept_pointer(false), {"op", "host"},
              {"other_op", "FillInPlace"}, {"buffer_op", "Zeros"}, {"severity", "note"}),
    ON_DEVICE("host-writes.pointer-kept", "as before; the host has written to it", "host-writes",
              kept_pointer_for_writing(true), kept_pointer_for_writing(false),
              {"other_op", "FillInPlace"}),
    ON_DEVICE("host-writes.pointer-kept", "as before; the host has looked at a view of it",
              "host-writes", kept_pointer_of_view(true), kept_pointer_of_view(false),
              {"other_op", "FillInPlace"}, {"buffer_bytes", "256"}),
};

}  // namespace

std::span<const ValidationCase> device_memory_cases() { return cases; }

}  // namespace holdfast::testing
