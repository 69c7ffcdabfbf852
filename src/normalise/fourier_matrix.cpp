// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <vector>

#include "ir/tensor.h"
#include "normalise/fourier_pairs.h"

namespace tosaic::pairs {
namespace {

// A product with more weights than this would be the largest part of any program that it stands in.
constexpr std::int64_t most_weights = std::int64_t{1} << 25;

struct Turn {
  double cos, sin;
};
// exp(sign i 2 pi k t / length); whole turns are left out first, so that the angle is small and quarters are exact.
Turn turn(const Matrix& m, std::int64_t k, std::int64_t t) {
  const std::int64_t rest = k * t % m.length;
  if (4 * rest % m.length == 0) {
    const std::int64_t quarter = 4 * rest / m.length;
    return {quarter == 0 ? 1.0 : quarter == 2 ? -1.0 : 0.0, m.sign * (quarter == 1 ? 1.0 : quarter == 3 ? -1.0 : 0.0)};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(rest) / static_cast<double>(m.length);
  return {std::cos(angle), m.sign * std::sin(angle)};
}

Val matrix(Builder& b, const Matrix& m, std::int64_t outs, std::int64_t ins,
           void (*fill)(const Matrix&, std::int64_t k, std::int64_t t, Turn, float* at, std::int64_t row)) {
  if (m.length <= 0 || m.rows <= 0 || m.columns <= 0) b.refuse("aten.fft.length", "a transform of no elements");
  if (m.length > most_weights || m.rows > most_weights / ins / outs / m.columns)
    b.refuse("aten.fft.length", fmt::format("a transform of {} elements would be a product with {} x {} x {} constants",
                                            m.length, m.rows, m.columns, ins * outs));
  const std::int64_t rows = outs * m.columns, row = ins * m.rows;
  std::vector<float> weights(static_cast<std::size_t>(rows * row));
  for (std::int64_t k = 0; k < m.columns; ++k)
    for (std::int64_t t = 0; t < m.rows && t < m.length; ++t)  // what lies after the length does not count
      fill(m, k, t, turn(m, k, t), weights.data() + outs * k * row + ins * t, row);
  const auto* bytes = reinterpret_cast<const std::byte*>(weights.data());
  return b.constant({DType::f32, Shape{rows, row}, std::nullopt},
                    Bytes::of(std::vector<std::byte>(bytes, bytes + weights.size() * sizeof(float))));
}

float rounded(const Matrix& m, double x) { return static_cast<float>(m.factor * x); }

}  // namespace

Val from_real(Builder& b, const Matrix& m) {
  return matrix(b, m, 2, 1, [](const Matrix& of, std::int64_t, std::int64_t, Turn turn, float* at, std::int64_t row) {
    at[0] = rounded(of, turn.cos);
    at[row] = rounded(of, turn.sin);
  });
}

Val from_pairs(Builder& b, const Matrix& m) {
  return matrix(b, m, 2, 2, [](const Matrix& of, std::int64_t, std::int64_t, Turn turn, float* at, std::int64_t row) {
    at[0] = at[row + 1] = rounded(of, turn.cos);
    at[1] = rounded(of, -turn.sin);
    at[row] = rounded(of, turn.sin);
  });
}

// The other half of the spectrum is this one's conjugate: together they are twice the real part, but for what has no
// other half.
Val to_real(Builder& b, const Matrix& m) {
  return matrix(b, m, 1, 2, [](const Matrix& of, std::int64_t, std::int64_t t, Turn turn, float* at, std::int64_t) {
    if (t > of.length / 2) return;
    const double halves = t == 0 || 2 * t == of.length ? 1.0 : 2.0;
    at[0] = rounded(of, halves * turn.cos);
    at[1] = rounded(of, -halves * turn.sin);
  });
}

}  // namespace tosaic::pairs
