// How a kernel makes its command an error because of the data that it found. It has to go on
// safely: neither it nor the kernels behind it may be led outside of their arrays by what is wrong.
#include <metal_stdlib>
using namespace metal;

// As devices/error_report.h; bound with Launch::errors.
struct Errors {
  atomic_uint is_claimed;
  uint code;
  long numbers[2];
};

// The message of `code` (from 1) with two numbers. Of several reports, any one counts.
inline void report(device Errors& errors, uint code, long first = 0, long second = 0) {
  if (atomic_exchange_explicit(&errors.is_claimed, 1u, memory_order_relaxed) != 0) return;
  errors.code = code;
  errors.numbers[0] = first;
  errors.numbers[1] = second;
}
