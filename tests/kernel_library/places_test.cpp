// Places: commands name what they work on by binding and offset, and the device finds it when it
// runs them.
#include <doctest/doctest.h>

#include <cstring>

#include "devices/cpu/cpu_kernel.h"
#include "devices/memory_space.h"
#include "exec/layers/layer.h"
#include "kernel_library/dispatching.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// `count` elements of `whole` from `first` on.
array part_of(const array& whole, int first, int count) {
  array part(Shape{count}, whole.dtype(), nullptr, {});
  part.copy_shared_buffer(whole, Strides{1}, {true, true, true}, static_cast<size_t>(count), first);
  return part;
}

msl::KernelArgument argument(const char* name, uint32_t slot, bool written = false) {
  return {name, msl::KernelArgument::Kind::device, written, slot, 4};
}

// y[i] = 2 x[i].
Ref<exec::Pipeline> doubling_kernel() {
  msl::KernelInterface interface;
  interface.arguments = {argument("y", 1, true), argument("x", 0)};
  return make_ref<exec::NativeKernel>(
      "doubling", interface, [](const jit::DispatchArguments& arguments, int64_t group) {
        static_cast<int32_t*>(arguments.buffers[0])[group] =
            2 * static_cast<const int32_t*>(arguments.buffers[1])[group];
      });
}

// Puts other memory in the place of what buffers have, when lists are committed.
struct MovingLayer : exec::Layer {
  uint32_t interests() const override { return lists; }
  void on_commit(exec::CommandList& list) override {
    for (exec::Binding& binding : list.bindings) {
      for (auto& [buffer, storage] : moved) {
        if (binding.buffer == buffer) binding.storage = storage;
      }
    }
  }
  std::vector<std::pair<const exec::Buffer*, exec::Storage*>> moved;
};

}  // namespace

TEST_CASE("places: each argument points to the first element of what is bound to its slot") {
  Stream stream = new_stream(Device::cpu);
  msl::KernelInterface interface;
  interface.arguments = {
      argument("y", 6, true),
      {"tile", msl::KernelArgument::Kind::threadgroup, true, 1, 4},
      argument("backwards", 0),
      argument("numbers", 2),
      argument("part", 3),
      argument("none", 1),
      {"second_tile", msl::KernelArgument::Kind::threadgroup, true, 0, 4},
  };
  std::vector<exec::ArgumentRange> ranges;
  std::vector<uint32_t> sizes;
  bool is_null = false;
  auto kernel = make_ref<exec::NativeKernel>(
      "probe", interface, [&](const jit::DispatchArguments& arguments, int64_t) {
        auto numbers = [&](size_t i) { return static_cast<int32_t*>(arguments.buffers[i]); };
        const int32_t seen[] = {numbers(2)[0], numbers(2)[-4], numbers(3)[0],
                                numbers(3)[1], numbers(4)[0],  numbers(4)[3]};
        std::memcpy(numbers(0), seen, sizeof(seen));
        is_null = !arguments.buffers[5];
        ranges.assign(arguments.ranges, arguments.ranges + 7);
        sizes.assign(arguments.threadgroup_bytes, arguments.threadgroup_bytes + 7);
      });
  array x = counting(20);
  array backwards = slice(x, {9}, {4}, {-1}, stream), part = slice(x, {12}, {16}, stream);
  array none = slice(x, {7}, {7}, stream);
  eval(backwards, part, none);
  REQUIRE(backwards.strides()[0] == -1);
  REQUIRE(part.offset() == 48);
  array out = make_op("Probe", stream, {backwards, part, none, x}, {10},
                      [&](Encoder& encoder, const auto& in, auto& outputs) {
                        encoder.allocate(outputs[0]);
                        const int32_t seven = 7, numbers[] = {-5, -6};
                        encoder.fill(outputs[0], &seven);
                        array y = part_of(outputs[0], 2, 6);
                        // Slot 5 is bound, but no argument of the kernel.
                        KernelBinding bindings[] = {KernelBinding::input(in[0]),
                                                    KernelBinding::input(in[2]),
                                                    KernelBinding::bytes(numbers, sizeof(numbers)),
                                                    KernelBinding::input(in[1]),
                                                    {},
                                                    KernelBinding::input(in[3]),
                                                    KernelBinding::output(y)};
                        const uint32_t tiles[] = {96, 32};
                        encoder.dispatch(*kernel, bindings, {1}, {1}, tiles);
                      });
  CHECK(values(out) == std::vector<int32_t>{7, 7, 9, 5, -5, -6, 12, 15, 7, 7});
  CHECK(is_null);
  REQUIRE(ranges.size() == 7);
  CHECK(sizes == std::vector<uint32_t>{0, 32, 0, 8, 0, 0, 96});
  const exec::ArgumentRange expected[] = {{0, 24}, {}, {16, 20}, {0, 8}, {0, 16}, {}, {}};
  for (size_t i = 0; i < 7; ++i) {
    CAPTURE(i);
    CHECK(ranges[i].before == expected[i].before);
    CHECK(ranges[i].bytes == expected[i].bytes);
  }
}

TEST_CASE("places: copies and fills touch the part that they name, and nothing beside it") {
  Stream stream = new_stream(Device::cpu);
  array x = counting(32);
  array y = make_op("Parts", stream, {x}, {12}, [](Encoder& encoder, const auto& in, auto& out) {
    encoder.allocate(out[0]);
    const int32_t one = 1, pattern = 0x01020304;
    encoder.fill(out[0], &one);
    array filled = part_of(out[0], 7, 3), target = part_of(out[0], 2, 4);
    encoder.fill(filled, &pattern);
    encoder.copy(part_of(in[0], 20, 4), target);
  });
  const int32_t p = 0x01020304;
  CHECK(values(y) == std::vector<int32_t>{1, 1, 20, 21, 22, 23, 1, p, p, p, 1, 1});
}

TEST_CASE("places: a native command gets the first element of each view, nothing for none") {
  Stream stream = new_stream(Device::cpu);
  array x = counting(20);
  array backwards = slice(x, {9}, {4}, {-1}, stream), none = slice(x, {7}, {7}, stream);
  eval(backwards, none);
  bool is_null = false;
  array y = make_op(
      "Views", stream, {none, backwards, x}, {6}, [&](Encoder& encoder, const auto& in, auto& out) {
        encoder.allocate(out[0]);
        const int32_t one = 1;
        encoder.fill(out[0], &one);
        array part = part_of(out[0], 1, 4);
        Bound nothing = encoder.input(in[0]), views = encoder.input(in[1]);
        Bound all = encoder.input(in[2]), to = encoder.output(part);
        encoder.native(
            "views", 1, 16, [=, &is_null](const NativeContext& context, int64_t, int64_t) {
              is_null = !context.data(nothing);
              const auto* from = context.data<int32_t>(views);
              const int32_t seen[] = {from[0], from[-4], context.data<int32_t>(all)[0], 5};
              std::memcpy(context.data(to), seen, sizeof(seen));
            });
      });
  CHECK(values(y) == std::vector<int32_t>{1, 9, 5, 0, 5, 1});
  CHECK(is_null);
}

TEST_CASE("places: a command finds its memory when it runs, not when it is encoded" *
          doctest::test_suite("no other layers")) {
  Stream stream = new_stream(Device::cpu);
  Ref<exec::Pipeline> kernel = doubling_kernel();
  std::vector<int32_t> input_elsewhere(8), filled_elsewhere(8, -1);
  for (int i = 0; i < 8; ++i) input_elsewhere[static_cast<size_t>(i)] = 100 + i;
  exec::Storage input_storage, filled_storage;
  auto place_at = [](exec::Storage& storage, std::vector<int32_t>& elements) {
    storage.space = &exec::host_memory();
    storage.address = elements.data();
    storage.bytes = reinterpret_cast<char*>(elements.data());
    storage.capacity = elements.size() * sizeof(int32_t);
  };
  place_at(input_storage, input_elsewhere);
  place_at(filled_storage, filled_elsewhere);
  auto layer = std::make_shared<MovingLayer>();
  exec::layers::add(layer);
  array x = counting(8);
  eval(x);
  std::vector<array> outputs =
      make_multi_op("Moved", stream, {x}, {6}, 4, [&](Encoder& encoder, const auto& in, auto& out) {
        for (array& one : out) encoder.allocate(one);
        layer->moved = {{exec::buffer_of(in[0].buffer()), &input_storage},
                        {exec::buffer_of(out[3].buffer()), &filled_storage}};
        array middle = part_of(in[0], 1, 6);
        encoder.copy(middle, out[0]);
        KernelBinding bindings[] = {KernelBinding::input(middle), KernelBinding::output(out[1])};
        encoder.dispatch(*kernel, bindings, {6}, {1});
        Bound from = encoder.input(middle), to = encoder.output(out[2]);
        encoder.native("triple", 6, 48, [=](const NativeContext& context, int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i)
            context.data<int32_t>(to)[i] = 3 * context.data<int32_t>(from)[i];
        });
        const int32_t four = 4;
        encoder.fill(out[3], &four);
      });
  eval(outputs);
  exec::layers::remove(layer.get());
  CHECK(values(outputs[0]) == std::vector<int32_t>{101, 102, 103, 104, 105, 106});
  CHECK(values(outputs[1]) == std::vector<int32_t>{202, 204, 206, 208, 210, 212});
  CHECK(values(outputs[2]) == std::vector<int32_t>{303, 306, 309, 312, 315, 318});
  CHECK(filled_elsewhere == std::vector<int32_t>{4, 4, 4, 4, 4, 4, -1, -1});
}
