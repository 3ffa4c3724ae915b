// Trains a network of one hidden layer on a spiral, with gradients by hand.
#include "mlx/mlx.h"

#include "check.h"

namespace mx = mlx::core;

int main() {
  int points = 256, hidden = 32;
  mx::random::seed(7);
  mx::array radius = mx::random::uniform({points, 1});
  mx::array side =
      mx::astype(mx::less(mx::random::uniform({points, 1}), mx::array(0.5f)), mx::float32);
  mx::array angle = radius * 4.0f + side * 3.1415926f;
  mx::array x = mx::concatenate({radius * mx::cos(angle), radius * mx::sin(angle)}, 1);
  mx::array y = side;

  mx::array w1 = mx::random::normal({2, hidden});
  mx::array b1 = mx::zeros({hidden});
  mx::array w2 = mx::random::normal({hidden, 1}) * 0.1f;
  mx::array b2 = mx::zeros({1});

  float rate = 0.5f, first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    mx::array h = mx::tanh(mx::matmul(x, w1) + b1);
    mx::array p = mx::sigmoid(mx::matmul(h, w2) + b2);
    mx::array loss = mx::mean(mx::square(p - y));

    mx::array dp = 2.0f * (p - y) * p * (1.0f - p) / static_cast<float>(points);
    mx::array dw2 = mx::matmul(mx::transpose(h), dp);
    mx::array db2 = mx::sum(dp, 0);
    mx::array dh = mx::matmul(dp, mx::transpose(w2)) * (1.0f - mx::square(h));
    mx::array dw1 = mx::matmul(mx::transpose(x), dh);
    mx::array db1 = mx::sum(dh, 0);

    w1 = w1 - rate * dw1;
    b1 = b1 - rate * db1;
    w2 = w2 - rate * dw2;
    b2 = b2 - rate * db2;
    mx::eval(w1, b1, w2, b2, loss);
    last = loss.item<float>();
    if (step == 0) first = last;
  }
  std::cout << "loss " << first << " -> " << last << std::endl;
  CHECK(last < 0.75f * first);
}
