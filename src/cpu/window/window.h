// SPDX-License-Identifier: Apache-2.0
// The window of a convolution or pool over [N,D,H,W,C] (D is 1 for the two-dimensional ones), and the matrix of
// patches that makes a convolution a matrix product: one row per output position, its K columns in the order of
// the weights [KD,KH,KW,C].
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/definitions/tosa_op.h"

namespace tosaic::cpu {

struct Window {
  std::int64_t batch = 1, channels = 1;
  std::array<std::int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};  // depth, height, width
  std::array<std::int64_t, 3> before{0, 0, 0}, stride{1, 1, 1}, dilation{1, 1, 1};
  // A transposed convolution is an ordinary one, its kernel turned round, over an input whose elements stand
  // `spread` apart with zeros between them.
  std::array<std::int64_t, 3> spread{1, 1, 1};

  // The input index along dim d of place `at`, or -1: outside, or between two elements.
  std::int64_t index(std::size_t d, std::int64_t at) const {
    if (at < 0 || at % spread[d] != 0) return -1;
    const std::int64_t i = at / spread[d];
    return i < in[d] ? i : -1;
  }

  std::int64_t rows() const { return batch * out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t k() const { return taps() * channels; }
  std::int64_t input_elements() const { return batch * in[0] * in[1] * in[2] * channels; }
  // Every patch is one input position: the input itself is the matrix.
  bool is_matrix() const {
    constexpr std::array<std::int64_t, 3> ones{1, 1, 1};
    return taps() == 1 && in == out && stride == ones && spread == ones;
  }
};
// Of conv2d, conv3d, transpose_conv2d, depthwise_conv2d, avg_pool2d and max_pool2d nodes.
Window window_of(const Graph& graph, const Node& node);
// conv2d, conv3d and transpose_conv2d, which matrix products compute.
bool is_dense_convolution(const Node& node);
// The constant weights [OC,KD,KH,KW,IC] in the order of the patches' columns.
Bytes patch_weights(const Graph& graph, const Node& node);

// Writes patches [first, first + rows) in order. copy(from, to, count): `count` input elements from element
// `from` become elements `to`... of the patch matrix, whose rows are `row_stride` apart; fill(to, count): padding.
// Both may write past their end what the next call overwrites.
template <class Copy, class Fill>
void for_patches(const Window& w, std::int64_t first, std::int64_t rows, std::int64_t row_stride, const Copy& copy,
                 const Fill& fill) {
  const auto [kd, kh, kw] = w.kernel;
  const std::int64_t c = w.channels, plane = w.in[1] * w.in[2] * c;
  std::int64_t rest = first;
  std::int64_t ox = rest % w.out[2];
  rest /= w.out[2];
  std::int64_t oy = rest % w.out[1];
  rest /= w.out[1];
  std::int64_t oz = rest % w.out[0];
  std::int64_t n = rest / w.out[0];
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t to = r * row_stride;
    const std::int64_t x0 = ox * w.stride[2] - w.before[2];
    for (std::int64_t z = 0; z < kd; ++z) {
      const std::int64_t iz = w.index(0, oz * w.stride[0] - w.before[0] + z * w.dilation[0]);
      for (std::int64_t y = 0; y < kh; ++y) {
        const std::int64_t iy = w.index(1, oy * w.stride[1] - w.before[1] + y * w.dilation[1]);
        if (iz < 0 || iy < 0) {
          fill(to, kw * c);
          to += kw * c;
          continue;
        }
        const std::int64_t line = (n * w.in[0] + iz) * plane + iy * w.in[2] * c;
        if (w.dilation[2] == 1 && w.spread[2] == 1) {
          const std::int64_t left = std::clamp<std::int64_t>(-x0, 0, kw);
          const std::int64_t right = std::clamp<std::int64_t>(w.in[2] - x0, left, kw);
          if (left > 0) fill(to, left * c);
          if (right > left) copy(line + (x0 + left) * c, to + left * c, (right - left) * c);
          if (right < kw) fill(to + right * c, (kw - right) * c);
          to += kw * c;
        } else {
          for (std::int64_t x = 0; x < kw; ++x, to += c) {
            const std::int64_t ix = w.index(2, x0 + x * w.dilation[2]);
            if (ix < 0)
              fill(to, c);
            else
              copy(line + ix * c, to, c);
          }
        }
      }
    }
    if (++ox < w.out[2]) continue;
    ox = 0;
    if (++oy < w.out[1]) continue;
    oy = 0;
    if (++oz < w.out[0]) continue;
    oz = 0;
    ++n;
  }
}

}  // namespace tosaic::cpu
