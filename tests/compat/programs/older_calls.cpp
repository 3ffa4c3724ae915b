// Calls as programs write them that were made with other versions of the headers, or rely on their
// conversions. Standard headers are those that mlx.h brings in.
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

namespace {

float real_part(float value) { return value; }

void numbers() {
  mx::complex64_t z(3, 4);
  float real = z;
  CHECK(real == 3 && real_part(z) == 3 && static_cast<double>(z) == 3);
  // An operator never drops the imaginary part.
  mx::complex64_t doubled = z * 2;
  CHECK(doubled == mx::complex64_t(6, 8));
  CHECK(2.0 * z == doubled && z + mx::float16_t(3) == mx::complex64_t(6, 4));
  CHECK(z != 3.0f && mx::complex64_t(3, 0) == 3 && z > 3 && !(z < 3));
  CHECK(mx::array(z * z, mx::complex64).item<mx::complex64_t>() == mx::complex64_t(-7, 24));
  CHECK(std::abs(z) == 5);
}

void bounds() {
  mx::array key = mx::random::key(7), low = mx::array(2.0f), high = mx::array({3.0f, 4.0f});
  mx::array expected = mx::random::uniform(low, high, {5, 2}, mx::float32, key);
  CHECK(mx::array_equal(mx::random::uniform(2.0f, high, {5, 2}, mx::float32, key), expected)
            .item<bool>());
  CHECK(mx::array_equal(mx::random::uniform(2, high, {5, 2}, mx::float32, key), expected)
            .item<bool>());
  mx::array upper = mx::random::uniform(low, 5.0f, {64}, mx::float32, key);
  CHECK(mx::all(mx::logical_and(upper >= low, upper < mx::array(5.0f))).item<bool>());
  mx::array whole = mx::random::randint(mx::array({0, 10}), 20, {8, 2}, mx::int32, key);
  CHECK(whole.dtype() == mx::int32 && mx::max(whole).item<int>() < 20);
  CHECK(mx::random::randint(0, mx::array(3), {4}, mx::int32, key).size() == 4);
}

void attention() {
  mx::array q = mx::random::normal({1, 2, 4, 8}), k = mx::random::normal({1, 2, 6, 8});
  mx::Stream stream = mx::default_stream(mx::default_device());
  mx::array expected = mx::fast::scaled_dot_product_attention(q, k, k, 0.5f, "causal");
  for (mx::array given :
       {mx::fast::scaled_dot_product_attention(q, k, k, 0.5f, "causal", std::nullopt, std::nullopt,
                                               stream),
        mx::fast::scaled_dot_product_attention(q, k, k, 0.5f, "causal", {}, {},
                                               mx::default_device()),
        mx::fast::scaled_dot_product_attention(q, k, k, 0.5f, "causal", {}, {}, true, stream),
        mx::fast::scaled_dot_product_attention(q, k, k, 0.5f, "causal", {}, {}, true)}) {
    CHECK(mx::array_equal(given, expected).item<bool>());
  }
}

void standard_headers() {
  std::set<std::string> names{"b", "a"};
  std::mutex mutex;
  std::condition_variable changed;
  std::future<int> answer = std::async(std::launch::async, [] { return 42; });
  std::thread thread([&] {
    std::lock_guard guard(mutex);
    changed.notify_all();
  });
  thread.join();
  std::deque<int> numbers{1, 2};
  std::queue<int> waiting;
  std::ostringstream text;
  text << *names.begin();
  assert(text.str() == "a");
  CHECK(answer.get() == 42 && waiting.empty() && numbers.front() == 1);
}

}  // namespace

int main() {
  numbers();
  bounds();
  attention();
  standard_headers();
}
