// Recurrences over the tokens of many sequences: fast::gated_delta and fast::causal_conv.
#include <holdfast/lm_ops.h>

#include "ops/inner.h"
#include "ops/kv_cache.h"
#include "ops/support.h"

namespace holdfast {

namespace {

// Which of fast::Sequences there are. Their arrays are the last inputs, in this order.
struct SequenceParts {
  bool starts = false, slots = false, fresh = false, mask = false;

  size_t count() const { return size_t{starts} + slots + fresh + mask; }
  // `sequences`: of tokens that are not ragged.
  kernels::SequenceInputs of(const std::vector<array>& inputs, int sequences) const {
    size_t next = inputs.size() - count();
    auto take = [&](bool is_there) { return is_there ? &inputs[next++] : nullptr; };
    kernels::SequenceInputs found{sequences, take(starts), nullptr, nullptr, nullptr};
    found.slots = take(slots);
    found.fresh = take(fresh);
    found.mask = take(mask);
    if (starts) found.sequences = found.starts->shape(0) - 1;
    return found;
  }
};

// Inputs: queries, keys, values, decay, beta, states, then those of the sequences.
class GatedDelta final : public Recorded<GatedDelta, Op> {
 public:
  GatedDelta(Stream stream, const SequenceParts& parts) : Recorded(stream), parts_(parts) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    copy_or_take(encoder, inputs[5], outputs[1], outputs.size());
    kernels::backend_of(encoder).gated_delta(encoder,
                                             {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4],
                                              parts_.of(inputs, inputs[0].shape(0))},
                                             outputs[1], outputs[0]);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[2].shape(), inputs[5].shape()};
  }
  const char* name() const override { return "GatedDelta"; }
  auto members() const { return std::tie(parts_.starts, parts_.slots, parts_.fresh, parts_.mask); }

 private:
  SequenceParts parts_;
};

// Inputs: x, weight, states, the bias where there is one, then those of the sequences.
class CausalConv final : public Recorded<CausalConv, Op> {
 public:
  CausalConv(Stream stream, bool has_bias, const SequenceParts& parts)
      : Recorded(stream), has_bias_(has_bias), parts_(parts) {}
  void encode(Encoder& encoder, const std::vector<array>& inputs,
              std::vector<array>& outputs) override {
    copy_or_take(encoder, inputs[2], outputs[1], outputs.size());
    kernels::backend_of(encoder).causal_conv(
        encoder,
        {inputs[0], inputs[1], has_bias_ ? &inputs[3] : nullptr,
         parts_.of(inputs, inputs[0].shape(0))},
        outputs[1], outputs[0]);
  }
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape(), inputs[2].shape()};
  }
  const char* name() const override { return "CausalConv"; }
  auto members() const {
    return std::tie(has_bias_, parts_.starts, parts_.slots, parts_.fresh, parts_.mask);
  }

 private:
  bool has_bias_;
  SequenceParts parts_;
};

// Appends the arrays of `sequences` to the inputs, checked against tokens of `shape` (without the
// axes of a token) and the number of states.
SequenceParts add_sequences(const char* op, const fast::Sequences& sequences, const Shape& shape,
                            int states, std::vector<array>& inputs, StreamOrDevice s) {
  auto fail = [op](const auto&... parts) {
    throw std::invalid_argument(text("[", op, "] ", parts...));
  };
  int count = shape[0];
  if (sequences.starts) {
    inputs.push_back(checked_indices(op, "starts", *sequences.starts, s));
    if (inputs.back().ndim() != 1 || inputs.back().size() == 0) {
      fail("starts must have one dimension, one element more than there are sequences, got shape ",
           sequences.starts->shape());
    }
    count = inputs.back().shape(0) - 1;
    if (count == 0 && shape[0] > 0)
      fail("starts name no sequence, but there are ", shape[0], " tokens");
  }
  auto check_each = [&](const char* name, const array& a) {
    if (a.shape() == Shape{count}) return;
    fail(name, " must have one element for each of ", count, " sequences, got shape ", a.shape());
  };
  auto check_bool = [&](const char* name, const array& a) {
    if (a.dtype() != bool_) fail(name, " must be of bool, got ", a.dtype());
  };
  if (sequences.slots) {
    inputs.push_back(checked_indices(op, "slots", *sequences.slots, s));
    check_each("slots", inputs.back());
  } else if (states < count) {
    fail("states must have a row for each of ", count, " sequences where there are no slots, got ",
         states);
  }
  if (sequences.fresh) {
    check_bool("fresh", *sequences.fresh);
    check_each("fresh", *sequences.fresh);
    inputs.push_back(*sequences.fresh);
  }
  if (sequences.mask) {
    check_bool("mask", *sequences.mask);
    if (sequences.mask->shape() != shape) {
      fail("mask must have the shape of the tokens, ", shape, ", got ", sequences.mask->shape());
    }
    inputs.push_back(*sequences.mask);
  }
  return {sequences.starts.has_value(), sequences.slots.has_value(), sequences.fresh.has_value(),
          sequences.mask.has_value()};
}

// The axes of tokens: (sequences, tokens), or (all tokens) where they are ragged.
Shape token_shape(const char* op, const char* name, const array& a, size_t axes_of_token,
                  bool ragged) {
  const size_t expected = (ragged ? 1 : 2) + axes_of_token;
  if (a.ndim() != expected) {
    throw std::invalid_argument(text(
        "[", op, "] ", name, " must have ", expected,
        ragged ? " dimensions where there are starts" : " dimensions, (sequences, tokens, ...)",
        ", got shape ", a.shape()));
  }
  return Shape(a.shape().begin(), a.shape().begin() + (ragged ? 1 : 2));
}

Shape with_back(Shape shape, std::initializer_list<int> more) {
  for (int size : more) shape.push_back(size);
  return shape;
}

}  // namespace

std::pair<array, array> fast::gated_delta(const array& queries, const array& keys,
                                          const array& values, const array& decay,
                                          const array& beta, array states,
                                          const Sequences& sequences, StreamOrDevice s) {
  constexpr const char* op = "gated_delta";
  auto fail = [](const auto&... parts) {
    throw std::invalid_argument(text("[gated_delta] ", parts...));
  };
  check_small_float(op, "queries", queries);
  check_small_float(op, "keys", keys);
  check_small_float(op, "values", values);
  check_small_float(op, "decay", decay);
  check_small_float(op, "beta", beta);
  const bool ragged = sequences.starts.has_value();
  const Shape tokens = token_shape(op, "keys", keys, 2, ragged);
  token_shape(op, "values", values, 2, ragged);
  const int key_heads = keys.shape(-2), key_dims = keys.shape(-1);
  const int heads = values.shape(-2), value_dims = values.shape(-1);
  auto check = [&](const char* name, const array& a, const Shape& expected) {
    if (a.shape() != expected) {
      fail(name, " must have shape ", expected, ", as keys of ", keys.shape(), " and values of ",
           values.shape(), " have it, got ", a.shape());
    }
  };
  check("queries", queries, keys.shape());
  check("values", values, with_back(tokens, {heads, value_dims}));
  const Shape each = with_back(tokens, {heads});
  if (decay.ndim() == values.ndim()) {
    check("decay", decay, with_back(each, {key_dims}));
  } else {
    check("decay", decay, each);
  }
  check("beta", beta, each);
  if (key_heads == 0 ? heads != 0 : heads % key_heads != 0) {
    fail("the number of value heads (", heads, ") must be a multiple of that of key heads (",
         key_heads, ")");
  }
  if (states.dtype() != float32) fail("states must be of float32, got ", states.dtype());
  if (states.ndim() != 4 || states.shape(1) != heads || states.shape(2) != value_dims ||
      states.shape(3) != key_dims) {
    fail("states must be (states, value heads, value dims, key dims), (..., ", heads, ", ",
         value_dims, ", ", key_dims, "), got shape ", states.shape());
  }
  const Dtype dtype = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());
  const int state_count = states.shape(0);
  const Shape state_shape = states.shape();
  std::vector<array> inputs =
      inputs_of(astype(queries, dtype, s), astype(keys, dtype, s), astype(values, dtype, s),
                astype(decay, float32, s), astype(beta, float32, s), std::move(states));
  const SequenceParts parts = add_sequences(op, sequences, tokens, state_count, inputs, s);
  std::vector<array> outputs = detail::make_all_checked(
      {values.shape(), state_shape}, {dtype, float32},
      std::make_shared<GatedDelta>(to_stream(s), parts), std::move(inputs));
  return {std::move(outputs[0]), std::move(outputs[1])};
}

std::pair<array, array> fast::causal_conv(const array& x, const array& weight, array states,
                                          const std::optional<array>& bias,
                                          const Sequences& sequences, StreamOrDevice s) {
  constexpr const char* op = "causal_conv";
  constexpr int most_width = 16;
  auto fail = [](const auto&... parts) {
    throw std::invalid_argument(text("[causal_conv] ", parts...));
  };
  check_small_float(op, "x", x);
  check_small_float(op, "weight", weight);
  const Shape tokens = token_shape(op, "x", x, 1, sequences.starts.has_value());
  const int channels = x.shape(-1);
  if (weight.ndim() != 2 || weight.shape(0) != channels || weight.shape(1) < 2 ||
      weight.shape(1) > most_width) {
    fail("weight must be (channels, width) of ", channels, " channels and a width from 2 to ",
         most_width, ", got shape ", weight.shape());
  }
  const int width = weight.shape(1);
  if (states.ndim() != 3 || states.shape(1) != width - 1 || states.shape(2) != channels) {
    fail("states must be (states, width - 1, channels), (..., ", width - 1, ", ", channels,
         "), got shape ", states.shape());
  }
  if (states.dtype() != float32 && states.dtype() != x.dtype()) {
    fail("states must be of float32 or of the dtype of x (", x.dtype(), "), got ", states.dtype());
  }
  const Shape state_shape = states.shape();
  const Dtype state_dtype = states.dtype();
  std::vector<array> inputs = inputs_of(x, astype(weight, float32, s), std::move(states));
  if (bias) {
    check_small_float(op, "bias", *bias);
    if (bias->shape() != Shape{channels}) {
      fail("bias must be one for each of ", channels, " channels, got shape ", bias->shape());
    }
    inputs.push_back(astype(*bias, float32, s));
  }
  const SequenceParts parts = add_sequences(op, sequences, tokens, state_shape[0], inputs, s);
  std::vector<array> outputs = detail::make_all_checked(
      {x.shape(), state_shape}, {x.dtype(), state_dtype},
      std::make_shared<CausalConv>(to_stream(s), bias.has_value(), parts), std::move(inputs));
  return {std::move(outputs[0]), std::move(outputs[1])};
}

}  // namespace holdfast
