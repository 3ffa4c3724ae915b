#include "faults/workloads.h"

#include <holdfast/ops.h>
#include <holdfast/transforms.h>

#include "support/test_ops.h"

namespace holdfast::testing {
namespace {

constexpr int count = 32;

array constant(int32_t value) {
  std::vector<int32_t> elements(count, value);
  return array(elements.begin(), Shape{count}, int32);
}

Stream second_stream() {
  static Stream stream = new_stream(Device::cpu);
  return stream;
}

std::vector<Workload::Output> fused_chain() {
  array x = constant(3);
  array two = constant(2);
  array y = add(multiply(x, two), x);     // 9
  array z = subtract(multiply(y, y), x);  // 78
  return {{z, 78}, {y, 9}, {x, 3}, {two, 2}};
}

std::vector<Workload::Output> temporaries() {
  Stream s = default_stream(Device::cpu);
  array x = constant(3);
  for (int i = 0; i < 3; ++i) x = through_temporary(x, s);
  return {{x, 31}};
}

std::vector<Workload::Output> two_streams() {
  Stream a = default_stream(Device::cpu), b = second_stream();
  array x = affine(constant(1), 2, 0, a);
  array y = affine(constant(1), 3, 0, b);
  array on_b = add_arrays(x, y, b);        // 5
  array on_a = add_arrays(x, y, a);        // 5
  array last = add_arrays(on_a, on_b, a);  // 10
  return {{last, 10}, {affine(on_b, 1, 1, b), 6}};
}

std::vector<Workload::Output> donation_chain() {
  Stream s = default_stream(Device::cpu);
  array x = affine(constant(1), 1, 0, s);
  for (int i = 0; i < 5; ++i) x = affine_in_place(x, 1, 1, s);
  return {{add(x, x), 12}};
}

std::vector<Workload::Output> several_outputs() {
  Stream s = default_stream(Device::cpu);
  std::vector<array> sums = three_sums(affine(constant(1), 2, 0, s), s);  // 3, 4, 5
  return {{sums[2], 5}, {add(sums[0], sums[2]), 8}};
}

std::vector<Workload::Output> built_in_ops() {
  array x = reshape(astype(constant(2), float32), {4, count / 4});
  array product = matmul(x, transpose(x));  // 32 everywhere, (4,4)
  array column = sum(product, 1, true);     // 128
  array joined = concatenate({column, slice(product, {0, 1}, {4, 2})}, 0);
  array largest = max(joined);
  array copies = contiguous(broadcast_to(astype(largest, int32), {count}));
  return {{copies, 128}, {astype(contiguous(transpose(product)), int32), 32}};
}

std::vector<Workload::Output> copies_and_fills() {
  Stream s = default_stream(Device::cpu);
  array filled =
      make_op("Fills", s, {}, {count}, [](Encoder& encoder, const auto&, std::vector<array>& out) {
        encoder.allocate(out[0]);
        int32_t seven = 7;
        encoder.fill(out[0], &seven);
      });
  array copied =
      make_op("Copies", s, {filled}, {count},
              [](Encoder& encoder, const std::vector<array>& in, std::vector<array>& out) {
                encoder.allocate(out[0]);
                encoder.copy(in[0], out[0]);
              });
  return {{copied, 7}};
}

// Arrays that both devices need: copies between their memories, and results that are written to.
std::vector<Workload::Output> two_devices() {
  array x = constant(3);
  array y = add(multiply(x, constant(2), Device::gpu), x, Device::gpu);  // 9
  array z = subtract(y, x, Device::cpu);                                 // 6
  array joined = max(concatenate({z, y}, 0, Device::gpu), Device::cpu);  // 9
  array updated = slice_update(full({count}, constant(9), Device::gpu),
                               subtract(y, constant(9), Device::cpu), {0}, {count}, Device::gpu);
  return {{z, 6}, {y, 9}, {joined, 9}, {updated, 0}, {x, 3}};
}

// A view in the middle of a fused chain that it is no part of.
std::vector<Workload::Output> views_between() {
  array x = constant(3), y = constant(2);
  array fused = add(x, x);
  array view = reshape(reshape(y, {2, count / 2}), {count});
  return {{multiply(fused, view), 12}, {x, 3}, {y, 2}};
}

}  // namespace

std::vector<Workload> workloads() {
  return {{"views between fused ops", views_between},
          {"a fused chain", fused_chain},
          {"ops with temporaries", temporaries},
          {"two streams", two_streams},
          {"a donation chain", donation_chain},
          {"several outputs", several_outputs},
          {"built-in ops", built_in_ops},
          {"copies and fills", copies_and_fills},
          {"two devices", two_devices}};
}

std::string mismatch(const std::vector<Workload::Output>& outputs) {
  for (const Workload::Output& output : outputs) {
    for (int32_t element : values(output.value)) {
      if (element != output.expected) {
        return "expected " + std::to_string(output.expected) + ", got " + std::to_string(element);
      }
    }
  }
  return "";
}

}  // namespace holdfast::testing
