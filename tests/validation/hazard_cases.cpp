#include <cstring>

#include "validation/cases.h"

namespace holdfast::testing {
namespace {

// An op that reads or writes bytes of a buffer that is no array.
array raw_op(const std::string& name, Stream s, allocator::Buffer raw, bool writes,
             std::vector<array> inputs = {}, int64_t begin = 0, int64_t end = 64) {
  return lone_op(
      name, s,
      [=](Encoder& encoder, array& out) {
        writes ? encoder.raw_output(raw, begin, end) : encoder.raw_input(raw, begin, end);
        encoder.output(out);
        hold(encoder, writes ? "write" : "read", raw.raw_ptr());
      },
      std::move(inputs));
}

// Two ops of one list, with nothing between them but memory: one buffer, or two that share it.
void in_one_list(bool first_writes, bool second_writes, bool aliases) {
  OwnStream s;
  alignas(64) static char memory[64];
  allocator::Buffer one = allocator::make_buffer(memory, sizeof(memory));
  allocator::Buffer other = aliases ? allocator::make_buffer(memory, sizeof(memory)) : one;
  array a = raw_op("First", s, one, first_writes);
  array b = raw_op("Second", s, other, second_writes);
  eval(a, b);
  if (aliases) allocator::release(other);
  allocator::release(one);
}

// Two streams and one buffer.
enum class Order { none, by_input, by_wait, through_third_stream, by_bytes };

void on_two_streams(bool first_writes, bool second_writes, Order order) {
  OwnStream s, t, u;
  RawBuffer raw(128);
  {
    Gate gate(s);
    array a = raw_op("First", s, raw.buffer, first_writes);
    async_eval(a);
    if (order == Order::by_wait) {
      gate.open();
      a.wait();
    }
    std::vector<array> inputs;
    if (order == Order::by_input) inputs = {a};
    if (order == Order::through_third_stream) inputs = {affine(a, 1, 1, u)};
    int64_t begin = order == Order::by_bytes ? 64 : 0;
    array b = raw_op("Second", t, raw.buffer, second_writes, inputs, begin, begin + 64);
    async_eval(b);
    gate.open();
    b.wait();
  }
  exec::Runtime::get().drain();
}

// The other stream's work has completed, but nobody knows that.
void on_two_streams_by_luck() {
  OwnStream s, t;
  RawBuffer raw(64);
  array a = raw_op("First", s, raw.buffer, true);
  async_eval(a);
  eventually([&] { return queue_of(s).device_queue().completed.load() > 0; });
  array b = raw_op("Second", t, raw.buffer, false);
  eval(b);
}

// A third stream waits for what another one did before that one waited for the write, or after.
void on_three_streams(bool is_early) {
  OwnStream s, t, u;
  RawBuffer raw(64);
  {
    Gate gate(s);
    array a = raw_op("First", s, raw.buffer, true);
    array early = affine(counting(16), 1, 1, t), late = affine(a, 1, 1, t);
    async_eval(a);
    async_eval(early);
    async_eval(late);
    array b = raw_op("Second", u, raw.buffer, false, {is_early ? early : late});
    async_eval(b);
    gate.open();
    b.wait();
  }
  exec::Runtime::get().drain();
}

// --- the host ---

enum class Wait { none, wait, eval, synchronize, poll };

void host_reads(Wait wait) {
  OwnStream s;
  array x = counting(16);
  array y = affine(x, 3, 1, s);
  async_eval(y);
  if (wait == Wait::wait) y.wait();
  if (wait == Wait::eval) y.eval();
  if (wait == Wait::synchronize) synchronize(s);
  if (wait == Wait::poll) eventually([&] { return y.is_available(); });
  (void)y.data<int32_t>();
  synchronize(s);
}

void host_reads_view(bool waits) {
  OwnStream s;
  array y = affine(counting(16), 3, 1, s);
  array view = slice(y, {4}, {8}, s);
  async_eval(view);
  if (waits) view.wait();
  (void)view.data<int32_t>();
  synchronize(s);
}

// The host waits for what another stream did before that one waited for the array, or after.
void host_reads_after_other_stream(bool is_early) {
  OwnStream s, t;
  array y = affine(counting(16), 3, 1, s);
  array early = affine(counting(16), 1, 1, t), late = affine(y, 1, 1, t);
  Gate gate(s);
  async_eval(y);
  async_eval(early);
  async_eval(late);
  if (!is_early) gate.open();
  (is_early ? early : late).wait();
  (void)y.data<int32_t>();
  gate.open();
  synchronize(s);
  synchronize(t);
}

// It has completed, as another stream that uses it finds out; the host does not.
void host_reads_by_luck(bool waits) {
  OwnStream s, t;
  array y = affine(counting(16), 3, 1, s);
  async_eval(y);
  eventually([&] { return queue_of(s).device_queue().completed.load() > 0; });
  array z = affine(y, 1, 1, t);
  async_eval(z);
  if (waits) z.wait();
  (void)y.data<int32_t>();
  synchronize(t);
}

// An array that was evaluated, and is computed into again in place.
void host_reads_donated(bool waits) {
  OwnStream s;
  array x = affine(counting(16), 1, 0, s);
  eval(x);
  array y = affine_in_place(std::move(x), 2, 0, s);
  async_eval(y);
  if (waits) y.wait();
  (void)y.data<int32_t>();
  synchronize(s);
}

// --- memory that the host writes while commands read it ---

enum class Memory { adopted, leaf, raw };

void host_writes(Memory memory, bool waits) {
  OwnStream s;
  int32_t mine[16] = {};
  RawBuffer raw(64);
  std::memset(raw.buffer.raw_ptr(), 0, 64);
  array x = memory == Memory::adopted ? array(mine, {16}, int32, [](void*) {}) : counting(16);
  int32_t* elements =
      memory == Memory::raw ? static_cast<int32_t*>(raw.buffer.raw_ptr()) : x.data<int32_t>();
  Gate gate(s);
  array y = memory == Memory::raw ? raw_op("Reads", s, raw.buffer, false) : affine(x, 3, 1, s);
  async_eval(y);
  if (waits) {
    gate.open();
    y.wait();
  }
  elements[5] = 77;
  gate.open();
  y.wait();
}

#define HAZARD(id, name, planted, clean, ...)                                       \
  {                                                                                 \
    "hazards." id, name, "hazards", [] { planted; }, [] { clean; }, { __VA_ARGS__ } \
  }

const ValidationCase cases[] = {
    HAZARD("read-after-write", "one list: two buffers over the same memory, written and read",
           in_one_list(true, false, true), in_one_list(true, false, false), {"op", "Second"},
           {"other_op", "First"}, {"bytes", "0-64"}, {"across", "list"}),
    HAZARD("write-after-read", "one list: two buffers over the same memory, read and written",
           in_one_list(false, true, true), in_one_list(false, true, false), {"op", "Second"},
           {"other_op", "First"}, {"across", "list"}),
    HAZARD("write-after-write", "one list: two buffers over the same memory, written twice",
           in_one_list(true, true, true), in_one_list(true, true, false), {"op", "Second"},
           {"other_op", "First"}, {"across", "list"}),
    HAZARD("read-after-write", "two streams: a buffer is written and read",
           on_two_streams(true, false, Order::none), on_two_streams(true, false, Order::by_input),
           {"op", "Second"}, {"other_op", "First"}, {"bytes", "0-64"}, {"across", "queues"},
           {"buffer_op", "malloc"}),
    HAZARD("write-after-read", "two streams: a buffer is read and written",
           on_two_streams(false, true, Order::none), on_two_streams(false, true, Order::by_input),
           {"op", "Second"}, {"other_op", "First"}, {"across", "queues"}),
    HAZARD("write-after-write", "two streams: a buffer is written twice",
           on_two_streams(true, true, Order::none), on_two_streams(true, true, Order::by_input),
           {"op", "Second"}, {"other_op", "First"}, {"across", "queues"}),
    HAZARD("read-after-write", "two streams: the write happens to be done, but nobody waited",
           on_two_streams_by_luck(), on_two_streams(true, false, Order::by_wait), {"op", "Second"},
           {"other_op", "First"}),
    HAZARD("read-after-write",
           "three streams: what is waited for came before the wait for the write",
           on_three_streams(true), on_three_streams(false), {"op", "Second"}, {"other_op", "First"},
           {"across", "queues"}),
    HAZARD("write-after-read", "two streams: a read that nobody waits for; a third stream does",
           on_two_streams(false, true, Order::none),
           on_two_streams(false, true, Order::through_third_stream), {"op", "Second"}),
    HAZARD("write-after-write", "two streams: the same bytes; other bytes of one buffer",
           on_two_streams(true, true, Order::none), on_two_streams(true, true, Order::by_bytes),
           {"op", "Second"}),
    HAZARD("write-after-write", "two streams: as before; two reads",
           on_two_streams(true, true, Order::none), on_two_streams(false, false, Order::none),
           {"op", "Second"}),
    HAZARD("host-read", "data() of an array that is being computed; after wait",
           host_reads(Wait::none), host_reads(Wait::wait), {"op", "host"}, {"other_op", "Affine"},
           {"other_command", "affine"}, {"bytes", "0-64"}),
    HAZARD("host-read", "as before; after eval", host_reads(Wait::none), host_reads(Wait::eval)),
    HAZARD("host-read", "as before; after synchronize", host_reads(Wait::none),
           host_reads(Wait::synchronize)),
    HAZARD("host-read", "as before; after is_available said so", host_reads(Wait::none),
           host_reads(Wait::poll)),
    HAZARD("host-read", "data() of a view of an array that is being computed",
           host_reads_view(false), host_reads_view(true), {"other_op", "Affine"},
           {"bytes", "16-32"}),
    HAZARD("host-read", "data() after a wait for what another stream did before it waited",
           host_reads_after_other_stream(true), host_reads_after_other_stream(false),
           {"other_op", "Affine"}, {"bytes", "0-64"}),
    HAZARD("host-read", "data() of an array that another stream found completed",
           host_reads_by_luck(false), host_reads_by_luck(true), {"other_op", "Affine"},
           {"bytes", "0-64"}),
    HAZARD("host-read", "data() of an array that is computed in place", host_reads_donated(false),
           host_reads_donated(true), {"other_op", "AffineInPlace"}),
    {"host-writes.input-changed",
     "adopted memory is written while an op reads it",
     "host-writes",
     [] { host_writes(Memory::adopted, false); },
     [] { host_writes(Memory::adopted, true); },
     {{"op", "host"}, {"other_op", "Affine"}, {"bytes", "0-64"}}},
    {"host-writes.input-changed",
     "an array is written through data() while an op reads it",
     "host-writes",
     [] { host_writes(Memory::leaf, false); },
     [] { host_writes(Memory::leaf, true); },
     {{"other_op", "Affine"}, {"buffer_op", "array"}}},
    {"host-writes.input-changed",
     "a buffer of allocator::malloc is written while an op reads it",
     "host-writes",
     [] { host_writes(Memory::raw, false); },
     [] { host_writes(Memory::raw, true); },
     {{"other_op", "Reads"}, {"buffer_op", "malloc"}}},
};

}  // namespace

std::span<const ValidationCase> hazard_cases() { return cases; }

}  // namespace holdfast::testing
