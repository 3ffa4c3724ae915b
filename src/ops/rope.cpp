// fast::rope.
#include <holdfast/fast.h>

#include "kernels/cpu/rope.h"
#include "kernels/cpu/task_scratch.h"
#include "ops/support.h"

namespace holdfast {

namespace {

struct RopeSettings {
  int dims;
  bool traditional;
  std::optional<float> base;  // empty: frequencies are an input
  float scale;
  std::optional<int> offset;  // empty: offsets are an input
  bool operator==(const RopeSettings&) const = default;
};

// Inputs: x, then offsets (int64, one or one per batch) and frequencies (float32), where there are
// such.
class Rope final : public Op {
 public:
  Rope(Stream stream, const RopeSettings& settings) : Op(stream), settings_(settings) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override;
  const char* name() const override { return "RoPE"; }
  bool is_equivalent(const Primitive& other) const override {
    const auto* same = dynamic_cast<const Rope*>(&other);
    return same != nullptr && same->settings_ == settings_;
  }

 private:
  RopeSettings settings_;
};

// The heads: all dimensions between the first and the last two.
cpu::CollapsedLayout heads_of(const array& x) {
  size_t count = x.ndim() - 3;
  return cpu::collapse(span_of(x.shape()).subspan(1, count),
                       span_of(x.strides()).subspan(1, count));
}

void Rope::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  array& out = outputs[0];
  encoder.allocate(out);
  if (out.size() == 0) return;
  array x = make_rows_dense(encoder, name(), inputs[0]);
  if (heads_of(x).dimensions() > 1) x = make_dense(encoder, name(), x);
  size_t next = 1;
  std::optional<array> offsets, frequencies;
  if (!settings_.offset) offsets = make_dense(encoder, name(), inputs[next++]);
  if (!settings_.base) frequencies = make_dense(encoder, name(), inputs[next++]);
  cpu::CollapsedLayout heads = heads_of(x);
  cpu::RopeShape shape{x.shape(0),   heads.size,   x.shape(-2),
                       x.shape(-1),  x.strides(0), heads.strides.empty() ? 0 : heads.strides[0],
                       x.strides(-2)};
  std::optional<double> base;
  if (settings_.base) base = *settings_.base;
  cpu::RopePlan plan(x.dtype(), shape, settings_.dims / 2, settings_.traditional, base,
                     static_cast<double>(settings_.scale));
  encoder.input(x);
  if (offsets) encoder.input(*offsets);
  if (frequencies) encoder.input(*frequencies);
  encoder.output(out);
  const void* from = x.data<char>();
  const int64_t* given = offsets ? offsets->data<int64_t>() : nullptr;
  int64_t fixed = settings_.offset.value_or(0);
  int64_t stride = offsets && offsets->size() > 1 ? 1 : 0;
  const float* rates = frequencies ? frequencies->data<float>() : nullptr;
  void* to = out.data<char>();
  int64_t tasks = plan.tasks();
  encoder.native(name(), tasks, 3 * static_cast<int64_t>(out.nbytes()),
                 [=, plan = std::move(plan)](int64_t begin, int64_t end) {
                   cpu::TaskScratch scratch(plan.task_scratch_bytes());
                   for (int64_t task = begin; task < end; ++task) {
                     plan.run(task, from, given != nullptr ? given : &fixed, stride, rates, to,
                              scratch.get());
                   }
                 });
}

array rotate(const array& x, RopeSettings settings, const std::optional<array>& offset,
             const std::optional<array>& freqs, StreamOrDevice s) {
  auto fail = [](const auto&... parts) { throw std::invalid_argument(text("[rope] ", parts...)); };
  if (x.ndim() < 3) fail("expected x with three dimensions or more, got shape ", x.shape());
  Dtype dtype = x.dtype();
  if (dtype != float32 && dtype != float16 && dtype != bfloat16) {
    fail("expected float32, float16 or bfloat16, got ", dtype);
  }
  if (settings.dims < 0 || settings.dims % 2 != 0 || settings.dims > x.shape(-1)) {
    fail("expected an even dims of at most the last dimension of x (", x.shape(-1), "), got ",
         settings.dims);
  }
  if (settings.base.has_value() == freqs.has_value()) {
    fail("expected either base or freqs, got ", freqs ? "both" : "neither");
  }
  std::vector<array> inputs{x};
  if (offset) {
    if (!issubdtype(offset->dtype(), integer)) {
      fail("expected an integer offset, got ", offset->dtype());
    }
    if (offset->ndim() > 1 ||
        (offset->size() != 1 && offset->size() != static_cast<size_t>(x.shape(0)))) {
      fail("expected one offset, or one for each of ", x.shape(0), " batches, got shape ",
           offset->shape());
    }
    inputs.push_back(astype(*offset, int64, s));
  }
  if (freqs) {
    if (freqs->ndim() != 1 || freqs->shape(0) != settings.dims / 2) {
      fail("expected freqs of shape (", settings.dims / 2, "), half of dims, got shape ",
           freqs->shape());
    }
    inputs.push_back(astype(*freqs, float32, s));
  }
  return make_node<Rope>(x.shape(), dtype, std::move(inputs), s, settings);
}

}  // namespace

array fast::rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                 int offset, const std::optional<array>& freqs, StreamOrDevice s) {
  return rotate(x, {dims, traditional, base, scale, offset}, std::nullopt, freqs, s);
}

array fast::rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                 const array& offset, const std::optional<array>& freqs, StreamOrDevice s) {
  return rotate(x, {dims, traditional, base, scale, std::nullopt}, offset, freqs, s);
}

}  // namespace holdfast
