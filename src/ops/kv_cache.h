// Checks that the ops on caches of keys and values share.
#pragma once

#include <holdfast/array.h>
#include <holdfast/lm_ops.h>

#include "kernels/plan/kv_cache.h"

namespace holdfast {

// std::invalid_argument, in the name of `op`, for a format that there is not.
kernels::KvRows checked_format(const char* op, const char* side, const fast::KvFormat& format);
struct KvPools {
  int blocks, heads, block_size;
};
// Of pools that fit each other and the scheme.
KvPools checked_pools(const char* op, const array& key_pool, const array& value_pool,
                      const fast::KvScheme& scheme);
// float32, float16 or bfloat16.
void check_small_float(const char* op, const char* name, const array& a);
// The array as int32, of integers.
array checked_indices(const char* op, const char* name, const array& a, StreamOrDevice s);

}  // namespace holdfast
