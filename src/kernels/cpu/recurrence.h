// h[i] = factors[i] * h[i - 1] + terms[i] along lines of a dense array.
#pragma once

#include <cstdint>

#include <holdfast/dtype.h>

namespace holdfast::kernels::cpu {

// Lines [begin, end), each of `length` elements that are `inner` apart; the first line of an outer
// index starts `inner * length` elements after that of the one before. h[0] = terms[0]; with
// `reverse`, from the end. The dtype is floating-point or complex; half types are rounded once per
// element, what is carried is wider.
void run_recurrence(Dtype::Val dtype, const void* factors, const void* terms, void* output,
                    int64_t length, int64_t inner, bool reverse, int64_t begin, int64_t end);

}  // namespace holdfast::kernels::cpu
