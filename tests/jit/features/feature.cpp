#include "jit/features/feature.h"

#include <holdfast/types.h>

#include <array>
#include <cstring>
#include <random>

namespace holdfast::jit::testing {
namespace {

size_t element_bytes(Dtype dtype) { return size_of(dtype); }

// Different for each name, the same in every run.
std::mt19937 random_for(const std::string& name) {
  uint32_t seed = 1;
  for (char c : name) seed = seed * 131 + static_cast<unsigned char>(c);
  return std::mt19937(seed);
}

}  // namespace

size_t Argument::size() const {
  size_t count = 1;
  for (int32_t side : shape) count *= static_cast<size_t>(side);
  return count;
}

Argument zeros(std::string name, Dtype dtype, std::vector<int32_t> shape) {
  Argument result{std::move(name), dtype, std::move(shape), {}};
  result.bytes.resize(result.size() * element_bytes(dtype));
  return result;
}

Argument floats(std::string name, std::vector<int32_t> shape, float low, float high) {
  std::mt19937 random = random_for(name);
  Argument result = zeros(std::move(name), float32, std::move(shape));
  auto* to = reinterpret_cast<float*>(result.bytes.data());
  for (size_t i = 0; i < result.size(); ++i)
    to[i] = low + (high - low) * static_cast<float>(random() >> 8) / 16777216.0f;
  return result;
}

Argument integers(std::string name, Dtype dtype, std::vector<int32_t> shape, int64_t low,
                  int64_t high) {
  std::mt19937_64 random(random_for(name)());
  Argument result = zeros(std::move(name), dtype, std::move(shape));
  const size_t bytes = element_bytes(dtype);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  for (size_t i = 0; i < result.size(); ++i) {
    uint64_t value = static_cast<uint64_t>(low) + (span == 0 ? random() : random() % span);
    std::memcpy(result.bytes.data() + i * bytes, &value, bytes);  // little-endian
  }
  return result;
}

Argument as(Dtype dtype, const Argument& floats) {
  Argument result = zeros(floats.name, dtype, floats.shape);
  auto* from = reinterpret_cast<const float*>(floats.bytes.data());
  for (size_t i = 0; i < floats.size(); ++i) {
    uint16_t bits = dtype == float16 ? std::bit_cast<uint16_t>(float16_t(from[i]))
                                     : std::bit_cast<uint16_t>(bfloat16_t(from[i]));
    std::memcpy(result.bytes.data() + 2 * i, &bits, 2);
  }
  return result;
}

void each_simdgroup(const std::function<void(size_t first, size_t count)>& body, size_t grid,
                    size_t threadgroup) {
  for (size_t group = 0; group < grid; group += threadgroup) {
    const size_t end = std::min(grid, group + threadgroup);
    for (size_t first = group; first < end; first += 32)
      body(first, std::min<size_t>(32, end - first));
  }
}

float butterfly(const float* lanes, size_t count, float neutral,
                const std::function<float(float, float)>& combine) {
  std::array<float, 32> values;
  for (size_t i = 0; i < 32; ++i) values[i] = i < count ? lanes[i] : neutral;
  for (size_t distance : {16, 8, 4, 2, 1}) {
    std::array<float, 32> next;
    for (size_t i = 0; i < 32; ++i) next[i] = combine(values[i], values[i ^ distance]);
    values = next;
  }
  return values[0];
}

std::optional<float> prefix_tree(const float* lanes, uint32_t active, size_t end,
                                 const std::function<float(float, float)>& combine, size_t first,
                                 size_t size) {
  if (first >= end) return std::nullopt;
  if (size == 1)
    return (active >> first & 1) != 0 ? std::optional<float>(lanes[first]) : std::nullopt;
  const size_t half = size / 2;
  auto left = prefix_tree(lanes, active, end, combine, first, half);
  auto right = prefix_tree(lanes, active, end, combine, first + half, half);
  if (!left || !right) return left ? left : right;
  return combine(*left, *right);
}

msl::GeneratedKernel generate(const Feature& feature) {
  msl::Signature signature;
  signature.name = feature.name;
  signature.body = feature.body;
  signature.header = feature.header;
  signature.atomic_outputs = feature.atomic_outputs;
  signature.math = feature.math;
  std::vector<msl::SignatureInput> inputs;
  for (const Argument& input : feature.inputs) {
    signature.input_names.push_back(input.name);
    inputs.push_back({input.dtype, input.size(), input.shape.size()});
  }
  std::vector<Dtype> outputs;
  for (const Argument& output : feature.outputs) {
    signature.output_names.push_back(output.name);
    outputs.push_back(output.dtype);
  }
  msl::check(signature);
  return msl::generate(signature, inputs, outputs, feature.templates);
}

std::vector<Section> all_features() {
  return {contract_features(),  attribute_features(), lane_features(),
          memory_features(),    type_features(),      math_features(),
          construct_features(), helper_features(),    trap_features()};
}

}  // namespace holdfast::jit::testing
