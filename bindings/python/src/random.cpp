// holdfast.core.random
#include <chrono>

#include <holdfast/random.h>

#include "arguments.h"
#include "array_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

// The state of calls that name no key, one a thread. It is kept here, not in the library, so that
// programs can read and set it, and compiled functions can take it as an input.
array& state() {
  static const uint64_t first_seed =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count());
  thread_local array key = random::key(first_seed);
  return key;
}

// The key given, or the next one.
array key_at(Arguments& a, int place) {
  if (!a.is_none(place)) return a.array_at(place);
  auto [next_state, key] = random::split(state());
  state() = std::move(next_state);
  return key;
}

// "for these shapes and keys": what all distributions end with.
#define TAIL "key=None, stream=None)"
#define KEY "key=mx.random.key(7)"
constexpr Row rows[] = {
    {"seed", "(seed)", "Seeds the calling thread's sequence of keys.", "mx.random.seed(0)",
     [](Arguments& a) {
       state() = random::key(a.size(0));
       return give_none();
     }},
    {"_get_state", "()", "For the package itself.", "", [](Arguments&) { return give(state()); }},
    {"_set_state", "(key)", "For the package itself.", "",
     [](Arguments& a) {
       state() = a.array_at(0);
       return give_none();
     }},
    {"key", "(seed)", "A key made of a seed.", "mx.random.key(7)",
     [](Arguments& a) { return give(random::key(a.size(0))); }},
    {"split", "(key, num=2, stream=None)", "Independent keys, as rows.",
     "mx.random.split(mx.random.key(7), 3)",
     [](Arguments& a) { return give(random::split(a.array_at(0), a.integer(1), a.stream(2))); }},
    {"uniform", "(low=0, high=1, shape=(), dtype=None, " TAIL, "Uniform in [low, high).",
     "mx.random.uniform(0, 2, (2, 2), " KEY
     ")\nmx.random.uniform(shape=(2,), dtype=mx.float16, " KEY ")",
     [](Arguments& a) {
       return give(random::uniform(a.operand_at(0), a.operand_at(1), a.shape(2),
                                   a.dtype(3, float32), key_at(a, 4), a.stream(5)));
     }},
    {"normal", "(shape=(), dtype=None, loc=None, scale=None, " TAIL,
     "Normal, with mean loc and standard deviation scale.",
     "mx.random.normal((2, 2), " KEY ")\nmx.random.normal((3,), loc=1.0, scale=mx.array(2.0), " KEY
     ")",
     [](Arguments& a) {
       return give(random::normal(a.shape(0), a.dtype(1, float32), a.optional_array(2),
                                  a.optional_array(3), key_at(a, 4), a.stream(5)));
     }},
    {"multivariate_normal", "(mean, cov, shape=(), dtype=None, " TAIL,
     "Normal, with a vector of means and a matrix of covariances.",
     "mx.random.multivariate_normal(mx.zeros(2), mx.eye(2), (3,), " KEY ").shape",
     [](Arguments& a) {
       return give(random::multivariate_normal(a.array_at(0), a.array_at(1), a.shape(2),
                                               a.dtype(3, float32), key_at(a, 4), a.stream(5)));
     }},
    {"randint", "(low, high, shape=(), dtype=None, " TAIL, "Integers in [low, high).",
     "mx.random.randint(0, 10, (4,), " KEY ")",
     [](Arguments& a) {
       return give(random::randint(a.operand_at(0), a.operand_at(1), a.shape(2), a.dtype(3, int32),
                                   key_at(a, 4), a.stream(5)));
     }},
    {"bernoulli", "(p=0.5, shape=None, " TAIL, "True with probability p.",
     "mx.random.bernoulli(0.3, (4,), " KEY ")\nmx.random.bernoulli(mx.array([0.1, 0.9]), " KEY ")",
     [](Arguments& a) {
       array p = a.operand_at(0);
       if (a.is_none(1)) return give(random::bernoulli(p, key_at(a, 2), a.stream(3)));
       return give(random::bernoulli(p, a.shape(1), key_at(a, 2), a.stream(3)));
     }},
    {"truncated_normal", "(lower, upper, shape=None, dtype=None, " TAIL,
     "Standard normal between two limits.", "mx.random.truncated_normal(-1, 1, (4,), " KEY ")",
     [](Arguments& a) {
       array low = a.operand_at(0), high = a.operand_at(1);
       Dtype dtype = a.dtype(3, float32);
       if (a.is_none(2)) {
         return give(random::truncated_normal(low, high, dtype, key_at(a, 4), a.stream(5)));
       }
       return give(
           random::truncated_normal(low, high, a.shape(2), dtype, key_at(a, 4), a.stream(5)));
     }},
    {"gumbel", "(shape=(), dtype=None, " TAIL, "-log(-log(uniform)).",
     "mx.random.gumbel((3,), " KEY ")",
     [](Arguments& a) {
       return give(random::gumbel(a.shape(0), a.dtype(1, float32), key_at(a, 2), a.stream(3)));
     }},
    {"laplace", "(shape=(), dtype=None, loc=0.0, scale=1.0, " TAIL, "The Laplace distribution.",
     "mx.random.laplace((3,), " KEY ")",
     [](Arguments& a) {
       return give(random::laplace(a.shape(0), a.dtype(1, float32), static_cast<float>(a.real(2)),
                                   static_cast<float>(a.real(3)), key_at(a, 4), a.stream(5)));
     }},
    {"categorical", "(logits, axis=-1, shape=None, num_samples=None, " TAIL,
     "Indices along an axis, with the probabilities softmax(logits).",
     "mx.random.categorical(mx.array([[0.0, 5.0], [5.0, 0.0]]), " KEY ")\n"
     "mx.random.categorical(mx.zeros((2, 4)), num_samples=3, " KEY ")",
     [](Arguments& a) {
       array logits = a.array_at(0);
       int axis = a.integer(1);
       if (!a.is_none(2) && !a.is_none(3)) {
         raise(PyExc_ValueError, "[categorical] expected shape or num_samples, got both");
       }
       if (!a.is_none(2)) {
         return give(random::categorical(logits, axis, a.shape(2), key_at(a, 4), a.stream(5)));
       }
       if (!a.is_none(3)) {
         return give(random::categorical(logits, axis, a.integer(3), key_at(a, 4), a.stream(5)));
       }
       return give(random::categorical(logits, axis, key_at(a, 4), a.stream(5)));
     }},
    {"permutation", "(x, axis=0, " TAIL,
     "The slices of an array, or the numbers below an int, in random order.",
     "mx.random.permutation(5, " KEY ")\nmx.random.permutation(mx.arange(4), " KEY ")",
     [](Arguments& a) {
       if (is_integer(a.object(0)) && !is_array(a.object(0))) {
         return give(random::permutation(a.integer(0), key_at(a, 2), a.stream(3)));
       }
       return give(random::permutation(a.array_at(0), a.integer(1), key_at(a, 2), a.stream(3)));
     }},
};
#undef TAIL
#undef KEY

}  // namespace

void add_random(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
