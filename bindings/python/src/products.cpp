// Products, convolutions, low-bit weights.
#include <holdfast/einsum.h>
#include <holdfast/ops.h>

#include "arguments.h"
#include "array_type.h"
#include "ops.h"
#include "ops/inner.h"
#include "ops/quantized.h"

namespace holdfast::python {

namespace {

template <array (*function)(const array&, const array&, StreamOrDevice)>
PyObject* product(Arguments& a) {
  return give(function(a.array_at(0), a.array_at(1), a.stream(2)));
}

PyObject* make_tensordot(Arguments& a) {
  PyObject* axes = a.object(2);
  if (is_integer(axes)) {
    return give(tensordot(a.array_at(0), a.array_at(1), a.integer(2), a.stream(3)));
  }
  if (!PySequence_Check(axes) || PySequence_Size(axes) != 2) {
    a.refuse(2, "an int or two sequences of ints");
  }
  std::vector<int> sides[2];
  for (int side = 0; side < 2; ++side) {
    auto numbers = integers_of(Object::steal(PySequence_GetItem(axes, side)).get());
    if (!numbers) a.refuse(2, "an int or two sequences of ints");
    sides[side] = std::move(*numbers);
  }
  return give(tensordot(a.array_at(0), a.array_at(1), sides[0], sides[1], a.stream(3)));
}

// An int serves all axes.
std::vector<int> for_axes(Arguments& a, int place, size_t axes) {
  std::vector<int> numbers = a.integers(place);
  if (numbers.size() == 1) numbers.resize(axes, numbers[0]);
  return numbers;
}

PyObject* make_conv_general(Arguments& a) {
  array input = a.array_at(0);
  size_t axes = input.ndim() > 2 ? input.ndim() - 2 : 1;
  PyObject* padding = a.object(3);
  std::vector<int> low, high;
  // (low, high), each an int for every axis.
  if (PySequence_Check(padding) && PySequence_Size(padding) == 2 &&
      !is_integer(Object::steal(PySequence_GetItem(padding, 0)).get())) {
    for (int side = 0; side < 2; ++side) {
      auto numbers = integers_of(Object::steal(PySequence_GetItem(padding, side)).get());
      if (!numbers) a.refuse(3, "an int, a sequence of ints or two of them");
      (side == 0 ? low : high) = std::move(*numbers);
    }
  } else {
    low = high = for_axes(a, 3, axes);
  }
  return give(conv_general(input, a.array_at(1), for_axes(a, 2, axes), low, high,
                           for_axes(a, 4, axes), for_axes(a, 5, axes), a.integer(6), a.truth(7),
                           a.stream(8)));
}

// A sum of products over shifts, as a convolution of one channel.
PyObject* make_convolve(Arguments& a) {
  array x = a.array_at(0), y = a.array_at(1);
  if (x.ndim() != 1 || y.ndim() != 1) {
    raise(PyExc_ValueError, "[convolve] expected two arrays of one dimension");
  }
  if (x.size() == 0 || y.size() == 0) {
    raise(PyExc_ValueError, "[convolve] expected arrays that are not empty");
  }
  StreamOrDevice s = a.stream(3);
  std::string mode = a.text(2);
  if (x.size() < y.size()) std::swap(x, y);
  Dtype dtype = promote_types(x.dtype(), y.dtype());
  if (!issubdtype(dtype, inexact)) dtype = float32;
  int width = static_cast<int>(y.size());
  int low = width - 1, high = width - 1;
  if (mode == "valid") {
    low = high = 0;
  } else if (mode == "same") {
    low = width / 2;
    high = (width - 1) / 2;
  } else if (mode != "full") {
    raise(PyExc_ValueError, "[convolve] mode must be full, same or valid, got " + mode);
  }
  array input = reshape(astype(x, dtype, s), Shape{1, -1, 1}, s);
  array weight = reshape(astype(y, dtype, s), Shape{1, -1, 1}, s);
  array result = conv_general(input, weight, {1}, std::vector<int>{low}, std::vector<int>{high},
                              {1}, {1}, 1, true, s);
  return give(flatten(result, s));
}

std::vector<array> operands_behind(Arguments& a) { return a.rest_arrays(); }

#define STREAM "*, stream=None)"
constexpr Row rows[] = {
    {"matmul", "(a, b, /, " STREAM, "The matrix product over the last two axes.",
     "mx.matmul(mx.ones((2, 3)), mx.ones((3, 2)))\nmx.matmul(mx.ones((2, 3)), mx.ones(3))",
     product<&matmul>},
    {"addmm", "(c, a, b, /, alpha=1.0, beta=1.0, " STREAM, "beta * c + alpha * (a @ b).",
     "mx.addmm(mx.ones((2, 2)), mx.ones((2, 3)), mx.ones((3, 2)), alpha=0.5, beta=2.0)",
     [](Arguments& a) {
       return give(
           addmm(a.array_at(0), a.array_at(1), a.array_at(2), a.real(3), a.real(4), a.stream(5)));
     }},
    {"block_masked_mm",
     "(a, b, /, block_size=64, mask_out=None, mask_lhs=None, mask_rhs=None, " STREAM,
     "A matrix product in which masked blocks count as zero.",
     "mx.block_masked_mm(mx.ones((32, 32)), mx.ones((32, 32)), 32, mx.array([[True]]))[0, :3]",
     [](Arguments& a) {
       return give(block_masked_mm(a.array_at(0), a.array_at(1), a.integer(2), a.optional_array(3),
                                   a.optional_array(4), a.optional_array(5), a.stream(6)));
     }},
    {"gather_mm",
     "(a, b, /, lhs_indices=None, rhs_indices=None, *, sorted_indices=False, stream=None)",
     "Products of the matrices that the indices name.",
     "mx.gather_mm(mx.ones((2, 2, 3)), mx.ones((4, 3, 2)), mx.array([0, 1]), mx.array([3, 0]))",
     [](Arguments& a) {
       return give(gather_mm(a.array_at(0), a.array_at(1), a.optional_array(2), a.optional_array(3),
                             a.truth(4), a.stream(5)));
     }},
    {"segmented_mm", "(a, b, /, segments, " STREAM, "Products over ranges of the inner dimension.",
     "mx.segmented_mm(mx.ones((2, 6)), mx.ones((6, 2)), mx.array([[0, 2], [2, 6]], mx.uint32))",
     [](Arguments& a) {
       return give(segmented_mm(a.array_at(0), a.array_at(1), a.array_at(2), a.stream(3)));
     }},
    {"tensordot", "(a, b, /, axes=2, " STREAM, "Sums of products over some axes of each.",
     "mx.tensordot(mx.ones((2, 3)), mx.ones((3, 2)), axes=1)\n"
     "mx.tensordot(mx.ones((2, 3)), mx.ones((2, 3)), axes=[[0, 1], [0, 1]])",
     make_tensordot},
    {"outer", "(a, b, /, " STREAM, "The products of all pairs.",
     "mx.outer(mx.array([1, 2]), mx.array([3, 4]))", product<&outer>},
    {"inner", "(a, b, /, " STREAM, "Sums of products over the last axes.",
     "mx.inner(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))", product<&inner>},
    {"kron", "(a, b, " STREAM, "The Kronecker product.",
     "mx.kron(mx.array([[1, 2]]), mx.array([[1], [3]]))", product<&kron>},
    {"einsum", "(subscripts, *operands, stream=None)", "A sum of products in Einstein's notation.",
     "mx.einsum(\"ij,jk->ik\", mx.ones((2, 3)), mx.ones((3, 2)))",
     [](Arguments& a) { return give(einsum(a.text(0), operands_behind(a), a.stream(1))); }},
    {"einsum_path", "(subscripts, *operands)",
     "In which order einsum contracts, and a description.",
     "mx.einsum_path(\"ij,jk->ik\", mx.ones((2, 3)), mx.ones((3, 2)))[0]",
     [](Arguments& a) {
       auto [path, text] = einsum_path(a.text(0), operands_behind(a));
       Object list = Object::steal(PyList_New(0));
       for (const std::vector<int>& step : path) {
         Object pair = Object::steal(give_shape(Shape(step.begin(), step.end())));
         PyList_Append(list.get(), pair.get());
       }
       return Py_BuildValue("(Os)", list.get(), text.c_str());
     }},
    {"hadamard_transform", "(a, scale=None, " STREAM,
     "The Walsh-Hadamard transform along the last axis; by default scaled by 1 / sqrt(n).",
     "mx.hadamard_transform(mx.array([1.0, 2.0, 3.0, 4.0]))",
     [](Arguments& a) {
       return give(hadamard_transform(a.array_at(0), a.optional_real(1), a.stream(2)));
     }},

    {"conv1d", "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, " STREAM,
     "A convolution of (batch, length, channels) with (filters, width, channels).",
     "mx.conv1d(mx.ones((1, 5, 2)), mx.ones((3, 2, 2)), padding=1)",
     [](Arguments& a) {
       return give(conv1d(a.array_at(0), a.array_at(1), a.integer(2), a.integer(3), a.integer(4),
                          a.integer(5), a.stream(6)));
     }},
    {"conv2d", "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, " STREAM,
     "A convolution over two axes.",
     "mx.conv2d(mx.ones((1, 4, 4, 1)), mx.ones((2, 3, 3, 1))).shape",
     [](Arguments& a) {
       return give(conv2d(a.array_at(0), a.array_at(1), a.pair(2), a.pair(3), a.pair(4),
                          a.integer(5), a.stream(6)));
     }},
    {"conv3d", "(input, weight, /, stride=1, padding=0, dilation=1, groups=1, " STREAM,
     "A convolution over three axes.",
     "mx.conv3d(mx.ones((1, 4, 4, 4, 1)), mx.ones((2, 3, 3, 3, 1)), padding=(1, 0, 0)).shape",
     [](Arguments& a) {
       return give(conv3d(a.array_at(0), a.array_at(1), a.triple(2), a.triple(3), a.triple(4),
                          a.integer(5), a.stream(6)));
     }},
    {"conv_transpose1d",
     "(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, " STREAM,
     "The transpose of conv1d.", "mx.conv_transpose1d(mx.ones((1, 3, 2)), mx.ones((3, 2, 2)), 2)",
     [](Arguments& a) {
       return give(conv_transpose1d(a.array_at(0), a.array_at(1), a.integer(2), a.integer(3),
                                    a.integer(4), a.integer(5), a.integer(6), a.stream(7)));
     }},
    {"conv_transpose2d",
     "(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, " STREAM,
     "The transpose of conv2d.",
     "mx.conv_transpose2d(mx.ones((1, 3, 3, 1)), mx.ones((2, 2, 2, 1)), 2).shape",
     [](Arguments& a) {
       return give(conv_transpose2d(a.array_at(0), a.array_at(1), a.pair(2), a.pair(3), a.pair(4),
                                    a.pair(5), a.integer(6), a.stream(7)));
     }},
    {"conv_transpose3d",
     "(input, weight, /, stride=1, padding=0, dilation=1, output_padding=0, groups=1, " STREAM,
     "The transpose of conv3d.",
     "mx.conv_transpose3d(mx.ones((1, 3, 3, 3, 1)), mx.ones((2, 2, 2, 2, 1)), 2).shape",
     [](Arguments& a) {
       return give(conv_transpose3d(a.array_at(0), a.array_at(1), a.triple(2), a.triple(3),
                                    a.triple(4), a.triple(5), a.integer(6), a.stream(7)));
     }},
    {"conv_general",
     "(input, weight, /, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1, "
     "flip=False, " STREAM,
     "A convolution over any number of axes, with all options.",
     "mx.conv_general(mx.ones((1, 5, 2)), mx.ones((3, 2, 2)), padding=([1], [0])).shape",
     make_conv_general},
    {"convolve", "(a, v, /, mode='full', " STREAM, "The convolution of two sequences.",
     "mx.convolve(mx.array([1.0, 2.0, 3.0]), mx.array([0.0, 1.0, 0.5]))\n"
     "mx.convolve(mx.array([1.0, 2.0, 3.0]), mx.array([1.0, 0.5]), \"same\")\n"
     "mx.convolve(mx.array([1.0, 2.0, 3.0, 4.0]), mx.array([0.0, 1.0, 0.5]), mode=\"valid\")",
     make_convolve},

    {"quantize",
     "(w, /, group_size=None, bits=None, mode='affine', *, global_scale=None, stream=None)",
     "Low-bit weights, with a scale (and a bias) for each group along the last axis.",
     "mx.quantize(mx.arange(64, dtype=mx.float32).reshape(1, 64))",
     [](Arguments& a) {
       return give_list(quantize(a.array_at(0), a.optional_integer(1), a.optional_integer(2),
                                 a.text(3), a.optional_array(4), a.stream(5)));
     }},
    {"dequantize",
     "(w, /, scales, biases=None, group_size=None, bits=None, mode='affine', global_scale=None, "
     "dtype=None, " STREAM,
     "What quantize packed.",
     "mx.dequantize(*mx.quantize(mx.arange(64, dtype=mx.float32).reshape(1, 64)))[0, :4]",
     [](Arguments& a) {
       return give(dequantize(a.array_at(0), a.array_at(1), a.optional_array(2),
                              a.optional_integer(3), a.optional_integer(4), a.text(5),
                              a.optional_array(6), a.optional_dtype(7), a.stream(8)));
     }},
    {"quantized_matmul",
     "(x, w, /, scales, biases=None, transpose=True, group_size=None, bits=None, "
     "mode='affine', " STREAM,
     "A product with low-bit weights.",
     "mx.quantized_matmul(mx.ones((1, 64)), *mx.quantize(mx.ones((2, 64))))",
     [](Arguments& a) {
       return give(quantized_matmul(a.array_at(0), a.array_at(1), a.array_at(2),
                                    a.optional_array(3), a.truth(4), a.optional_integer(5),
                                    a.optional_integer(6), a.text(7), a.stream(8)));
     }},
    {"gather_qmm",
     "(x, w, /, scales, biases=None, lhs_indices=None, rhs_indices=None, transpose=True, "
     "group_size=None, bits=None, mode='affine', global_scale=None, *, sorted_indices=False, "
     "stream=None)",
     "Products with those low-bit matrices that the indices name.",
     "mx.gather_qmm(mx.ones((1, 1, 64)), *mx.quantize(mx.ones((3, 2, 64))), "
     "rhs_indices=mx.array([2]))",
     [](Arguments& a) {
       return give(quantized::gather_scaled_qmm(
           a.array_at(0), a.array_at(1), a.array_at(2), a.optional_array(3), a.optional_array(4),
           a.optional_array(5), a.truth(6), a.optional_integer(7), a.optional_integer(8), a.text(9),
           a.optional_array(10), a.truth(11), a.stream(12)));
     }},
    {"qqmm",
     "(x, w, scales=None, group_size=None, bits=None, mode='nvfp4', global_scale_x=None, "
     "global_scale_w=None, " STREAM,
     "A product of which both sides are quantised.", "mx.qqmm(mx.ones((2, 32)), mx.ones((3, 32)))",
     [](Arguments& a) {
       return give(qqmm(a.array_at(0), a.array_at(1), a.optional_array(2), a.optional_integer(3),
                        a.optional_integer(4), a.text(5), a.optional_array(6), a.optional_array(7),
                        a.stream(8)));
     }},
    {"gather_qqmm",
     "(x, w, /, scales=None, lhs_indices=None, rhs_indices=None, group_size=None, bits=None, "
     "mode='nvfp4', global_scale_x=None, global_scale_w=None, *, sorted_indices=False, "
     "stream=None)",
     "Such products of the matrices that the indices name.",
     "mx.gather_qqmm(mx.ones((2, 1, 32)), mx.ones((3, 4, 32)), lhs_indices=mx.array([1]), "
     "rhs_indices=mx.array([2]))",
     [](Arguments& a) {
       return give(gather_qqmm(a.array_at(0), a.array_at(1), a.optional_array(2),
                               a.optional_array(3), a.optional_array(4), a.optional_integer(5),
                               a.optional_integer(6), a.text(7), a.optional_array(8),
                               a.optional_array(9), a.truth(10), a.stream(11)));
     }},
    {"to_fp8", "(x, " STREAM, "As 8-bit floating-point numbers (e4m3), in uint8.",
     "mx.to_fp8(mx.array([1.0, 2.5]))",
     [](Arguments& a) { return give(to_fp8(a.array_at(0), a.stream(1))); }},
    {"from_fp8", "(x, dtype=None, " STREAM, "What to_fp8 made; bfloat16 unless a dtype is named.",
     "mx.from_fp8(mx.to_fp8(mx.array([1.0, 2.5])), mx.float32)",
     [](Arguments& a) { return give(from_fp8(a.array_at(0), a.dtype(1, bfloat16), a.stream(2))); }},
};
#undef STREAM

}  // namespace

void add_products(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
