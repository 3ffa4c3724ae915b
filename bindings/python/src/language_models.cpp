// holdfast.core.fast: ops of language models that serve many sequences (lm_ops.h).
#include <holdfast/lm_ops.h>

#include "arguments.h"
#include "array_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

uint64_t seed_at(Arguments& a, int place) { return static_cast<uint64_t>(a.size(place)); }

// The scheme of two parameters, its name and the seed, for rows of `dims` numbers.
fast::KvScheme scheme_at(Arguments& a, int place, int dims) {
  return fast::KvScheme::named(a.text(place), dims, seed_at(a, place + 1));
}
int last_dimension(const array& a) { return a.ndim() > 0 ? a.shape(-1) : 0; }

// Of four parameters in a row.
fast::Sequences sequences_at(Arguments& a, int place) {
  return {a.optional_array(place), a.optional_array(place + 1), a.optional_array(place + 2),
          a.optional_array(place + 3)};
}

#define SEQUENCES "starts=None, slots=None, fresh=None, mask=None, stream=None)"
constexpr Row rows[] = {
    {"kv_pools",
     "(blocks, heads, dims, block_size, *, scheme='dense', seed=42, dtype=None, stream=None)",
     "The memory of a cache of keys and values, zeros: keys (blocks, heads, width, block_size) and "
     "values (blocks, heads, block_size, width).",
     "[a.shape for a in mx.fast.kv_pools(2, 1, 64, 16, scheme=\"turbo4v2\")]",
     [](Arguments& a) {
       return give_tuple(fast::kv_pools(scheme_at(a, 4, a.integer(2)), a.integer(0), a.integer(1),
                                        a.integer(3), a.dtype(6, bfloat16), a.stream(7)));
     }},
    {"kv_write",
     "(key_pool, value_pool, keys, values, slots, *, scheme='dense', seed=42, stream=None)",
     "The pools with rows in their slots; in place when nothing else holds the pools.",
     "mx.fast.kv_write(*mx.fast.kv_pools(2, 1, 64, 16), mx.ones((1, 1, 64)), mx.ones((1, 1, 64)), "
     "mx.array([17]))[1][1, 0, 1, :2]",
     [](Arguments& a) {
       const array keys = a.array_at(2);
       return give_tuple(fast::kv_write(a.array_at(0), a.array_at(1), keys, a.array_at(3),
                                        a.array_at(4), scheme_at(a, 5, last_dimension(keys)),
                                        a.stream(7)));
     }},
    {"kv_encode", "(x, *, bits, seed=42, stream=None)",
     "Rows as a cache of `bits` bits stores them, in words.",
     "mx.fast.kv_encode(mx.ones((2, 64)), bits=4).shape",
     [](Arguments& a) {
       const array x = a.array_at(0);
       return give(
           fast::kv_encode(x, {last_dimension(x), a.integer(1), seed_at(a, 2)}, a.stream(3)));
     }},
    {"kv_decode", "(rows, dims, *, bits, seed=42, dtype=None, stream=None)",
     "The numbers of stored rows.",
     "mx.fast.kv_decode(mx.fast.kv_encode(mx.arange(64.0), bits=8), 64, bits=8)[:3]",
     [](Arguments& a) {
       return give(fast::kv_decode(a.array_at(0), {a.integer(1), a.integer(2), seed_at(a, 3)},
                                   a.dtype(4, float32), a.stream(5)));
     }},
    {"paged_attention",
     "(queries, key_pool, value_pool, block_table, lengths, *, scale, scheme='dense', seed=42, "
     "starts=None, window=0, sinks=None, stream=None)",
     "Causal attention of the last tokens of each sequence to all that are in its cache.",
     "mx.fast.paged_attention(mx.ones((1, 2, 64)), *mx.fast.kv_pools(2, 1, 64, 16), "
     "mx.array([[1]]), mx.array([5]), scale=0.125).shape",
     [](Arguments& a) {
       const array queries = a.array_at(0);
       return give(fast::paged_attention(
           queries, a.array_at(1), a.array_at(2), a.array_at(3), a.array_at(4),
           static_cast<float>(a.real(5)), scheme_at(a, 6, last_dimension(queries)),
           a.optional_array(8), a.integer(9), a.optional_array(10), a.stream(11)));
     }},
    {"gated_delta", "(queries, keys, values, decay, beta, states, *, " SEQUENCES,
     "The gated delta rule: S *= decay; S += beta (v - S k) k^T; y = S q. Gives y and the states, "
     "which are updated in place when nothing else holds them.",
     "mx.fast.gated_delta(mx.ones((1, 1, 1, 2)), mx.ones((1, 1, 1, 2)), mx.ones((1, 1, 1, 1)), "
     "mx.ones((1, 1, 1)), mx.ones((1, 1, 1)), mx.zeros((1, 1, 1, 2)))",
     [](Arguments& a) {
       return give_tuple(fast::gated_delta(a.array_at(0), a.array_at(1), a.array_at(2),
                                           a.array_at(3), a.array_at(4), a.array_at(5),
                                           sequences_at(a, 6), a.stream(10)));
     }},
    {"causal_conv", "(x, weight, states, bias=None, *, " SEQUENCES,
     "A causal convolution of each channel by itself, with a memory of the last inputs. Gives y "
     "and the states, which are updated in place when nothing else holds them.",
     "mx.fast.causal_conv(mx.ones((1, 2, 1)), mx.ones((1, 2)), mx.zeros((1, 1, 1)))",
     [](Arguments& a) {
       return give_tuple(fast::causal_conv(a.array_at(0), a.array_at(1), a.array_at(2),
                                           a.optional_array(3), sequences_at(a, 4), a.stream(8)));
     }},
};
#undef SEQUENCES

}  // namespace

void add_language_models(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
