// The host that uses memory of the simulated GPU ends there, with a sentence that says why.
#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "devices/simulated/simulated_gpu.h"
#include "exec/runtime.h"
#include "support/child.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("child: the host uses memory of the simulated gpu") {
  if (!is_child("child: the host uses memory of the simulated gpu")) return;
  array a = add(array({1, 2, 3}), array(1), Device::gpu);
  eval(a);
  CHECK(std::as_const(a).data<int32_t>()[1] == 3);
  void* address = exec::buffer_of(a.buffer())->storage()->address;
  report(exec::is_simulated_address(address) ? "simulated" : "not simulated");
  *static_cast<volatile int32_t*>(address) = 4;
}

TEST_CASE("a stray access of the host has a name") {
  ChildResult child =
      run_child("child: the host uses memory of the simulated gpu", {"HOLDFAST_GPU=simulated"});
  CHECK(reported(child) == "simulated\n");
  CHECK(child.exit_code != 0);
  CHECK(child.output.find("[holdfast] the host used an address in the memory of the simulated "
                          "gpu") != std::string::npos);
}
