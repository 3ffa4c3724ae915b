// The transformer of examples/transformer once more, in loops over doubles, its gradients derived
// by hand: what training by transforms is compared with.
#pragma once

#include <cmath>
#include <vector>

#include "examples/transformer/model.h"

namespace by_hand {

using Values = std::vector<double>;  // a matrix, row after row

// y = x * w, rows of x by columns of w.
inline Values product(const Values& x, const Values& w, int rows, int inner, int columns) {
  Values y(static_cast<size_t>(rows * columns), 0.0);
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < inner; ++k) {
      for (int c = 0; c < columns; ++c) {
        y[static_cast<size_t>(r * columns + c)] +=
            x[static_cast<size_t>(r * inner + k)] * w[static_cast<size_t>(k * columns + c)];
      }
    }
  }
  return y;
}

// Adds the gradients of a product to dx and dw.
inline void product_back(const Values& x, const Values& w, const Values& dy, int rows, int inner,
                         int columns, Values& dx, Values& dw) {
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < inner; ++k) {
      for (int c = 0; c < columns; ++c) {
        double g = dy[static_cast<size_t>(r * columns + c)];
        dx[static_cast<size_t>(r * inner + k)] += g * w[static_cast<size_t>(k * columns + c)];
        dw[static_cast<size_t>(k * columns + c)] += g * x[static_cast<size_t>(r * inner + k)];
      }
    }
  }
}

inline double inverse_size(const double* row, int width) {
  double squares = 0;
  for (int i = 0; i < width; ++i) squares += row[i] * row[i];
  return 1 / std::sqrt(squares / width + 1e-5);
}

inline Values norm(const Values& x, const Values& weight, int rows, int width) {
  Values y(x.size());
  for (int r = 0; r < rows; ++r) {
    const double* row = &x[static_cast<size_t>(r * width)];
    double inverse = inverse_size(row, width);
    for (int i = 0; i < width; ++i) {
      y[static_cast<size_t>(r * width + i)] = row[i] * inverse * weight[static_cast<size_t>(i)];
    }
  }
  return y;
}

inline void norm_back(const Values& x, const Values& weight, const Values& dy, int rows, int width,
                      Values& dx, Values& dweight) {
  for (int r = 0; r < rows; ++r) {
    auto start = static_cast<size_t>(r * width);
    double inverse = inverse_size(&x[start], width), along = 0;
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
      along += dy[start + i] * weight[i] * x[start + i];
      dweight[i] += dy[start + i] * x[start + i] * inverse;
    }
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
      dx[start + i] +=
          inverse * (dy[start + i] * weight[i] - x[start + i] * inverse * inverse * along / width);
    }
  }
}

struct Layer {
  Values x, normed1, qkv, weights, mixed, y, normed2, inner, active;
};

class Trainer {
 public:
  Trainer(const transformer::Config& config, const std::vector<holdfast::array>& parameters)
      : c_(config) {
    for (const holdfast::array& p : parameters) {
      parameters_.emplace_back(p.data<float>(), p.data<float>() + p.size());
      means_.emplace_back(p.size(), 0.0);
      squares_.emplace_back(p.size(), 0.0);
    }
  }

  // One step of Adam; the loss before it.
  double step(const std::vector<int>& tokens, const std::vector<int>& next, double rate) {
    gradients_.clear();
    for (const Values& p : parameters_) gradients_.emplace_back(p.size(), 0.0);
    double loss = 0;
    auto sequences = static_cast<int>(tokens.size()) / c_.context;
    for (int b = 0; b < sequences; ++b) {
      loss += sequence(&tokens[static_cast<size_t>(b * c_.context)],
                       &next[static_cast<size_t>(b * c_.context)],
                       1.0 / static_cast<double>(tokens.size()));
    }
    ++steps_;
    constexpr double beta1 = 0.9, beta2 = 0.99;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      for (size_t i = 0; i < parameters_[p].size(); ++i) {
        double g = gradients_[p][i];
        means_[p][i] = means_[p][i] * beta1 + g * (1 - beta1);
        squares_[p][i] = squares_[p][i] * beta2 + g * g * (1 - beta2);
        parameters_[p][i] -= rate * means_[p][i] / (1 - std::pow(beta1, steps_)) /
                             (std::sqrt(squares_[p][i] / (1 - std::pow(beta2, steps_))) + 1e-8);
      }
    }
    return loss;
  }
  const std::vector<Values>& gradients() const { return gradients_; }

 private:
  int size() const { return c_.width / c_.heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size())); }
  // Element k of a head's query (0), key (1) or value (2) of a token.
  template <class V>
  auto& at(V& qkv, int token, int which, int head, int k) const {
    return qkv[static_cast<size_t>(token * 3 * c_.width + which * c_.width + head * size() + k)];
  }

  // The loss of one sequence, times `share`; adds its gradients.
  double sequence(const int* tokens, const int* next, double share) {
    int t = c_.context, d = c_.width, v = c_.vocabulary;
    Values x(static_cast<size_t>(t * d));
    for (int i = 0; i < t; ++i) {
      for (int k = 0; k < d; ++k) {
        x[static_cast<size_t>(i * d + k)] = parameters_[0][static_cast<size_t>(tokens[i] * d + k)] +
                                            parameters_[1][static_cast<size_t>(i * d + k)];
      }
    }
    std::vector<Layer> layers;
    for (int i = 0; i < c_.layers; ++i) x = forward(layers.emplace_back(), x, i);
    size_t last = transformer::layer_start(c_.layers);
    Values normed = norm(x, parameters_[last], t, d);
    Values scores = product(normed, parameters_[last + 1], t, d, v);

    double loss = 0;
    for (int i = 0; i < t; ++i) {
      double* row = &scores[static_cast<size_t>(i * v)];
      double largest = row[0], total = 0;
      for (int k = 0; k < v; ++k) largest = std::max(largest, row[k]);
      for (int k = 0; k < v; ++k) total += std::exp(row[k] - largest);
      loss += share * (std::log(total) + largest - row[next[i]]);
      // The scores become their gradients.
      for (int k = 0; k < v; ++k) {
        row[k] = share * (std::exp(row[k] - largest) / total - (k == next[i] ? 1 : 0));
      }
    }
    Values dnormed(normed.size(), 0.0), dx(x.size(), 0.0);
    product_back(normed, parameters_[last + 1], scores, t, d, v, dnormed, gradients_[last + 1]);
    norm_back(x, parameters_[last], dnormed, t, d, dx, gradients_[last]);
    for (int i = c_.layers; i-- > 0;) dx = backward(layers[static_cast<size_t>(i)], dx, i);
    for (int i = 0; i < t; ++i) {
      for (int k = 0; k < d; ++k) {
        double g = dx[static_cast<size_t>(i * d + k)];
        gradients_[0][static_cast<size_t>(tokens[i] * d + k)] += g;
        gradients_[1][static_cast<size_t>(i * d + k)] += g;
      }
    }
    return loss;
  }

  Values forward(Layer& l, const Values& x, int index) {
    using namespace transformer;
    const Values* p = &parameters_[layer_start(index)];
    int t = c_.context, d = c_.width;
    l.x = x;
    l.normed1 = norm(x, p[norm1], t, d);
    l.qkv = product(l.normed1, p[query_key_value], t, d, 3 * d);
    l.weights.assign(static_cast<size_t>(c_.heads * t * t), 0.0);
    l.mixed.assign(static_cast<size_t>(t * d), 0.0);
    for (int h = 0; h < c_.heads; ++h) {
      for (int i = 0; i < t; ++i) {
        double* weight = &l.weights[static_cast<size_t>((h * t + i) * t)];
        double total = 0;
        for (int j = 0; j <= i; ++j) {
          double score = 0;
          for (int k = 0; k < size(); ++k) score += at(l.qkv, i, 0, h, k) * at(l.qkv, j, 1, h, k);
          total += weight[j] = std::exp(score * scale());
        }
        for (int j = 0; j <= i; ++j) {
          weight[j] /= total;
          for (int k = 0; k < size(); ++k) {
            l.mixed[static_cast<size_t>(i * d + h * size() + k)] +=
                weight[j] * at(l.qkv, j, 2, h, k);
          }
        }
      }
    }
    l.y = product(l.mixed, p[attention_out], t, d, d);
    for (size_t i = 0; i < x.size(); ++i) l.y[i] += x[i];
    l.normed2 = norm(l.y, p[norm2], t, d);
    l.inner = product(l.normed2, p[up], t, d, 4 * d);
    l.active = l.inner;
    for (double& a : l.active) a *= 0.5 * (1 + std::erf(a * M_SQRT1_2));
    Values out = product(l.active, p[down], t, 4 * d, d);
    for (size_t i = 0; i < out.size(); ++i) out[i] += l.y[i];
    return out;
  }

  Values backward(const Layer& l, const Values& dout, int index) {
    using namespace transformer;
    const Values* p = &parameters_[layer_start(index)];
    Values* g = &gradients_[layer_start(index)];
    int t = c_.context, d = c_.width;
    Values dactive(l.active.size(), 0.0), dnormed2(l.normed2.size(), 0.0), dy = dout;
    product_back(l.active, p[down], dout, t, 4 * d, d, dactive, g[down]);
    for (size_t i = 0; i < dactive.size(); ++i) {
      double a = l.inner[i];
      dactive[i] *=
          0.5 * (1 + std::erf(a * M_SQRT1_2)) + a * std::exp(-a * a / 2) / std::sqrt(2 * M_PI);
    }
    product_back(l.normed2, p[up], dactive, t, d, 4 * d, dnormed2, g[up]);
    norm_back(l.y, p[norm2], dnormed2, t, d, dy, g[norm2]);

    Values dmixed(l.mixed.size(), 0.0), dqkv(l.qkv.size(), 0.0), dnormed1(l.normed1.size(), 0.0);
    product_back(l.mixed, p[attention_out], dy, t, d, d, dmixed, g[attention_out]);
    for (int h = 0; h < c_.heads; ++h) {
      for (int i = 0; i < t; ++i) {
        const double* weight = &l.weights[static_cast<size_t>((h * t + i) * t)];
        Values dweight(static_cast<size_t>(t), 0.0);
        double along = 0;
        for (int j = 0; j <= i; ++j) {
          for (int k = 0; k < size(); ++k) {
            double dm = dmixed[static_cast<size_t>(i * d + h * size() + k)];
            dweight[static_cast<size_t>(j)] += dm * at(l.qkv, j, 2, h, k);
            at(dqkv, j, 2, h, k) += dm * weight[j];
          }
          along += dweight[static_cast<size_t>(j)] * weight[j];
        }
        for (int j = 0; j <= i; ++j) {
          double dscore = weight[j] * (dweight[static_cast<size_t>(j)] - along) * scale();
          for (int k = 0; k < size(); ++k) {
            at(dqkv, i, 0, h, k) += dscore * at(l.qkv, j, 1, h, k);
            at(dqkv, j, 1, h, k) += dscore * at(l.qkv, i, 0, h, k);
          }
        }
      }
    }
    product_back(l.normed1, p[query_key_value], dqkv, t, d, 3 * d, dnormed1, g[query_key_value]);
    norm_back(l.x, p[norm1], dnormed1, t, d, dy, g[norm1]);
    return dy;
  }

  transformer::Config c_;
  std::vector<Values> parameters_, means_, squares_, gradients_;
  int steps_ = 0;
};

}  // namespace by_hand
