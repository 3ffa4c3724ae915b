// A device that writes an array whose memory the host has works on a copy: what goes wrong there
// goes wrong with the array, and with all that reads the copy.
#include <doctest/doctest.h>

#include <holdfast/holdfast.h>

#include "base/fault.h"
#include "devices/gpu.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

bool has_failed(array& a) {
  try {
    a.wait();
    (void)std::as_const(a).data<int32_t>();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a failed write of the gpu's copy fails the array, and what reads the copy") {
  install_gpu();
  const Stream s = default_stream(Device::gpu);
  for (uint64_t k = 1; k <= 4; ++k) {
    CAPTURE(k);
    // Outside of the op: memory of the host.
    allocator::Buffer memory = allocator::malloc(16 * sizeof(int32_t));
    array written = make_op("Written", s, {}, {16},
                            [memory](Encoder& encoder, const auto&, std::vector<array>& out) {
                              const int32_t seven = 7;
                              out[0].set_data(memory);
                              encoder.fill(out[0], &seven);
                            });
    array read = make_op("Read", s, {written}, {16},
                         [](Encoder& encoder, const std::vector<array>& in, auto& out) {
                           encoder.allocate(out[0]);
                           encoder.copy(in[0], out[0]);
                         });
    // The copy to the gpu, the fill, the copy of what was filled.
    fault::arm(fault::Point::dispatch, k);
    async_eval(written, read);
    exec::Runtime::get().drain();
    const uint64_t commands = fault::visits(fault::Point::dispatch);
    fault::disarm();
    CHECK(commands == (k <= 2 ? 2 : 3));
    CHECK(has_failed(written) == (k <= 2));
    CHECK(has_failed(read) == (k <= 3));
    if (k > 2) CHECK(values(written)[15] == 7);
    if (k > 3) CHECK(values(read)[15] == 7);
    for (const Stream& stream : get_streams()) queue_of(stream).forget_failures();
  }
}
