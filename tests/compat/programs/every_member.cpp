// Every member of the classes of MLX's interface.
#include "every_name.h"

void Variables::members_of_arrays() {
  static_assert(std::is_same_v<ShapeElem, int32_t> && std::is_same_v<Shape, SmallVector<int32_t>> &&
                std::is_same_v<Strides, SmallVector<int64_t>> &&
                std::is_same_v<Deleter, std::function<void(allocator::Buffer)>>);
  static_assert(is_array_v<array> && is_arrays_v<array, array> && !is_array_v<int>);
  static_assert(!std::is_convertible_v<int, array> && !std::is_assignable_v<array&&, array>);
  static_assert(std::is_same_v<enable_for_arrays_t<array>, enable_for_arrays_t<array>>);
  std::vector<bool> bits;
  std::vector<float> floats;
  is<A>(array(1), array(1, float16), array(std::complex<float>(1, 2)),
        array(std::complex<float>(1, 2), complex64), array(floats.begin(), shape),
        array(floats.data(), shape, int32), array(bits.begin(), shape), array({1, 2}),
        array({1.5, 2.5}, float16), array({}), array({}, int32), array({1, 2}, {2, 1}),
        array({1, 2}, {2, 1}, int8), array(pointer, shape, dtype, [](void*) {}),
        array(buffer, shape, dtype), array(buffer, shape, dtype, allocator::free),
        array(shape, dtype, std::make_shared<Add>(stream), arrays), array::unsafe_weak_copy(a));
  is<Arrays>(array::make_arrays(shapes, dtypes, std::make_shared<Add>(stream), arrays));

  array x = a;
  is<size_t>(a.size(), a.nbytes(), a.itemsize(), a.ndim(), a.data_size(), a.buffer_size());
  is<Shape>(a.shape());
  is<int32_t>(a.shape(n));
  is<Strides>(a.strides());
  is<int64_t>(a.strides(n), a.offset());
  is<Dtype>(a.dtype());
  x.eval();
  is<float>(x.item<float>(), a.item<float>(), *x.data<float>(), *a.data<float>());
  is<array::ArrayIterator>(a.begin(), a.end(), array::ArrayIterator(a), a.begin() + n,
                           array::ArrayIterator(a, n));
  static_assert(std::is_same_v<decltype(*a.begin()), const array>);
  for (array row : a) is<bool>(row.has_primitive());
  is<std::uintptr_t>(a.id(), a.primitive_id());
  [[maybe_unused]] Primitive& primitive = a.primitive();
  is<std::shared_ptr<Primitive>>(a.primitive_ptr());
  is<Arrays>(a.inputs(), x.inputs(), a.siblings(), x.siblings(), a.outputs());
  is<uint16_t>(a.sibling_position());
  x.set_siblings(arrays, 0);
  x.detach();
  is<bool>(a.has_primitive(), a.is_donatable(), a.is_available(), a.is_tracer(),
           a.flags().contiguous, a.flags().row_contiguous, a.flags().col_contiguous);
  is<allocator::Buffer>(x.buffer(), a.buffer());
  std::weak_ptr<array::Data> weak = a.data_shared_ptr();
  is<allocator::Buffer>(weak.lock()->buffer);
  is<Deleter>(weak.lock()->d);
  array::Flags flags = a.flags();
  x.set_data(buffer);
  x.set_data(buffer, allocator::free);
  x.set_data(buffer, size, strides, flags, allocator::free);
  x.set_data(buffer, size, strides, flags);
  x.set_data(buffer, size, strides, flags, 1, allocator::free);
  x.copy_shared_buffer(a);
  x.copy_shared_buffer(a, strides, flags, size);
  x.copy_shared_buffer(a, strides, flags, size, 1);
  x.overwrite_descriptor(a);
  is<array::Status>(a.status(), array::unscheduled, array::Status::evaluated, array::available);
  x.set_status(array::Status::available);
  x.wait();
  x.attach_event(event);
  is<Event>(a.event());
  x.detach_event();
  x.set_tracer(true);
}

void Variables::members_of_others() {
  is<Dtype::Val>(dtype.val(), static_cast<Dtype::Val>(dtype), Dtype::Val::bfloat16);
  is<uint8_t>(dtype.size());
  is<Dtype>(Dtype(Dtype::Val::int8, 1), bool_, uint8, uint16, uint32, uint64, int8, int16, int32,
            int64, float16, float32, float64, bfloat16, complex64);
  is<Dtype::Category>(complexfloating, floating, inexact, signedinteger, unsignedinteger, integer,
                      number, generic);
  is<Dtype::Kind>(Dtype::Kind::b, Dtype::Kind::u, Dtype::Kind::i, Dtype::Kind::f, Dtype::Kind::c,
                  Dtype::Kind::V);
  is<Dtype>(Dtype(TypeToDtype<double>()), Dtype(TypeToDtype<complex64_t>()));

  is<Device>(Device(Device::cpu), Device(Device::gpu), Device(type, n));
  is<Device::DeviceType>(device.type, Device::cpu, Device::gpu);
  is<bool>(device == device, device == type, type == device, device != device, device < device,
           stream == stream, stream != stream, stream < stream);
  is<int>(device.index, stream.index, local.index);
  is<Stream>(Stream(n, device), Stream(0, Device::cpu));
  is<ThreadLocalStream>(ThreadLocalStream(n, device));
  StreamContext context(s);

  SmallVector<int> v{1, 2};
  is<SmallVector<int>>(SmallVector<int>(), SmallVector<int>(size), SmallVector<int>(size, 1),
                       SmallVector<int>(axes.begin(), axes.end()));
  is<int>(v.at(0), v[0], v.front(), v.back(), *v.begin(), *v.end(), *v.cbegin(), *v.cend(),
          *v.rbegin(), *v.rend(), *v.data());
  is<size_t>(v.size(), v.capacity());
  is<bool>(v.empty(), v == v, v != v, is_vector_v<SmallVector<int>>, is_vector_v<Arrays>);
  v.push_back(1);
  v.emplace_back(1);
  v.pop_back();
  v.pop_back(2);
  v.insert(v.begin(), 1);
  v.insert(v.begin(), size, 1);
  v.insert(v.begin(), axes.begin(), axes.end());
  v.insert(v.begin(), v[0]);
  v.erase(v.begin());
  v.erase(v.begin(), v.end());
  v.resize(1);
  v.resize(1, 2);
  v.reserve(1);
  v.clear();
  static_assert(!std::is_convertible_v<std::vector<int>, Shape> &&
                !std::is_convertible_v<Shape, std::vector<int>>);

  random::KeySequence keys(seed);
  keys.seed(seed);
  is<A>(keys.next(), random::KeySequence::default_().next());
  is<fft::FFTNorm>(fft::FFTNorm::Backward, fft::FFTNorm::Ortho, fft::FFTNorm::Forward);
  static_assert(std::is_same_v<fast::TemplateArg, std::variant<int, bool, Dtype>>);
  fast::CustomKernelFunction kernel;
  is<Arrays>(kernel(arrays, shapes, dtypes, three, three, {{"T", float32}, {"N", 4}, {"B", true}},
                    maybe_f, yes, s));
  is<int>(fast::CompileOptions{fast::MathMode::Fast}.serialize());

  is<bool>(reader->is_open(), reader->good(), writer->is_open(), writer->good());
  is<size_t>(reader->tell(), writer->tell());
  reader->seek(0);
  reader->seek(0, std::ios_base::end);
  reader->read(static_cast<char*>(pointer), size);
  reader->read(static_cast<char*>(pointer), size, size);
  writer->seek(0);
  writer->write(static_cast<char*>(pointer), size);
  is<std::string>(reader->label(), writer->label());
  std::make_shared<io::ParallelFileReader>(text)->is_open();
  std::make_shared<io::FileWriter>(text)->is_open();
  io::thread_pool().enqueue(work).get();

  is<int>(PrintOptions{}.precision, get_global_formatter().format_options.precision);
  get_global_formatter().capitalize_bool = true;
  get_global_formatter().print(os, true);
  get_global_formatter().print(os, float16_t(1));
  get_global_formatter().print(os, complex64_t(1, 2));
  finfo limits(dtype);
  is<double>(limits.min, limits.max, limits.eps, limits.smallest_normal);
  is<int>(limits.bits);
  is<Dtype>(limits.dtype, iinfo(dtype).dtype);
  is<int64_t>(iinfo(dtype).min);
  is<uint64_t>(iinfo(dtype).max);
  NodeNamer names;
  is<std::string>(names.get_name(a), names.names.begin()->second);
  names.set_name(a, text);

  is<allocator::Buffer>(allocator::Buffer(pointer), allocator::allocator().malloc(size),
                        allocator::allocator().make_buffer(pointer, size));
  is<void*>(buffer.raw_ptr(), buffer.ptr());
  allocator::allocator().free(buffer);
  allocator::allocator().release(buffer);
  is<size_t>(allocator::allocator().size(buffer));
  detail::InTracing tracing, dynamic(true), gradient(false, true);
  detail::InExportTracing exports;
  detail::RetainGraph retains;
  static_assert(std::is_same_v<detail::ArraysAndExtra, std::pair<Arrays, std::shared_ptr<void>>>);
  is<QuantizationMode>(QuantizationMode::Affine, QuantizationMode::Mxfp4, QuantizationMode::Mxfp8,
                       QuantizationMode::Nvfp4);

  Primitive& primitive = a.primitive();
  is<Device>(primitive.device());
  is<Stream>(primitive.stream());
  primitive.eval_cpu(arrays, tape);
  primitive.eval_gpu(arrays, tape);
  is<const char*>(primitive.name());
  is<Arrays>(primitive.jvp(arrays, arrays, axes), primitive.vjp(arrays, arrays, axes, arrays));
  is<std::pair<Arrays, std::vector<int>>>(primitive.vmap(arrays, axes));
  is<bool>(primitive.is_equivalent(primitive));
  is<std::vector<Shape>>(primitive.output_shapes(arrays));
  is<std::string>(dynamic_cast<Compiled&>(primitive).lib_name());
  is<std::shared_ptr<ArgReduce>>(std::make_shared<ArgReduce>(stream, ArgReduce::ArgMin, n));
}

int main() {}
