// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/short_sums.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace tosaic::cpu {
namespace {

constexpr std::int64_t largest_input = 1 << 15, largest_sum = std::numeric_limits<std::int32_t>::max();
// |w - zero point| <= 2^8: so many products stay below 2^30 with any weights.
constexpr std::int64_t block = 128;

}  // namespace

ShortSums::ShortSums(const ShortWeights& weights, std::span<const std::int64_t> bias) {
  const std::int64_t k = weights.k, blocks = std::max<std::int64_t>(1, (k + block - 1) / block);
  // Of the magnitudes of the weights of each column's blocks.
  std::vector<std::int64_t> sums(static_cast<std::size_t>(weights.columns * blocks), 0);
  for (std::int64_t j = 0; j < weights.columns; ++j) {
    const std::int8_t* column = weights.data + j * weights.column_stride;
    std::int64_t whole = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      std::int32_t sum = 0;
      for (std::int64_t i = b * block; i < std::min(k, (b + 1) * block); ++i)
        sum += std::abs(column[i * weights.k_stride] - weights.zero_point);
      sums[static_cast<std::size_t>(j * blocks + b)] = sum;
      whole += sum;
    }
    const std::int64_t of_bias = bias[bias.size() == 1 ? 0 : static_cast<std::size_t>(j)];
    // Biases have 48 bits, and magnitudes far less: nothing overflows.
    fit_i32_ = fit_i32_ && whole * largest_input + std::abs(of_bias) <= largest_sum;
  }
  const auto fits = [&](std::int64_t length) {  // in blocks
    for (std::int64_t j = 0; j < weights.columns; ++j)
      for (std::int64_t first = 0; first < blocks; first += length) {
        std::int64_t sum = 0;
        for (std::int64_t b = first; b < std::min(blocks, first + length); ++b)
          sum += sums[static_cast<std::size_t>(j * blocks + b)];
        if (sum * largest_input > largest_sum) return false;
      }
    return true;
  };
  std::int64_t parts = 1;
  const auto length = [&] { return (blocks + parts - 1) / parts; };
  while (length() > 1 && !fits(length())) ++parts;
  stretch_ = length() * block;
}

}  // namespace tosaic::cpu
