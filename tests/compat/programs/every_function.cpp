// Every function of MLX's interface with every overload, as its users write the calls.
#include "every_name.h"

void Variables::functions() {
  // --- dtype ---
  is<bool>(issubdtype(dtype, dtype), issubdtype(category, dtype), issubdtype(dtype, category),
           issubdtype(category, category));
  is<Dtype>(promote_types(dtype, dtype));
  is<uint8_t>(size_of(dtype));
  is<Dtype::Kind>(kindof(dtype));

  // --- device and stream ---
  is<Device>(default_device());
  set_default_device(device);
  is<bool>(is_available(device));
  is<int>(device_count(type));
  is<Info>(device_info(device), device_info());
  is<Stream>(default_stream(device));
  set_default_stream(stream);
  is<Stream>(new_stream(device));
  is<Stream>(new_thread_unsafe_stream(device));
  is<ThreadLocalStream>(new_thread_local_stream(device));
  is<Stream>(stream_from_thread_local_stream(local));
  is<std::vector<Stream>>(get_streams());
  synchronize();
  synchronize(stream);
  synchronize(local);
  clear_streams();

  // --- Creation ---
  is<A>(arange(d, d, d, dtype, s), arange(d, d, d, dtype), arange(d, d, d, s), arange(d, d, d),
        arange(d, d, dtype, s), arange(d, d, dtype), arange(d, d, s), arange(d, d),
        arange(d, dtype, s), arange(d, dtype), arange(d, s), arange(d), arange(n, n, n, s),
        arange(n, n, n), arange(n, n, s), arange(n, n), arange(n, s), arange(n));
  is<A>(linspace(d, d, n, yes, dtype, s), linspace(d, d, n, yes), linspace(d, d, n, dtype, s),
        linspace(d, d));
  is<A>(full(shape, a, dtype, s), full(shape, a, dtype), full(shape, a, s), full(shape, a),
        full(shape, value, dtype, s), full(shape, value, dtype), full(shape, value, s),
        full(shape, value));
  is<A>(full_like(a, a, dtype, s), full_like(a, a, dtype), full_like(a, a, s), full_like(a, a),
        full_like(a, value, dtype, s), full_like(a, value, dtype), full_like(a, value, s),
        full_like(a, value));
  is<A>(zeros(shape, dtype, s), zeros(shape, dtype), zeros(shape, s), zeros(shape));
  is<A>(zeros_like(a, s), zeros_like(a), zeros_like(a, dtype, s), zeros_like(a, dtype));
  is<A>(ones(shape, dtype, s), ones(shape, dtype), ones(shape, s), ones(shape));
  is<A>(ones_like(a, s), ones_like(a), ones_like(a, dtype, s), ones_like(a, dtype));
  is<A>(eye(n, n, n, dtype, s), eye(n, n, n, dtype), eye(n, dtype, s), eye(n, dtype), eye(n, n, s),
        eye(n, n), eye(n, n, n, s), eye(n, n, n), eye(n, s), eye(n));
  is<A>(identity(n, dtype, s), identity(n, dtype), identity(n, s), identity(n));
  is<A>(tri(n, n, n, dtype, s), tri(n, n, n, dtype), tri(n, dtype, s), tri(n, dtype));
  is<A>(tril(a, n, s), tril(a));
  is<A>(triu(a, n, s), triu(a));
  is<Arrays>(meshgrid(arrays, yes, text, s), meshgrid(arrays));
  is<A>(hanning(n, s), hanning(n));
  is<A>(hamming(n, s), hamming(n));
  is<A>(bartlett(n, s), bartlett(n));
  is<A>(blackman(n, s), blackman(n));

  // --- Type, copy, view, graph ---
  is<A>(astype(a, dtype, s), astype(a, dtype));
  is<A>(copy(a, s), copy(a));
  is<A>(view(a, dtype, s), view(a, dtype));
  is<A>(contiguous(a, yes, s), contiguous(a));
  is<A>(as_strided(a, shape, strides, size, s), as_strided(a, shape, strides, size));
  is<A>(stop_gradient(a, s), stop_gradient(a));
  is<Arrays>(depends(arrays, arrays));
  is<A>(number_of_elements(a, axes, yes, dtype, s), number_of_elements(a, axes, yes));
  is<A>(real(a, s), real(a));
  is<A>(imag(a, s), imag(a));
  is<A>(conjugate(a, s), conjugate(a));

  // --- Shape and layout ---
  is<A>(reshape(a, shape, s), reshape(a, shape));
  is<A>(flatten(a, n, n, s), flatten(a, n), flatten(a, s), flatten(a));
  is<A>(unflatten(a, n, shape, s), unflatten(a, n, shape));
  is<A>(squeeze(a, axes, s), squeeze(a, axes), squeeze(a, n, s), squeeze(a, n), squeeze(a, s),
        squeeze(a));
  is<A>(expand_dims(a, axes, s), expand_dims(a, axes), expand_dims(a, n, s), expand_dims(a, n));
  is<A>(transpose(a, axes, s), transpose(a, axes), transpose(a, list, s), transpose(a, list),
        transpose(a, s), transpose(a));
  is<A>(swapaxes(a, n, n, s), swapaxes(a, n, n));
  is<A>(moveaxis(a, n, n, s), moveaxis(a, n, n));
  is<A>(broadcast_to(a, shape, s), broadcast_to(a, shape));
  is<Arrays>(broadcast_arrays(arrays, s), broadcast_arrays(arrays));
  is<A>(atleast_1d(a, s), atleast_1d(a));
  is<Arrays>(atleast_1d(arrays, s), atleast_1d(arrays));
  is<A>(atleast_2d(a, s), atleast_2d(a));
  is<Arrays>(atleast_2d(arrays, s), atleast_2d(arrays));
  is<A>(atleast_3d(a, s), atleast_3d(a));
  is<Arrays>(atleast_3d(arrays, s), atleast_3d(arrays));
  is<A>(flip(a, axes, s), flip(a, axes), flip(a, n, s), flip(a, n), flip(a, s), flip(a));
  is<A>(roll(a, n, s), roll(a, n), roll(a, shape, s), roll(a, shape), roll(a, n, n, s),
        roll(a, n, n), roll(a, n, axes, s), roll(a, n, axes), roll(a, shape, n, s),
        roll(a, shape, n), roll(a, shape, axes, s), roll(a, shape, axes));
  is<A>(pad(a, axes, shape, shape, a, text, s), pad(a, axes, shape, shape),
        pad(a, pairs, a, text, s), pad(a, pairs), pad(a, two, a, text, s), pad(a, two),
        pad(a, n, a, text, s), pad(a, n));
  is<A>(tile(a, axes, s), tile(a, axes));
  is<A>(repeat(a, n, n, s), repeat(a, n, n), repeat(a, n, s), repeat(a, n));

  // --- Split and join ---
  is<Arrays>(split(a, n, n, s), split(a, n, n), split(a, n, s), split(a, n), split(a, shape, n, s),
             split(a, shape, n), split(a, shape, s), split(a, shape));
  is<Arrays>(unstack(a, n, s), unstack(a, n), unstack(a, s), unstack(a));
  is<A>(concatenate(arrays, n, s), concatenate(arrays, n), concatenate(arrays, s),
        concatenate(arrays));
  is<A>(stack(arrays, n, s), stack(arrays, n), stack(arrays, s), stack(arrays));

  // --- Slicing, gather, scatter ---
  is<A>(slice(a, shape, shape, shape, s), slice(a, shape, shape, shape),
        slice(a, list, shape, shape, s), slice(a, list, shape, shape), slice(a, shape, shape, s),
        slice(a, shape, shape), slice(a, a, axes, shape, s), slice(a, a, axes, shape));
  is<A>(slice_update(a, a, shape, shape, shape, s), slice_update(a, a, shape, shape, shape),
        slice_update(a, a, shape, shape, s), slice_update(a, a, shape, shape),
        slice_update(a, a, a, axes, s), slice_update(a, a, a, axes));
  is<A>(slice_update_add(a, a, shape, shape, shape, s), slice_update_add(a, a, shape, shape, shape),
        slice_update_add(a, a, shape, shape, s), slice_update_add(a, a, shape, shape));
  is<A>(slice_update_prod(a, a, shape, shape, shape, s),
        slice_update_prod(a, a, shape, shape, shape), slice_update_prod(a, a, shape, shape, s),
        slice_update_prod(a, a, shape, shape));
  is<A>(slice_update_max(a, a, shape, shape, shape, s), slice_update_max(a, a, shape, shape, shape),
        slice_update_max(a, a, shape, shape, s), slice_update_max(a, a, shape, shape));
  is<A>(slice_update_min(a, a, shape, shape, shape, s), slice_update_min(a, a, shape, shape, shape),
        slice_update_min(a, a, shape, shape, s), slice_update_min(a, a, shape, shape));
  is<A>(take(a, a, n, s), take(a, a, n), take(a, n, n, s), take(a, n, n), take(a, a, s), take(a, a),
        take(a, n, s), take(a, n));
  is<A>(take_along_axis(a, a, n, s), take_along_axis(a, a, n));
  is<A>(put_along_axis(a, a, a, n, s), put_along_axis(a, a, a, n));
  is<A>(scatter_add_axis(a, a, a, n, s), scatter_add_axis(a, a, a, n));
  is<A>(gather(a, arrays, axes, shape, s), gather(a, arrays, axes, shape),
        gather(a, a, n, shape, s), gather(a, a, n, shape));
  is<A>(scatter(a, arrays, a, axes, s), scatter(a, arrays, a, axes), scatter(a, a, a, n, s),
        scatter(a, a, a, n));
  is<A>(scatter_add(a, arrays, a, axes, s), scatter_add(a, arrays, a, axes),
        scatter_add(a, a, a, n, s), scatter_add(a, a, a, n));
  is<A>(scatter_prod(a, arrays, a, axes, s), scatter_prod(a, arrays, a, axes),
        scatter_prod(a, a, a, n, s), scatter_prod(a, a, a, n));
  is<A>(scatter_max(a, arrays, a, axes, s), scatter_max(a, arrays, a, axes),
        scatter_max(a, a, a, n, s), scatter_max(a, a, a, n));
  is<A>(scatter_min(a, arrays, a, axes, s), scatter_min(a, arrays, a, axes),
        scatter_min(a, a, a, n, s), scatter_min(a, a, a, n));
  is<A>(masked_scatter(a, a, a, s), masked_scatter(a, a, a));

  // --- Comparison and logic ---
  is<A>(equal(a, a, s), equal(a, a));
  is<A>(not_equal(a, a, s), not_equal(a, a));
  is<A>(greater(a, a, s), greater(a, a));
  is<A>(greater_equal(a, a, s), greater_equal(a, a));
  is<A>(less(a, a, s), less(a, a));
  is<A>(less_equal(a, a, s), less_equal(a, a));
  is<A>(array_equal(a, a, yes, s), array_equal(a, a, yes), array_equal(a, a, s), array_equal(a, a));
  is<A>(allclose(a, a, d, d, yes, s), allclose(a, a));
  is<A>(isclose(a, a, d, d, yes, s), isclose(a, a));
  is<A>(isnan(a, s), isnan(a));
  is<A>(isinf(a, s), isinf(a));
  is<A>(isfinite(a, s), isfinite(a));
  is<A>(isposinf(a, s), isposinf(a));
  is<A>(isneginf(a, s), isneginf(a));
  is<A>(where(a, a, a, s), where(a, a, a));
  is<A>(logical_not(a, s), logical_not(a));
  is<A>(logical_and(a, a, s), logical_and(a, a));
  is<A>(logical_or(a, a, s), logical_or(a, a));
  is<A>(logical_xor(a, a, s), logical_xor(a, a));

  // --- Element-wise unary ---
  is<A>(abs(a, s), abs(a));
  is<A>(positive(a, s), positive(a));
  is<A>(negative(a, s), negative(a));
  is<A>(sign(a, s), sign(a));
  is<A>(reciprocal(a, s), reciprocal(a));
  is<A>(floor(a, s), floor(a));
  is<A>(ceil(a, s), ceil(a));
  is<A>(trunc(a, s), trunc(a));
  is<A>(round(a, n, s), round(a, n), round(a, s), round(a));
  is<A>(square(a, s), square(a));
  is<A>(sqrt(a, s), sqrt(a));
  is<A>(rsqrt(a, s), rsqrt(a));
  is<A>(exp(a, s), exp(a));
  is<A>(expm1(a, s), expm1(a));
  is<A>(log(a, s), log(a));
  is<A>(log2(a, s), log2(a));
  is<A>(log10(a, s), log10(a));
  is<A>(log1p(a, s), log1p(a));
  is<A>(sin(a, s), sin(a));
  is<A>(cos(a, s), cos(a));
  is<A>(tan(a, s), tan(a));
  is<A>(arcsin(a, s), arcsin(a));
  is<A>(arccos(a, s), arccos(a));
  is<A>(arctan(a, s), arctan(a));
  is<A>(sinh(a, s), sinh(a));
  is<A>(cosh(a, s), cosh(a));
  is<A>(tanh(a, s), tanh(a));
  is<A>(arcsinh(a, s), arcsinh(a));
  is<A>(arccosh(a, s), arccosh(a));
  is<A>(arctanh(a, s), arctanh(a));
  is<A>(degrees(a, s), degrees(a));
  is<A>(radians(a, s), radians(a));
  is<A>(sigmoid(a, s), sigmoid(a));
  is<A>(erf(a, s), erf(a));
  is<A>(erfinv(a, s), erfinv(a));
  is<A>(bitwise_invert(a, s), bitwise_invert(a));
  is<A>(nan_to_num(a, f, maybe_f, maybe_f, s), nan_to_num(a));
  is<A>(clip(a, maybe, maybe, s), clip(a));

  // --- Element-wise binary ---
  is<A>(add(a, a, s), add(a, a));
  is<A>(subtract(a, a, s), subtract(a, a));
  is<A>(multiply(a, a, s), multiply(a, a));
  is<A>(divide(a, a, s), divide(a, a));
  is<Arrays>(divmod(a, a, s), divmod(a, a));
  is<A>(floor_divide(a, a, s), floor_divide(a, a));
  is<A>(remainder(a, a, s), remainder(a, a));
  is<A>(power(a, a, s), power(a, a));
  is<A>(maximum(a, a, s), maximum(a, a));
  is<A>(minimum(a, a, s), minimum(a, a));
  is<A>(arctan2(a, a, s), arctan2(a, a));
  is<A>(logaddexp(a, a, s), logaddexp(a, a));
  is<A>(bitwise_and(a, a, s), bitwise_and(a, a));
  is<A>(bitwise_or(a, a, s), bitwise_or(a, a));
  is<A>(bitwise_xor(a, a, s), bitwise_xor(a, a));
  is<A>(left_shift(a, a, s), left_shift(a, a));
  is<A>(right_shift(a, a, s), right_shift(a, a));

  // --- Reductions ---
  is<A>(all(a, yes, s), all(a, yes), all(a, s), all(a), all(a, axes, yes, s), all(a, axes),
        all(a, n, yes, s), all(a, n));
  is<A>(any(a, yes, s), any(a, yes), any(a, s), any(a), any(a, axes, yes, s), any(a, axes),
        any(a, n, yes, s), any(a, n));
  is<A>(sum(a, yes, s), sum(a, yes), sum(a, s), sum(a), sum(a, axes, yes, s), sum(a, axes),
        sum(a, n, yes, s), sum(a, n));
  is<A>(prod(a, yes, s), prod(a, yes), prod(a, s), prod(a), prod(a, axes, yes, s), prod(a, axes),
        prod(a, n, yes, s), prod(a, n));
  is<A>(mean(a, yes, s), mean(a, yes), mean(a, s), mean(a), mean(a, axes, yes, s), mean(a, axes),
        mean(a, n, yes, s), mean(a, n));
  is<A>(median(a, yes, s), median(a, yes), median(a, s), median(a), median(a, axes, yes, s),
        median(a, axes), median(a, n, yes, s), median(a, n));
  is<A>(var(a, yes, n, s), var(a, yes), var(a, s), var(a), var(a, axes, yes, n, s), var(a, axes),
        var(a, n, yes, n, s), var(a, n));
  is<A>(mlx::core::std(a, yes, n, s), mlx::core::std(a, yes), mlx::core::std(a, s),
        mlx::core::std(a), mlx::core::std(a, axes, yes, n, s), mlx::core::std(a, axes),
        mlx::core::std(a, n, yes, n, s), mlx::core::std(a, n));
  is<A>(max(a, yes, s), max(a, yes), max(a, s), max(a), max(a, axes, yes, s), max(a, axes),
        max(a, n, yes, s), max(a, n));
  is<A>(min(a, yes, s), min(a, yes), min(a, s), min(a), min(a, axes, yes, s), min(a, axes),
        min(a, n, yes, s), min(a, n));
  is<A>(count_nonzero(a, yes, s), count_nonzero(a), count_nonzero(a, n, yes, s),
        count_nonzero(a, n), count_nonzero(a, axes, yes, s), count_nonzero(a, axes));
  is<A>(logsumexp(a, yes, s), logsumexp(a, yes), logsumexp(a, s), logsumexp(a),
        logsumexp(a, axes, yes, s), logsumexp(a, axes), logsumexp(a, n, yes, s), logsumexp(a, n));
  is<A>(argmin(a, yes, s), argmin(a, yes), argmin(a, s), argmin(a), argmin(a, n, yes, s),
        argmin(a, n));
  is<A>(argmax(a, yes, s), argmax(a, yes), argmax(a, s), argmax(a), argmax(a, n, yes, s),
        argmax(a, n));
  is<A>(softmax(a, axes, yes, s), softmax(a, axes), softmax(a, yes, s), softmax(a),
        softmax(a, n, yes, s), softmax(a, n));

  // --- Sort, search, scan ---
  is<A>(sort(a, s), sort(a), sort(a, n, s), sort(a, n));
  is<A>(argsort(a, s), argsort(a), argsort(a, n, s), argsort(a, n));
  is<A>(partition(a, n, s), partition(a, n), partition(a, n, n, s), partition(a, n, n));
  is<A>(argpartition(a, n, s), argpartition(a, n), argpartition(a, n, n, s), argpartition(a, n, n));
  is<A>(topk(a, n, s), topk(a, n), topk(a, n, n, s), topk(a, n, n));
  is<A>(searchsorted(a, a, text, s), searchsorted(a, a));
  is<A>(cumsum(a, yes, yes, maybe_dtype, s), cumsum(a), cumsum(a, yes, yes, s),
        cumsum(a, n, yes, yes, maybe_dtype, s), cumsum(a, n), cumsum(a, n, yes, yes, s));
  is<A>(cumprod(a, yes, yes, maybe_dtype, s), cumprod(a), cumprod(a, yes, yes, s),
        cumprod(a, n, yes, yes, maybe_dtype, s), cumprod(a, n), cumprod(a, n, yes, yes, s));
  is<A>(cummax(a, yes, yes, s), cummax(a), cummax(a, n, yes, yes, s), cummax(a, n));
  is<A>(cummin(a, yes, yes, s), cummin(a), cummin(a, n, yes, yes, s), cummin(a, n));
  is<A>(logcumsumexp(a, yes, yes, s), logcumsumexp(a), logcumsumexp(a, n, yes, yes, s),
        logcumsumexp(a, n));
  is<A>(diff(a, n, n, s), diff(a));

  // --- Matrix products and diagonals ---
  is<A>(matmul(a, a, s), matmul(a, a));
  is<A>(addmm(a, a, a, f, f, s), addmm(a, a, a));
  is<A>(block_masked_mm(a, a, n, maybe, maybe, maybe, s), block_masked_mm(a, a, n));
  is<A>(gather_mm(a, a, maybe, maybe, yes, s), gather_mm(a, a));
  is<A>(segmented_mm(a, a, a, s), segmented_mm(a, a, a));
  is<A>(tensordot(a, a, n, s), tensordot(a, a), tensordot(a, a, axes, axes, s),
        tensordot(a, a, axes, axes));
  is<A>(outer(a, a, s), outer(a, a));
  is<A>(inner(a, a, s), inner(a, a));
  is<A>(vecdot(a, a, n, s), vecdot(a, a));
  is<A>(kron(a, a, s), kron(a, a));
  is<A>(diagonal(a, n, n, n, s), diagonal(a));
  is<A>(diag(a, n, s), diag(a));
  is<A>(trace(a, n, n, n, dtype, s), trace(a, n, n, n, dtype), trace(a, n, n, n, s),
        trace(a, n, n, n), trace(a, s), trace(a));
  is<A>(hadamard_transform(a, maybe_f, s), hadamard_transform(a));

  // --- Convolution ---
  is<A>(conv_general(a, a, axes, axes, axes, axes, axes, n, yes, s),
        conv_general(a, a, axes, axes, axes, axes, n, yes, s));
  is<A>(conv1d(a, a, n, n, n, n, s), conv1d(a, a));
  is<A>(conv2d(a, a, two, two, two, n, s), conv2d(a, a));
  is<A>(conv3d(a, a, three, three, three, n, s), conv3d(a, a));
  is<A>(conv_transpose1d(a, a, n, n, n, n, n, s), conv_transpose1d(a, a));
  is<A>(conv_transpose2d(a, a, two, two, two, two, n, s), conv_transpose2d(a, a));
  is<A>(conv_transpose3d(a, a, three, three, three, three, n, s), conv_transpose3d(a, a));

  // --- Quantised and fp8 ---
  is<Arrays>(quantize(a, maybe_n, maybe_n, text, maybe, s), quantize(a));
  is<A>(dequantize(a, a, maybe, maybe_n, maybe_n, text, maybe, maybe_dtype, s), dequantize(a, a));
  is<A>(quantized_matmul(a, a, a, maybe, yes, maybe_n, maybe_n, text, s),
        quantized_matmul(a, a, a));
  is<A>(gather_qmm(a, a, a, maybe, maybe, maybe, yes, maybe_n, maybe_n, text, yes, s),
        gather_qmm(a, a, a));
  is<A>(qqmm(a, a, maybe, maybe_n, maybe_n, text, maybe, maybe, s), qqmm(a, a));
  is<A>(gather_qqmm(a, a, maybe, maybe, maybe, maybe_n, maybe_n, text, maybe, maybe, yes, s),
        gather_qqmm(a, a));
  is<A>(from_fp8(a, dtype, s), from_fp8(a, dtype));
  is<A>(to_fp8(a, s), to_fp8(a));

  // --- random ---
  is<A>(random::key(seed));
  random::seed(seed);
  is<A>(random::bits(shape, n, maybe, s), random::bits(shape, n), random::bits(shape, maybe, s),
        random::bits(shape));
  is<std::pair<A, A>>(random::split(a, s), random::split(a));
  is<A>(random::split(a, n, s), random::split(a, n));
  is<A>(random::uniform(a, a, shape, dtype, maybe, s), random::uniform(a, a, shape),
        random::uniform(value, value, shape, dtype, maybe, s), random::uniform(value, value, shape),
        random::uniform(shape, dtype, maybe, s), random::uniform(shape, dtype),
        random::uniform(shape, maybe, s), random::uniform(shape));
  is<A>(random::normal(shape, dtype, maybe, maybe, maybe, s),
        random::normal(shape, dtype, maybe, maybe, maybe),
        random::normal(shape, dtype, f, f, maybe, s), random::normal(shape, dtype, f, f),
        random::normal(shape, f, f, maybe, s), random::normal(shape, f, f),
        random::normal(shape, dtype, maybe, s), random::normal(shape, dtype),
        random::normal(shape, maybe, s), random::normal(shape));
  is<A>(random::multivariate_normal(a, a, shape, dtype, maybe, s),
        random::multivariate_normal(a, a, shape, dtype));
  is<A>(random::randint(a, a, shape, dtype, maybe, s), random::randint(a, a, shape),
        random::randint(value, value, shape, dtype, maybe, s),
        random::randint(value, value, shape));
  is<A>(random::bernoulli(a, shape, maybe, s), random::bernoulli(a, shape),
        random::bernoulli(a, maybe, s), random::bernoulli(a), random::bernoulli(value, maybe, s),
        random::bernoulli(value), random::bernoulli(value, shape, maybe, s),
        random::bernoulli(value, shape), random::bernoulli(maybe, s), random::bernoulli());
  is<A>(random::truncated_normal(a, a, shape, dtype, maybe, s),
        random::truncated_normal(a, a, shape), random::truncated_normal(a, a, dtype, maybe, s),
        random::truncated_normal(a, a));
  is<A>(random::gumbel(shape, dtype, maybe, s), random::gumbel(shape));
  is<A>(random::categorical(a, n, shape, maybe, s), random::categorical(a, n, shape),
        random::categorical(a, n, n, maybe, s), random::categorical(a, n, n),
        random::categorical(a, n, maybe, s), random::categorical(a));
  is<A>(random::laplace(shape, dtype, f, f, maybe, s), random::laplace(shape, dtype, f, f),
        random::laplace(shape, f, f, maybe, s), random::laplace(shape, f, f),
        random::laplace(shape, dtype, maybe, s), random::laplace(shape, dtype),
        random::laplace(shape, maybe, s), random::laplace(shape));
  is<A>(random::permutation(a, n, maybe, s), random::permutation(a),
        random::permutation(n, maybe, s), random::permutation(n));

  // --- linalg ---
  is<A>(linalg::norm(a, d, maybe_axes, yes, s), linalg::norm(a, d), linalg::norm(a, d, n, yes, s),
        linalg::norm(a, d, n), linalg::norm(a, text, maybe_axes, yes, s), linalg::norm(a, text),
        linalg::norm(a, text, n, yes, s), linalg::norm(a, text, n),
        linalg::norm(a, maybe_axes, yes, s), linalg::norm(a), linalg::norm(a, n, yes, s),
        linalg::norm(a, n));
  is<std::pair<A, A>>(linalg::qr(a, s), linalg::qr(a));
  is<Arrays>(linalg::svd(a, yes, s), linalg::svd(a, s), linalg::svd(a));
  is<A>(linalg::inv(a, s), linalg::inv(a));
  is<A>(linalg::tri_inv(a, yes, s), linalg::tri_inv(a));
  is<A>(linalg::cholesky(a, yes, s), linalg::cholesky(a));
  is<A>(linalg::pinv(a, s), linalg::pinv(a));
  is<A>(linalg::cholesky_inv(a, yes, s), linalg::cholesky_inv(a));
  is<Arrays>(linalg::lu(a, s), linalg::lu(a));
  is<std::pair<A, A>>(linalg::lu_factor(a, s), linalg::lu_factor(a));
  is<A>(linalg::solve(a, a, s), linalg::solve(a, a));
  is<A>(linalg::solve_triangular(a, a, yes, s), linalg::solve_triangular(a, a));
  is<A>(linalg::cross(a, a, n, s), linalg::cross(a, a));
  is<std::pair<A, A>>(linalg::eig(a, s), linalg::eig(a));
  is<A>(linalg::eigvals(a, s), linalg::eigvals(a));
  is<A>(linalg::eigvalsh(a, text, s), linalg::eigvalsh(a));
  is<std::pair<A, A>>(linalg::eigh(a, text, s), linalg::eigh(a));
  is<A>(linalg::det(a, s), linalg::det(a));
  is<std::pair<A, A>>(linalg::slogdet(a, s), linalg::slogdet(a));

  // --- fft ---
  is<A>(fft::fftn(a, shape, axes, norm, s), fft::fftn(a, shape, axes), fft::fftn(a, axes, norm, s),
        fft::fftn(a, axes), fft::fftn(a, norm, s), fft::fftn(a));
  is<A>(fft::ifftn(a, shape, axes, norm, s), fft::ifftn(a, shape, axes),
        fft::ifftn(a, axes, norm, s), fft::ifftn(a, axes), fft::ifftn(a, norm, s), fft::ifftn(a));
  is<A>(fft::fft(a, n, n, norm, s), fft::fft(a, n, n), fft::fft(a, n, norm, s), fft::fft(a));
  is<A>(fft::ifft(a, n, n, norm, s), fft::ifft(a, n, n), fft::ifft(a, n, norm, s), fft::ifft(a));
  is<A>(fft::fft2(a, shape, axes, norm, s), fft::fft2(a, shape, axes), fft::fft2(a, axes, norm, s),
        fft::fft2(a));
  is<A>(fft::ifft2(a, shape, axes, norm, s), fft::ifft2(a, shape, axes),
        fft::ifft2(a, axes, norm, s), fft::ifft2(a));
  is<A>(fft::rfftn(a, shape, axes, norm, s), fft::rfftn(a, shape, axes),
        fft::rfftn(a, axes, norm, s), fft::rfftn(a, axes), fft::rfftn(a, norm, s), fft::rfftn(a));
  is<A>(fft::irfftn(a, shape, axes, norm, s), fft::irfftn(a, shape, axes),
        fft::irfftn(a, axes, norm, s), fft::irfftn(a, axes), fft::irfftn(a, norm, s),
        fft::irfftn(a));
  is<A>(fft::rfft(a, n, n, norm, s), fft::rfft(a, n, n), fft::rfft(a, n, norm, s), fft::rfft(a));
  is<A>(fft::irfft(a, n, n, norm, s), fft::irfft(a, n, n), fft::irfft(a, n, norm, s),
        fft::irfft(a));
  is<A>(fft::rfft2(a, shape, axes, norm, s), fft::rfft2(a, shape, axes),
        fft::rfft2(a, axes, norm, s), fft::rfft2(a));
  is<A>(fft::irfft2(a, shape, axes, norm, s), fft::irfft2(a, shape, axes),
        fft::irfft2(a, axes, norm, s), fft::irfft2(a));
  is<A>(fft::fftfreq(n, d, s), fft::fftfreq(n));
  is<A>(fft::rfftfreq(n, d, s), fft::rfftfreq(n));
  is<A>(fft::fftshift(a, s), fft::fftshift(a), fft::fftshift(a, axes, s), fft::fftshift(a, axes));
  is<A>(fft::ifftshift(a, s), fft::ifftshift(a), fft::ifftshift(a, axes, s),
        fft::ifftshift(a, axes));

  // --- fast ---
  is<A>(fast::rms_norm(a, maybe, f, s), fast::rms_norm(a, maybe, f));
  is<A>(fast::layer_norm(a, maybe, maybe, f, s), fast::layer_norm(a, maybe, maybe, f));
  is<A>(fast::rope(a, n, yes, maybe_f, f, n, maybe, s), fast::rope(a, n, yes, maybe_f, f, n),
        fast::rope(a, n, yes, maybe_f, f, a, maybe, s), fast::rope(a, n, yes, maybe_f, f, a));
  is<A>(fast::scaled_dot_product_attention(a, a, a, f, text, maybe, maybe, yes, s),
        fast::scaled_dot_product_attention(a, a, a, f));
  is<fast::CustomKernelFunction>(
      fast::metal_kernel(text, texts, texts, text, text, yes, yes, options),
      fast::metal_kernel(text, texts, texts, text));
  is<fast::CustomKernelFunction>(fast::cuda_kernel(text, texts, texts, text, text, yes, n),
                                 fast::cuda_kernel(text, texts, texts, text));
  is<Arrays>(
      fast::precompiled_cuda_kernel(text, text, arrays, shapes, dtypes, scalars, three, three, n,
                                    maybe_f, yes, s),
      fast::precompiled_cuda_kernel(text, text, arrays, shapes, dtypes, scalars, three, three));

  // --- memory ---
  is<size_t>(get_active_memory());
  is<size_t>(get_peak_memory());
  reset_peak_memory();
  is<size_t>(get_cache_memory());
  is<size_t>(set_memory_limit(size));
  is<size_t>(get_memory_limit());
  is<size_t>(set_cache_limit(size));
  clear_cache();
  is<size_t>(set_wired_limit(size));

  // --- Backends: metal, cu, gpu ---
  is<bool>(metal::is_available());
  metal::start_capture(text);
  metal::start_capture();
  metal::stop_capture();
  is<Info>(metal::device_info());
  metal::set_metallib_path(text);
  is<std::string>(metal::get_metallib_path());
  is<bool>(cu::is_available());
  is<Info>(cu::device_info(n), cu::device_info());
  is<bool>(gpu::is_available());
  is<int>(gpu::device_count());
  is<Info>(gpu::device_info(n), gpu::device_info());

  // --- io ---
  save(writer, a);
  save(text, a);
  is<A>(load(reader, s), load(reader), load(text, s), load(text));
  is<SafetensorsLoad>(load_safetensors(reader, s), load_safetensors(reader),
                      load_safetensors(text, s), load_safetensors(text));
  save_safetensors(writer, map, metadata);
  save_safetensors(writer, map);
  save_safetensors(text, map, metadata);
  save_safetensors(text, map);
  is<GGUFLoad>(load_gguf(text, s), load_gguf(text));
  save_gguf(text, map, gguf);
  save_gguf(text, map);

  // --- einsum ---
  is<std::pair<std::vector<std::vector<int>>, std::string>>(einsum_path(text, arrays));
  is<A>(einsum(text, arrays, s), einsum(text, arrays));

  // --- utils ---
  is<Stream>(to_stream(s), to_stream(s, device));
  set_printoptions(print);
  is<PrintFormatter>(get_global_formatter());
  is<bool>(is_main_thread());
  is<Dtype>(result_type(a, a), result_type(a, a, a), result_type(arrays));
  is<Shape>(broadcast_shapes(shape, shape));
  is<ShapeElem>(safe_cast(value, view_), safe_cast(value));
  is<int>(normalize_axis_index(n, n, text), normalize_axis_index(n, n));
  is<bool>(is_power_of_2(n));
  is<int>(next_power_of_2(n));

  // --- graph export ---
  print_graph(os, namer, arrays);
  print_graph(os, arrays);
  print_graph(os, a, a);
  print_graph(os, namer, a, a);
  export_to_dot(os, namer, arrays);
  export_to_dot(os, arrays);
  export_to_dot(os, a, a);
  export_to_dot(os, namer, a, a);

  // --- version ---
  is<const char*>(version());

  // --- allocator ---
  [[maybe_unused]] allocator::Allocator& one = allocator::allocator();
  is<allocator::Buffer>(allocator::malloc(size));
  allocator::free(buffer);
  is<allocator::Buffer>(allocator::make_buffer(pointer, size));
  allocator::release(buffer);
  is<bool>(allocator::can_reuse_alien_buffer(pointer));

  // --- scheduler ---
  is<scheduler::Scheduler>(scheduler::scheduler());
  scheduler::enqueue(stream, work);
  scheduler::wait_event(stream, event, work);
  scheduler::signal_event(stream, event, work);
  scheduler::check_error(stream);
  is<int>(scheduler::n_active_tasks());
  scheduler::notify_new_task(stream);
  scheduler::notify_task_completion(stream);
  scheduler::wait_for_one();

  // --- detail ---
  is<Function>(detail::compile(fun, id, yes, constants), detail::compile(fun, id));
  is<detail::ArrayFnWithExtra>(detail::compile(extra, id, yes, constants));
  is<detail::CompileCacheWeakPtr>(detail::compile_cache());
  detail::compile_erase(cache, id);
  detail::compile_clear_cache(cache);
  is<bool>(detail::compile_available_for_device(device));
  is<std::tuple<Arrays, Arrays, std::shared_ptr<void>>>(detail::compile_trace(extra, arrays, yes));
  is<std::pair<Arrays, detail::ParentsMap>>(detail::compile_dfs(arrays, tape, arrays));
  detail::compile_simplify(tape, parents, tape, n);
  is<Arrays>(detail::compile_replace(arrays, arrays, arrays, arrays, yes));
  detail::compile_validate_shapeless(arrays);
  is<std::pair<Arrays, Arrays>>(detail::vmap_trace(fun, arrays, axes));
  is<Arrays>(detail::vmap_replace(arrays, arrays, arrays, axes, axes));
  is<bool>(detail::in_tracing());
  is<bool>(detail::in_export_tracing());
  is<bool>(detail::in_dynamic_tracing());
  is<bool>(detail::in_grad_tracing());
  is<bool>(detail::retain_graph());
}

void Variables::operators() {
#define SCALAR_TOO(op) \
  is<A>(a op a, 2 op a, a op 2, 2.0f op a, a op 2.0, true op a, a op int64_t{2}, a op float16_t(2))
  SCALAR_TOO(==);
  SCALAR_TOO(!=);
  SCALAR_TOO(>);
  SCALAR_TOO(>=);
  SCALAR_TOO(<);
  SCALAR_TOO(<=);
  SCALAR_TOO(-);
  SCALAR_TOO(+);
  SCALAR_TOO(*);
  SCALAR_TOO(%);
#undef SCALAR_TOO
  is<A>(-a, a && a, a || a, a / a, 2.0 / a, a / 2.0, a & a, a | a, a ^ a, a << a, a >> a, ~a);
  os << device << stream << dtype << kindof(dtype) << a << complex64_t(1, 2) << float16_t(1)
     << bfloat16_t(1) << axes << shape << strides;
}

void Variables::overloads_that_could_be_ambiguous() {
  is<A>(array({1.0}), slice(a, {-10}, {10}, {10}), slice(a, array({1}), {0}, {2}),
        transpose(a, {0, 2, 1}), transpose(a, stream), sum(a, true), sum(a, 0), sum(a, {0, 1}),
        sum(a, Device::gpu), zeros({100}, stream), eye(3), eye(2, 3), eye(3, float16),
        scatter_max(a, {}, a, std::vector<int>{}), random::uniform({}, a),
        random::uniform({}, int32), random::normal({200}, float16, a),
        conv_general(a, a, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1, false),
        cumsum(a, 0, false, true, stream));
  is<Function>(compile(nullptr), compile(fun), compile([](const Arrays& x) { return x; }));
  auto one = [](array x) { return x; };
  auto same = [](const array& x) { return x; };
  auto both = [](const array& x, const array&) { return x; };
  auto all_of_them = [](const std::vector<array>& x) { return x; };
  auto first = [](const std::vector<array>& x) { return x[0]; };
  is<A>(vmap(one)(a), vmap(same)(a), vmap(both)(a, a), grad(one)(a), grad(same)(a));
  is<Arrays>(vmap(all_of_them)({a}), grad(first)({a}));
  is<std::pair<A, A>>(vjp(one, a, a), jvp(same, a, a), value_and_grad(one)(a));
  is<std::pair<Arrays, Arrays>>(vjp(all_of_them, {a}, {a}), value_and_grad(all_of_them)({a}));
  is<std::pair<A, Arrays>>(value_and_grad(first)({a}));
  ImportedFunction imported = import_function(text);
  is<Arrays>(imported({{"x", array(1)}}), imported({array(1)}), imported({}),
             imported({}, {{"x", a}}));
}

int main() {}
