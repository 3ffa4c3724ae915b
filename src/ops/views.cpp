// What the view primitives do when they are encoded: strides.
#include "ops/views.h"

namespace holdfast {

void Transpose::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  Strides strides;
  for (int axis : axes_) strides.push_back(in.strides()[static_cast<size_t>(axis)]);
  share(in, outputs[0], strides);
}

std::vector<Shape> Transpose::output_shapes(const std::vector<array>& inputs) {
  Shape shape;
  for (int axis : axes_) shape.push_back(inputs[0].shape(axis));
  return {shape};
}

void Broadcast::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  share(in, outputs[0], broadcast_strides(in.shape(), in.strides(), outputs[0].shape()));
}

void Squeeze::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  Strides strides = inputs[0].strides();
  for (size_t i = axes_.size(); i-- > 0;) strides.erase(strides.begin() + axes_[i]);
  share(inputs[0], outputs[0], strides);
}

std::vector<Shape> Squeeze::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  for (size_t i = axes_.size(); i-- > 0;) {
    if (shape[static_cast<size_t>(axes_[i])] != 1) {
      throw std::invalid_argument(
          text("[squeeze] expected size 1 at axis ", axes_[i], ", got shape ", inputs[0].shape()));
    }
    shape.erase(shape.begin() + axes_[i]);
  }
  return {shape};
}

std::vector<Shape> ExpandDims::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  for (int axis : axes_) shape.insert(shape.begin() + axis, 1);
  return {shape};
}

void ExpandDims::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  Strides strides = inputs[0].strides();
  for (int axis : axes_) {
    // As if the new dimension held one block of what follows it; a stride of size 1 is never
    // walked.
    size_t at = static_cast<size_t>(axis);
    const Shape& shape = outputs[0].shape();
    int64_t stride =
        at < strides.size() ? strides[at] * (at + 1 < shape.size() ? shape[at + 1] : 1) : 1;
    strides.insert(strides.begin() + axis, stride);
  }
  share(inputs[0], outputs[0], strides);
}

void Slice::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  Strides strides = in.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += start_[i] * strides[i];
    strides[i] *= steps_[i];
  }
  share(in, outputs[0], strides, offset);
}

void Split::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  for (size_t k = 0; k < outputs.size(); ++k) {
    share(in, outputs[k], in.strides(), starts_[k] * in.strides()[static_cast<size_t>(axis_)]);
  }
}

void AsStrided::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  share(inputs[0], outputs[0], strides_, static_cast<int64_t>(offset_));
}

void Identity::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  outputs[0].copy_shared_buffer(inputs[0]);
}

void StopGradient::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  outputs[0].copy_shared_buffer(inputs[0]);
}

void Depends::encode(Encoder&, const std::vector<array>& inputs, std::vector<array>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_shared_buffer(inputs[i]);
}

double count_elements(const array& a, const std::vector<int>& axes, bool inverted) {
  double count = 1;
  for (int axis : axes) count *= a.shape(axis);
  return inverted ? 1.0 / count : count;
}

void NumberOfElements::encode(Encoder& encoder, const std::vector<array>& inputs,
                              std::vector<array>& outputs) {
  array value(count_elements(inputs[0], axes_, inverted_), outputs[0].dtype());
  kernels::backend_of(encoder).fill(encoder, value, outputs[0]);
}

void Reshape::encode(Encoder& encoder, const std::vector<array>& inputs,
                     std::vector<array>& outputs) {
  const array& in = inputs[0];
  array& out = outputs[0];
  Strides strides;
  if (reshaped_strides(in.shape(), in.strides(), out.shape(), strides)) {
    share(in, out, strides);
  } else {
    encode_copy(encoder, in, out);
  }
}

void View::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  const array& in = inputs[0];
  array& out = outputs[0];
  int64_t from = static_cast<int64_t>(in.itemsize());
  int64_t to = static_cast<int64_t>(out.itemsize());
  Strides strides = in.strides();
  bool fits = is_aligned_everywhere(in, out.itemsize());
  if (from != to && in.ndim() > 0) {
    fits = fits && (strides.back() == 1 || in.shape().back() == 1);
    strides.back() = 1;
    for (size_t i = 0; i + 1 < strides.size(); ++i) {
      fits = fits && strides[i] * from % to == 0;
      strides[i] = strides[i] * from / to;
    }
  }
  if (fits || out.size() == 0) {
    share(in, out, strides);
    return;
  }
  array dense(in.shape(), in.dtype(), nullptr, {});
  encode_copy(encoder, in, dense);
  share(dense, out, row_major_strides(out.shape()));
}

void Contiguous::encode(Encoder& encoder, const std::vector<array>& inputs,
                        std::vector<array>& outputs) {
  const array& in = inputs[0];
  if (in.flags().row_contiguous || (allow_column_major_ && in.flags().col_contiguous)) {
    outputs[0].copy_shared_buffer(in);
  } else {
    encode_copy(encoder, in, outputs[0]);
  }
}

void Copy::encode(Encoder& encoder, const std::vector<array>& inputs, std::vector<array>& outputs) {
  encode_copy(encoder, inputs[0], outputs[0]);
}

}  // namespace holdfast
