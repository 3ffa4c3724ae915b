#include "validation/cases.h"

namespace holdfast::testing {
namespace {

using Request = Ref<const exec::KernelRequest>;

// Asks one library for one kernel after the other. With `by_name` it takes kernels of one name for
// one kernel.
void ask(bool by_name, std::initializer_list<Request> requests) {
  FakeCompiler compiler;
  exec::KernelLibrary::Parts parts = compiler.parts(8);
  parts.trusts_names = by_name;
  exec::KernelLibrary library(std::move(parts));
  for (const Request& request : requests) library.get(request);
}

// A source with a generated signature, as fast::metal_kernel makes it.
Request signed_request(const std::string& name, const std::string& signature) {
  msl::KernelSource source = named_source(name, "2 1\n" + signature + "\nbody");
  source.parts = {{"signature", 4, 4 + signature.size(), true}};
  return make_ref<exec::KernelRequest>(source, exec::KernelOptions{}, FakeTarget::get());
}

Request with_constant(uint64_t bits) {
  msl::KernelSource source = named_source("gemv", "2 1");
  source.constants = {{0, "", "bool", {bits}}};
  return make_ref<exec::KernelRequest>(source, exec::KernelOptions{}, FakeTarget::get());
}

// The same kernel used twice, and one with its weights in the source.
void same_name_other_weights(bool by_name) {
  ask(by_name, {request_for("3 1\nlayer 0", "layer"), request_for("3 1\nlayer 0", "layer"),
                request_for("3 1\nlayer 1", "layer")});
}
void same_name_other_source(bool by_name) {
  ask(by_name, {request_for("1 0", "act"), request_for("-1 0", "act")});
}
void same_name_other_constant(bool by_name) { ask(by_name, {with_constant(0), with_constant(1)}); }

void other_dtype(bool by_name) {
  ask(by_name, {signed_request("k", "(const device float* x)"),
                signed_request("k", "(const device half* x)")});
}
void other_count(bool by_name) {
  ask(by_name, {signed_request("k", "(device float* y)"),
                signed_request("k", "(const device float* x, device float* y)")});
}
void other_rank(bool by_name) {
  ask(by_name,
      {signed_request("k", "(constant int& x_ndim)"), signed_request("k", "(constant float& x)")});
}

#define CACHE(id, name, run, ...)                                                      \
  {                                                                                    \
    "cache." id, name, "cache", [] { run(true); }, [] { run(false); }, { __VA_ARGS__ } \
  }

const ValidationCase cases[] = {
    CACHE("other-source", "a cache by name: the same name, other weights in the source",
          same_name_other_weights, {"kernel", "layer"}, {"other_kernel", "layer"}, {"line", "2"},
          {"source", "layer 1"}, {"other_source", "layer 0"}),
    CACHE("other-source", "a cache by name: the same name, another body", same_name_other_source,
          {"kernel", "act"}, {"line", "1"}, {"source", "-1 0"}),
    CACHE("other-source", "a cache by name: the same source, another function constant",
          same_name_other_constant, {"kernel", "gemv"}, {"line", "0"}),
    CACHE("other-signature", "a cache by name: another dtype", other_dtype, {"kernel", "k"},
          {"signature", "(const device half* x)"}, {"other_signature", "(const device float* x)"}),
    CACHE("other-signature", "a cache by name: another number of arguments", other_count,
          {"kernel", "k"}),
    CACHE("other-signature", "a cache by name: a scalar in place of an array", other_rank,
          {"kernel", "k"}),
};

}  // namespace

std::span<const ValidationCase> cache_cases() { return cases; }

}  // namespace holdfast::testing
