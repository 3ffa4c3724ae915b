#include <doctest/doctest.h>

#include <sstream>

#include <holdfast/holdfast.h>

#include <holdfast/transforms_impl.h>
#include "graph/node.h"
#include "support/inspection.h"
#include "support/test_ops.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("stream: unknown streams and devices are errors") {
  CHECK_THROWS_AS(synchronize(Stream(-1, Device::cpu)), std::invalid_argument);
  CHECK_THROWS_AS(synchronize(Stream(1 << 30, Device::cpu)), std::invalid_argument);
  Stream s = default_stream(Device::cpu);
  CHECK_THROWS_AS(synchronize(Stream(s.index, Device::gpu)), std::invalid_argument);
  CHECK_THROWS_AS(new_stream(Device(Device::cpu, 1)), std::invalid_argument);
  CHECK_THROWS_AS(set_default_device(Device(Device::gpu, 3)), std::invalid_argument);
  CHECK_THROWS_AS(StreamContext(StreamOrDevice{}), std::runtime_error);
}

TEST_CASE("stream: a stream of one device with the name of another, and other devices, in words") {
  auto message_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const Stream s = default_stream(Device::cpu);
  const std::string number = std::to_string(s.index);
  CHECK(message_of([&] { synchronize(Stream(s.index, Device::gpu)); }) ==
        "[stream] expected a stream of the gpu, got stream " + number + ", which is of the cpu");
  const std::string of_op =
      message_of([&] { eval(add(array(1.0f), array(2.0f), Stream(s.index, Device::gpu))); });
  CHECK(of_op.find("expected a stream of the gpu") != std::string::npos);
  CHECK(of_op.find("is of the cpu") != std::string::npos);
  CHECK(message_of([&] { synchronize(Stream(s.index, Device(Device::cpu, 1))); }) ==
        "[stream] expected a stream of the cpu with index 1, got stream " + number +
            ", which is of the cpu");
  CHECK(message_of([] { ones({2}, float32, Device(Device::gpu, 7)); }) ==
        "[default_stream] there is one gpu device, got index 7");
  CHECK(message_of([] { StreamContext context(Device(Device::cpu, 1)); }) ==
        "[default_stream] there is one cpu device, got index 1");
}

TEST_CASE("stream: devices, contexts, printing") {
  std::ostringstream text;
  text << Device(Device::gpu) << " " << Stream(3, Device::cpu);
  CHECK(text.str() == "Device(gpu, 0) Stream(Device(cpu, 0), 3)");
  Device before = default_device();
  {
    StreamContext context(Device::gpu);
    CHECK(default_device() == Device::gpu);
    CHECK(to_stream({}).device == Device::gpu);
  }
  CHECK(default_device() == before);
  CHECK(to_stream(Device::cpu) == default_stream(Device::cpu));
}

TEST_CASE("stream: an event that is not valid counts as signaled") {
  Event event;
  CHECK(!event.valid());
  CHECK(event.is_signaled());
  event.wait();
  CHECK(event.wait_for(std::chrono::nanoseconds(0)));
  event.wait(default_stream(Device::cpu));
}

TEST_CASE("stream: giving the streams of a thread back") {
  Stream mine = default_stream(Device::cpu);
  size_t queues = exec::Runtime::get().queue_count();
  clear_streams();
  Stream again = default_stream(Device::cpu);
  CHECK(exec::Runtime::get().queue_count() == queues);
  CHECK(values(affine(counting(4), 1, 1, mine))[0] == 1);  // its index stays valid
  CHECK(values(affine(counting(4), 1, 1, again))[0] == 1);
}

TEST_CASE("stream: the encoder is there only while an op is encoded") {
  CHECK_THROWS_AS(Encoder::of(default_stream(Device::cpu)), std::logic_error);
}

TEST_CASE("eval: refused while an op is encoded, which holds its stream") {
  Stream s = default_stream(Device::cpu), other = new_stream(Device::cpu);
  array inner = affine(counting(4), 1, 1, other);
  bool is_eager = true;
  array x = with_encode_hook(
      counting(4),
      [&] {
        if (is_eager) eval(inner);
      },
      s);
  CHECK_THROWS_WITH_AS(x.eval(), doctest::Contains("called while a primitive is being encoded"),
                       std::logic_error);
  is_eager = false;
  CHECK(values(x)[1] == 2);
  CHECK(values(inner)[1] == 2);
}

TEST_CASE("donation: never while the graph is kept") {
  Stream s = default_stream(Device::cpu);
  auto build = [&](bool is_tracer) {
    array x = affine(counting(8), 1, 0, s);
    x.set_tracer(is_tracer);
    return affine_in_place(x, 2, 0, s);
  };
  auto first_input = [](const array& a) { return values(a.inputs().at(0)); };
  {
    detail::RetainGraph retain;
    array y = build(false);
    y.eval();
    CHECK(values(y)[3] == 6);
    CHECK(first_input(y)[3] == 3);
    array z = add(affine(counting(8), 1, 0, s), array(1), s);
    z.eval();
    CHECK(first_input(z)[3] == 3);
  }
  {
    detail::InTracing tracing;
    array y = build(true);
    y.eval();
    CHECK(values(y)[3] == 6);
    CHECK(first_input(y)[3] == 3);
    array x = affine(counting(8), 1, 0, s);
    x.set_tracer(true);
    array z = add(x, array(1), s);
    x = counting(1);
    z.eval();
    CHECK(first_input(z)[3] == 3);
  }
}
