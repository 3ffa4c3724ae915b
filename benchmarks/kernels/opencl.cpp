#include "benchmarks/kernels/opencl.h"

#if HOLDFAST_BENCH_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <holdfast/ops.h>

#include <stdexcept>
#endif

namespace holdfast::bench {

#if !HOLDFAST_BENCH_OPENCL

std::unique_ptr<OpenCl> OpenCl::find(std::string& why) {
  why = "built without OpenCL: apt-get install ocl-icd-opencl-dev pocl-opencl-icd, and build again";
  return nullptr;
}

#else

namespace {

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  throw std::runtime_error(std::string("[bench kernels] OpenCL: ") + what + " failed with " +
                           std::to_string(status));
}

// An OpenCL object with its release function.
template <class T, cl_int (*release)(T)>
class Owned {
 public:
  Owned(T object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~Owned() {
    if (object_) release(object_);
  }
  operator T() const { return object_; }
  const T* address() const { return &object_; }

 private:
  T object_;
};
using Context = Owned<cl_context, clReleaseContext>;
using CommandQueue = Owned<cl_command_queue, clReleaseCommandQueue>;
using Program = Owned<cl_program, clReleaseProgram>;
using KernelObject = Owned<cl_kernel, clReleaseKernel>;
using Memory = Owned<cl_mem, clReleaseMemObject>;

class PreparedKernel : public OpenClKernel {
 public:
  PreparedKernel(cl_context context, cl_device_id device, cl_command_queue queue,
                 const KernelCase& kernel)
      : queue_(queue),
        case_(kernel),
        program_(build(context, device, kernel)),
        kernel_(make_kernel()) {
    cl_uint slot = 0;
    for (array input : kernel.inputs) {
      input.eval();
      cl_int status;
      buffers_.emplace_back(clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                           input.nbytes(), const_cast<char*>(input.data<char>()),
                                           &status));
      check(status, "an input");
      check(clSetKernelArg(kernel_, slot++, sizeof(cl_mem), buffers_.back().address()),
            "setting an input");
    }
    for (size_t i = 0; i < kernel.output_shapes.size(); ++i) {
      array host = zeros(kernel.output_shapes[i], kernel.output_dtypes[i]);
      host.eval();
      outputs_.push_back(host);
      cl_int status;
      buffers_.emplace_back(
          clCreateBuffer(context, CL_MEM_READ_WRITE, host.nbytes(), nullptr, &status));
      check(status, "an output");
      check(clSetKernelArg(kernel_, slot++, sizeof(cl_mem), buffers_.back().address()),
            "setting an output");
    }
  }

  void run() override {
    if (case_.atomic_outputs) {
      cl_uint zero = 0;
      for (size_t i = 0; i < outputs_.size(); ++i) {
        check(clEnqueueFillBuffer(queue_, buffers_[case_.inputs.size() + i], &zero, sizeof(zero), 0,
                                  outputs_[i].nbytes(), 0, nullptr, nullptr),
              "clearing");
      }
    }
    size_t grid[3], group[3];
    spread(case_.grid, grid);
    spread(case_.threadgroup, group);
    check(clEnqueueNDRangeKernel(queue_, kernel_, 3, nullptr, grid, group, 0, nullptr, nullptr),
          "a dispatch");
    check(clFinish(queue_), "waiting");
  }

  std::vector<array> outputs() override {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      check(
          clEnqueueReadBuffer(queue_, buffers_[case_.inputs.size() + i], CL_TRUE, 0,
                              outputs_[i].nbytes(), outputs_[i].data<char>(), 0, nullptr, nullptr),
          "reading");
    }
    return outputs_;
  }

 private:
  static void spread(std::tuple<int, int, int> sizes, size_t (&to)[3]) {
    to[0] = static_cast<size_t>(std::get<0>(sizes));
    to[1] = static_cast<size_t>(std::get<1>(sizes));
    to[2] = static_cast<size_t>(std::get<2>(sizes));
  }
  static cl_program build(cl_context context, cl_device_id device, const KernelCase& kernel) {
    const char* text = kernel.opencl.c_str();
    cl_int status;
    Program program(clCreateProgramWithSource(context, 1, &text, nullptr, &status));
    check(status, "a program");
    if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) {
      std::string log(16384, '\0');
      clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
      throw std::runtime_error(std::string("[bench kernels] ") + kernel.name +
                               " in OpenCL: " + log.c_str());
    }
    clRetainProgram(program);
    return program;
  }
  cl_kernel make_kernel() {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program_, "run", &status);
    check(status, "a kernel");
    return kernel;
  }

  cl_command_queue queue_;
  const KernelCase& case_;
  Program program_;
  KernelObject kernel_;
  std::vector<Memory> buffers_;
  std::vector<array> outputs_;
};

class Processor : public OpenCl {
 public:
  Processor(cl_device_id device, std::string name)
      : device_(device), name_(std::move(name)), context_(make_context()), queue_(make_queue()) {}
  const std::string& name() const override { return name_; }
  std::unique_ptr<OpenClKernel> prepare(const KernelCase& kernel) override {
    return std::make_unique<PreparedKernel>(context_, device_, queue_, kernel);
  }

 private:
  cl_context make_context() {
    cl_int status;
    cl_context context = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    check(status, "a context");
    return context;
  }
  cl_command_queue make_queue() {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context_, device_, 0, &status);
    check(status, "a queue");
    return queue;
  }

  cl_device_id device_;
  std::string name_;
  Context context_;
  CommandQueue queue_;
};

}  // namespace

std::unique_ptr<OpenCl> OpenCl::find(std::string& why) {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  if (clGetPlatformIDs(8, platforms, &count) == CL_SUCCESS) {
    for (cl_uint i = 0; i < count && i < 8; ++i) {
      cl_device_id device;
      if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS)
        continue;
      char name[1024] = "";
      clGetPlatformInfo(platforms[i], CL_PLATFORM_VERSION, sizeof(name) - 1, name, nullptr);
      // "OpenCL 3.0 PoCL 3.1 …": what it is built of is of no interest here.
      std::string version(name);
      size_t end = version.find_first_of(" +", version.find("PoCL ") + 5);
      return std::make_unique<Processor>(device, version.substr(0, end));
    }
  }
  why = "no OpenCL device on the processor: apt-get install pocl-opencl-icd";
  return nullptr;
}

#endif

}  // namespace holdfast::bench
