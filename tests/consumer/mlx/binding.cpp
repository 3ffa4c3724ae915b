#include "binding.h"

#include "mlx/backend/metal/device.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

namespace mx = mlx::core;

struct binding_array_ {
  mx::array value;
};
struct binding_closure_ {
  std::function<std::vector<mx::array>(const std::vector<mx::array>&)> call;
};

namespace {

thread_local std::string last_error;

template <typename F>
auto guarded(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& error) {
    last_error = error.what();
    return {};
  }
}

binding_array made(mx::array value) { return new binding_array_{std::move(value)}; }

// A kernel of the file that the build has made.
class Scale : public mx::UnaryPrimitive {
 public:
  Scale(mx::Stream stream, std::string folder)
      : mx::UnaryPrimitive(stream), folder_(std::move(folder)) {}
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    eval_gpu(inputs, out);
  }
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    auto& device = mx::metal::device(stream().device);
    auto* kernel = device.get_kernel("scale", device.get_library("scaling", folder_));
    auto& encoder = mx::metal::get_command_encoder(stream());
    encoder.set_compute_pipeline_state(kernel);
    encoder.set_input_array(inputs[0], 0);
    encoder.set_output_array(out, 1);
    encoder.dispatch_threads(MTL::Size(out.size(), 1, 1), MTL::Size(1, 1, 1));
  }
  const char* name() const override { return "Scale"; }

 private:
  std::string folder_;
};

}  // namespace

extern "C" {

binding_array binding_new(const float* data, int size) {
  return guarded([&] { return made(mx::array(data, mx::Shape{size})); });
}
binding_array binding_copy(binding_array a) { return made(a->value); }
void binding_free(binding_array a) { delete a; }

int binding_read(binding_array a, float* data, int size) {
  return guarded([&] {
    mx::array dense = mx::contiguous(mx::astype(a->value, mx::float32));
    dense.eval();
    if (dense.size() != static_cast<size_t>(size)) throw std::invalid_argument("another size");
    std::copy_n(dense.data<float>(), size, data);
    return 1;
  });
}

int binding_start(binding_array a) {
  return guarded([&] {
    mx::async_eval(a->value);
    return 1;
  });
}

const char* binding_error(void) { return last_error.c_str(); }

binding_array binding_multiply(binding_array a, binding_array b) {
  return guarded([&] { return made(mx::multiply(a->value, b->value)); });
}
binding_array binding_sum(binding_array a) {
  return guarded([&] { return made(mx::sum(a->value)); });
}
binding_array binding_attention(binding_array q, binding_array k, binding_array v) {
  return guarded([&] {
    std::optional<mx::array> none;
    mx::Stream stream = mx::default_stream(mx::default_device());
    return made(mx::fast::scaled_dot_product_attention(q->value, k->value, v->value, 1.0f, "", none,
                                                       none, stream));
  });
}

binding_array binding_custom_kernel(binding_array a, int times) {
  return guarded([&] {
    auto kernel = mx::fast::metal_kernel(
        "times", {"x"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = x[i] * TIMES;");
    int size = static_cast<int>(a->value.size());
    return made(kernel({a->value}, {a->value.shape()}, {mx::float32}, {size, 1, 1},
                       {std::min(size, 256), 1, 1}, {{"TIMES", times}}, std::nullopt, false,
                       {})[0]);
  });
}

binding_array binding_file_kernel(const char* folder, binding_array a) {
  return guarded([&] {
    mx::array numbers = mx::astype(a->value, mx::int32);
    auto primitive = std::make_shared<Scale>(mx::default_stream(mx::default_device()), folder);
    return made(mx::array(numbers.shape(), mx::int32, primitive, {numbers}));
  });
}

binding_closure binding_closure_new(binding_function function, void* payload,
                                    void (*destroy)(void*)) {
  std::shared_ptr<void> kept(payload, destroy);
  return new binding_closure_{[function, kept](const std::vector<mx::array>& inputs) {
    std::vector<binding_array_> values;
    for (const mx::array& input : inputs) values.push_back({input});
    std::vector<binding_array> handles;
    for (auto& value : values) handles.push_back(&value);
    binding_array result = nullptr;
    if (function(&result, handles.data(), static_cast<int>(handles.size()), kept.get()) != 0)
      throw std::runtime_error("the closure failed");
    std::unique_ptr<binding_array_> owned(result);
    return std::vector<mx::array>{owned->value};
  }};
}
void binding_closure_free(binding_closure closure) { delete closure; }
binding_array binding_closure_apply(binding_closure closure, binding_array a) {
  return guarded([&] { return made(closure->call({a->value})[0]); });
}

binding_closure binding_grad(binding_closure closure) {
  return guarded([&] {
    auto both = mx::value_and_grad(closure->call);
    return new binding_closure_{
        [both](const std::vector<mx::array>& inputs) { return both(inputs).second; }};
  });
}
binding_closure binding_custom_vjp(binding_closure closure, binding_closure rule) {
  return guarded([&] {
    auto call = rule->call;
    return new binding_closure_{mx::custom_vjp(
        closure->call,
        [call](const std::vector<mx::array>& primals, const std::vector<mx::array>& cotangents,
               const std::vector<mx::array>& outputs) {
          return call({primals[0], cotangents[0], outputs[0]});
        })};
  });
}

int binding_export(const char* file) {
  return guarded([&] {
    std::function<std::vector<mx::array>(const mx::Args&, const mx::Kwargs&)> scaled =
        [](const mx::Args& args, const mx::Kwargs& named) {
          return std::vector<mx::array>{args.at(0) * named.at("scale")};
        };
    mx::export_function(file, scaled, {mx::ones({3})}, {{"scale", mx::array(1.0f)}});
    return 1;
  });
}
binding_array binding_call_imported(const char* file, const char* name, binding_array a,
                                    binding_array scale) {
  return guarded([&] {
    auto imported = mx::import_function(file);
    mx::Kwargs named;
    named.insert_or_assign(name, scale->value);
    return made(imported({a->value}, named)[0]);
  });
}

}  // extern "C"
