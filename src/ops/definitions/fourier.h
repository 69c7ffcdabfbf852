// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform behind FFT2D and RFFT2D, as its definition says, one axis after the other.
// Private to src/ops.
#pragma once
#include <cmath>
#include <numbers>

#include "ops/definitions/window.h"

namespace tosaic::tosa {

struct Complex {
  std::vector<double> real, imag;
};

// In place, over `count` signals of `size` elements: element i of signal s is at
// s / stride * size * stride + s % stride + i * stride. sign: -1 forward, 1 inverse (not divided by size).
inline void transform(Complex& x, std::int64_t count, std::int64_t size, std::int64_t stride, double sign) {
  // exp(sign * 2 pi i k / size), exact at the quarter turns: real signals keep exactly real sums.
  std::vector<double> cosine(static_cast<std::size_t>(size)), sine(cosine.size());
  for (std::int64_t k = 0; k < size; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    const bool quarter = 4 * k % size == 0;
    cosine[static_cast<std::size_t>(k)] = quarter ? std::round(std::cos(angle)) : std::cos(angle);
    sine[static_cast<std::size_t>(k)] = sign * (quarter ? std::round(std::sin(angle)) : std::sin(angle));
  }
  Complex line{std::vector<double>(cosine.size()), std::vector<double>(cosine.size())};
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t first = s / stride * size * stride + s % stride;
    for (std::int64_t o = 0; o < size; ++o) {
      double real = 0, imag = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<std::size_t>(first + i * stride);
        const auto k = static_cast<std::size_t>(o * i % size);
        real += x.real[at] * cosine[k] - x.imag[at] * sine[k];
        imag += x.imag[at] * cosine[k] + x.real[at] * sine[k];
      }
      line.real[static_cast<std::size_t>(o)] = real;
      line.imag[static_cast<std::size_t>(o)] = imag;
    }
    for (std::int64_t o = 0; o < size; ++o) {
      x.real[static_cast<std::size_t>(first + o * stride)] = line.real[static_cast<std::size_t>(o)];
      x.imag[static_cast<std::size_t>(first + o * stride)] = line.imag[static_cast<std::size_t>(o)];
    }
  }
}

// [N, H, W]: rows, then columns.
inline void transform_planes(Complex& x, const Shape& shape, double sign) {
  transform(x, shape.size(0) * shape.size(1), shape.size(2), 1, sign);
  transform(x, shape.size(0) * shape.size(2), shape.size(1), shape.size(2), sign);
}

// "<op>.power-of-two" for H and W of [N, H, W].
inline Check check_powers_of_two(const View& view) {
  for (int i : {1, 2}) {
    const std::int64_t size = view.in(0).shape.size(i);
    if (size < 1 || (size & (size - 1)) != 0)
      return broken(fmt::format("{}.power-of-two", view.node().op.base()), "size {} is no power of two", size);
  }
  return std::nullopt;
}
inline Check level_fourier(const View& view, const Level& level) {
  for (int i : {1, 2})
    if (view.in(0).shape.size(i) > level.max_kernel)
      return broken(fmt::format("{}.level-kernel", view.node().op.base()), "size {} exceeds the level's {}",
                    view.in(0).shape.size(i), level.max_kernel);
  return std::nullopt;
}

}  // namespace tosaic::tosa
