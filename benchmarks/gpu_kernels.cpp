// What the GPU's kernels read and write, counted on the CPU: a kernel that reads its input twice is
// visible without a GPU. Each op runs on a simulated GPU by instrumented kernels, which add up the
// bytes of every access of every thread; the reference is what must move: each input and each
// output once. Rows of ops that read elements again by their nature (products, attention) have no
// bar: caches and threadgroup memory decide there.
//
// A note says how many instructions PTX has of each kernel that ran: for all that one thread does.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include <holdfast/fast.h>
#include <holdfast/fft.h>
#include <holdfast/holdfast.h>
#include <holdfast/random.h>

#include "base/environment.h"
#include "benchmarks/bench.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cpu/jit/kernel_checker.h"
#include "devices/cuda/compiled_kernel.h"
#include "devices/simulated/simulated_gpu.h"
#include "exec/kernel_library.h"
#include "exec/layers/layer.h"
#include "exec/runtime.h"
#include "kernels/metal/entries.h"
#include "kernels/metal/metal_backend.h"

namespace holdfast::bench {
namespace {

struct OpCase {
  const char* name;
  std::vector<array> inputs;
  std::function<std::vector<array>(const std::vector<array>&)> op;
  bool moves_once = true;  // reads each element once, writes each once
};

array numbers(const Shape& shape, Dtype dtype) {
  return astype(random::uniform(-1, 1, shape, float32, {}, Device::cpu), dtype, Device::cpu);
}
array indices(int size, int bound) {
  return random::randint(0, bound, {size}, int32, {}, Device::cpu);
}

std::vector<OpCase> op_cases() {
  using Arrays = std::vector<array>;
  const array a = numbers({64, 1024}, float32), h = numbers({64, 1024}, bfloat16);
  const array weight = numbers({1024}, bfloat16), long_row = numbers({1 << 16}, float32);
  auto one = [](auto f) { return [f](const Arrays& in) { return Arrays{f(in)}; }; };
  return {
      {"add f32", {a, a + 1}, one([](const Arrays& x) { return x[0] + x[1]; })},
      {"exp(a*b+a) bf16", {h, h + h}, one([](const Arrays& x) { return exp(x[0] * x[1] + x[0]); })},
      {"astype f32 to bf16", {a}, one([](const Arrays& x) { return astype(x[0], bfloat16); })},
      {"transposed copy bf16", {h}, one([](const Arrays& x) {
         return contiguous(transpose(x[0]));
       })},
      {"concatenate f32", {a, a + 1}, one([](const Arrays& x) { return concatenate(x, 1); })},
      {"pad f32", {a}, one([](const Arrays& x) { return pad(x[0], 1); })},
      {"full f32", {}, one([](const Arrays&) { return full({64, 1024}, 2.0f); })},
      {"arange i32", {}, one([](const Arrays&) { return arange(1 << 16); })},
      {"sum all f32", {a}, one([](const Arrays& x) { return sum(x[0]); })},
      {"sum rows bf16", {h}, one([](const Arrays& x) { return sum(x[0], -1); })},
      {"sum columns bf16", {h}, one([](const Arrays& x) { return sum(x[0], 0); })},
      {"argmax rows bf16", {h}, one([](const Arrays& x) { return argmax(x[0], -1); })},
      {"softmax bf16", {h}, one([](const Arrays& x) { return softmax(x[0], -1); })},
      {"logsumexp f32", {a}, one([](const Arrays& x) { return logsumexp(x[0], -1); })},
      {"rms_norm bf16", {h, weight}, one([](const Arrays& x) {
         return fast::rms_norm(x[0], x[1], 1e-5f);
       })},
      {"layer_norm bf16", {h, weight}, one([](const Arrays& x) {
         return fast::layer_norm(x[0], x[1], x[1], 1e-5f);
       })},
      {"cumsum f32", {a}, one([](const Arrays& x) { return cumsum(x[0], -1); })},
      {"cumsum long f32", {long_row}, one([](const Arrays& x) { return cumsum(x[0]); }), false},
      {"sort f32", {a}, one([](const Arrays& x) { return sort(x[0], -1); }), false},
      {"take rows bf16", {h, indices(64, 64)}, one([](const Arrays& x) {
         return take(x[0], x[1], 0);
       })},
      {"random bits", {random::key(1)}, one([](const Arrays& x) {
         return random::bits({1 << 16}, 4, x[0]);
       })},
      {"rope bf16", {numbers({1, 8, 64, 64}, bfloat16)}, one([](const Arrays& x) {
         return fast::rope(x[0], 64, false, 10000.0f, 1.0f, 0);
       })},
      {"matvec bf16",
       {numbers({512, 512}, bfloat16), numbers({512, 1}, bfloat16)},
       one([](const Arrays& x) { return matmul(x[0], x[1]); }),
       false},
      {"matmul bf16",
       {numbers({64, 256}, bfloat16), numbers({256, 64}, bfloat16)},
       one([](const Arrays& x) { return matmul(x[0], x[1]); }),
       false},
      {"hadamard f32", {a}, one([](const Arrays& x) { return hadamard_transform(x[0]); })},
      {"fft f32", {a}, one([](const Arrays& x) { return fft::fft(x[0]); }), false},
  };
}

// Has every kernel run instrumented, and remembers which ones did.
struct Instrumented : exec::Layer {
  uint32_t interests() const override { return encoding; }
  Ref<const exec::Pipeline> on_dispatch(const exec::Pipeline& pipeline,
                                        std::span<exec::BoundSlot>) override {
    const auto& request =
        *static_cast<const Ref<const exec::KernelRequest>*>(pipeline.origin.get());
    exec::KernelOptions options;
    options.variant = request->target().checked_variant();
    Ref<const exec::Pipeline> checked = exec::KernelLibrary::get().get(
        make_ref<exec::KernelRequest>(request->source(), options, request->target()));
    std::lock_guard guard(mutex);
    ++dispatched[request->source().entry];
    return checked;
  }
  void on_host_fallback(const exec::HostFallback& fallback) override {
    std::lock_guard guard(mutex);
    on_host = fallback.op;
  }
  std::mutex mutex;
  std::map<std::string, int> dispatched;
  std::string on_host;
};

// Of the kernel's PTX; 0: there is none.
size_t instructions_of(const std::string& entry) {
  for (const kernels::metal::EmbeddedSource& file : kernels::metal::embedded_sources()) {
    const auto kernel = cuda::CompiledKernel::from_bytes(
        kernels::metal::images_of(file.name).find(cuda::image_name(80), entry));
    if (!kernel) continue;
    const std::string& text = kernel->images.front().code;
    size_t count = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const size_t first = text.find_first_not_of(" \t", at);
      count += first < end && text[end - 1] == ';' && text[first] != '.';
      at = end + 1;
    }
    return count;
  }
  return 0;
}

double bytes_of(const std::vector<array>& arrays) {
  double bytes = 0;
  for (const array& a : arrays) bytes += static_cast<double>(a.data_size() * a.itemsize());
  return bytes;
}

// Whether this process has a simulated GPU now.
bool install_gpu() {
  exec::Runtime& runtime = exec::Runtime::get();
  if (environment::settings().gpu == environment::Gpu::simulated) return true;
  try {
    auto gpu = exec::make_simulated_gpu(runtime.cpu_device());
    gpu->backend = &kernels::metal::MetalBackend::get();
    gpu->target = runtime.cpu_device().target;
    runtime.install_gpu(std::move(gpu));
    return true;
  } catch (const std::logic_error&) {
    return false;  // it has streams on another one
  }
}

void measure(Report& report, const OpCase& one) {
  std::vector<array> inputs = one.inputs;
  eval(inputs);
  auto layer = std::make_shared<Instrumented>();
  jit::KernelChecker::Traffic traffic;
  exec::layers::add(layer);
  jit::KernelChecker::traffic.store(&traffic);
  std::vector<array> outputs;
  std::string problem;
  try {
    outputs = one.op(inputs);
    eval(outputs);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  synchronize();
  jit::KernelChecker::traffic.store(nullptr);
  exec::layers::remove(layer.get());
  if (!problem.empty() || !layer->on_host.empty()) {
    report.say(std::string(one.name) +
               (problem.empty() ? ": the host computes " + layer->on_host : ": " + problem));
    return;
  }
  std::string note;
  for (const auto& [entry, times] : layer->dispatched) {
    note += (note.empty() ? "" : ", ") + entry + (times > 1 ? " × " + std::to_string(times) : "") +
            ": " + std::to_string(instructions_of(entry)) + " instructions";
  }
  const auto moved = static_cast<double>(traffic.read.load() + traffic.written.load());
  report.add({.name = one.name,
              .value = moved / 1024,
              .unit = "KiB",
              .reference = "each array once",
              .reference_value = (bytes_of(inputs) + bytes_of(outputs)) / 1024,
              .bar = one.moves_once ? std::optional(ratio_at_most(1.1)) : std::nullopt,
              .note = note});
}

}  // namespace

void run_gpu_kernels(Report& report, const Options& options) {
  if (!exec::cpu_target().has_compiler())
    return report.say("gpu-kernels needs the kernel compiler");
  if (!install_gpu()) return report.say("gpu-kernels runs alone, or with HOLDFAST_GPU=simulated");
  const std::vector<OpCase> cases = op_cases();
  const Device before = default_device();
  set_default_device(Device::gpu);
  for (const OpCase& one : cases) {
    if (options.wants(one.name)) measure(report, one);
  }
  set_default_device(before);
}

}  // namespace holdfast::bench
