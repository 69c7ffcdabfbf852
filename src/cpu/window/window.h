// SPDX-License-Identifier: Apache-2.0
// The window of a convolution or pool over [N,D,H,W,C] (D is 1 for the two-dimensional ones), and the matrix of
// patches that makes a convolution a matrix product: one row per output position, its K columns in the order of
// the weights [KD,KH,KW,C].
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/definitions/tosa_op.h"

namespace tosaic::cpu {

struct Window {
  std::int64_t batch = 1, channels = 1;
  std::int64_t pixel = 1;  // elements from one pixel to the next: channels of all groups (tosaic.grouped_conv2d)
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
  std::int64_t groups() const { return channels > 0 ? pixel / channels : 1; }
  // The pixels of a line of a patch are one run of elements: no other groups' channels stand between them.
  bool in_one_run() const { return pixel == channels || kernel[2] == 1; }
  std::int64_t input_elements() const { return batch * in[0] * in[1] * in[2] * pixel; }
  // Every patch is one input position: the input itself is the matrix.
  bool is_matrix() const {
    constexpr std::array<std::int64_t, 3> ones{1, 1, 1};
    return taps() == 1 && in == out && stride == ones && spread == ones;
  }
};
// Of conv2d, tosaic.grouped_conv2d, conv3d, transpose_conv2d, depthwise_conv2d, avg_pool2d and max_pool2d nodes.
Window window_of(const Graph& graph, const Node& node);
// conv2d, conv3d and transpose_conv2d, which matrix products compute.
bool is_dense_convolution(const Node& node);
// Those and what products of each group of channels compute, of such types.
bool is_convolution_of_floats(const Graph& graph, const Node& node);
bool is_convolution_of_i8(const Graph& graph, const Node& node);
// Are there kernels for groups of channels whose first one this conv2d is?
bool has_kernels_of_groups(const Graph& graph, const Node& node);
// The constant weights [OC,KD,KH,KW,IC] in the order of the patches' columns.
Bytes patch_weights(const Graph& graph, const Node& node);
// Whether these are the constant itself, which other programs may have packed, too (cpu/matrix/packed_once.h).
bool lie_as_patches(const Node& node);

// Writes patches [first, first + rows) in order. copy(from, to, count): `count` input elements from element
// `from` become elements `to`... of the patch matrix, whose rows are `row_stride` apart; fill(to, count): padding.
// Both may write past their end what the next call overwrites. `in_one_run`: as the window says.
// (`w` is a copy: what they write could be a part of somebody else's.)
template <bool in_one_run, class Copy, class Fill>
void for_patches_of(const Window w, std::int64_t first, std::int64_t rows, std::int64_t row_stride, const Copy& copy,
                    const Fill& fill) {
  const std::int64_t kd = w.kernel[0], kh = w.kernel[1], kw = w.kernel[2];
  const std::int64_t c = w.channels, pixel = w.pixel, run = kw * c, plane = w.in[1] * w.in[2] * pixel;
  const bool neighbours = w.dilation[2] == 1 && w.spread[2] == 1;
  std::vector<std::int64_t> lines(static_cast<std::size_t>(kd * kh));  // where those of a row of outputs begin, or -1
  const auto part = [&](std::int64_t line, std::int64_t x0, std::int64_t to) {  // of a patch at the edge, or with gaps
    for (std::int64_t x = 0; x < kw; ++x) {
      const std::int64_t ix = w.index(2, x0 + x * w.dilation[2]);
      ix < 0 ? fill(to + x * c, c) : copy(line + ix * pixel, to + x * c, c);
    }
  };
  for (std::int64_t r = 0; r < rows;) {
    const std::int64_t at = first + r, ox = at % w.out[2], oy = at / w.out[2] % w.out[1];
    const std::int64_t oz = at / (w.out[1] * w.out[2]) % w.out[0], n = at / (w.out[0] * w.out[1] * w.out[2]);
    for (std::int64_t i = 0; i < kd * kh; ++i) {
      const std::int64_t iz = w.index(0, oz * w.stride[0] - w.before[0] + i / kh * w.dilation[0]);
      const std::int64_t iy = w.index(1, oy * w.stride[1] - w.before[1] + i % kh * w.dilation[1]);
      lines[static_cast<std::size_t>(i)] = iz < 0 || iy < 0 ? -1 : (n * w.in[0] + iz) * plane + iy * w.in[2] * pixel;
    }
    const std::int64_t end = std::min(rows, r + w.out[2] - ox);
    const auto inside = [&](std::int64_t first_pixel, std::int64_t to) {
      if constexpr (in_one_run)
        copy(first_pixel, to, run);
      else
        for (std::int64_t x = 0; x < kw; ++x) copy(first_pixel + x * pixel, to + x * c, c);
    };
    std::int64_t x0 = ox * w.stride[2] - w.before[2];
    for (; r < end; ++r, x0 += w.stride[2]) {
      const bool whole = neighbours && x0 >= 0 && x0 + kw <= w.in[2];
      std::int64_t to = r * row_stride;
      for (const std::int64_t line : lines) {
        if (line < 0)
          fill(to, run);
        else
          whole ? inside(line + x0 * pixel, to) : part(line, x0, to);
        to += run;
      }
    }
  }
}

template <class Copy, class Fill>
void for_patches(const Window& w, std::int64_t first, std::int64_t rows, std::int64_t row_stride, const Copy& copy,
                 const Fill& fill) {
  w.in_one_run() ? for_patches_of<true>(w, first, rows, row_stride, copy, fill)
                 : for_patches_of<false>(w, first, rows, row_stride, copy, fill);
}

// `count` runs that stand `pitch` apart become neighbours: runs of usual groups of channels with a size that the
// compiler knows.
template <class Element>
void join_runs(const Element* from, std::int64_t pitch, std::int64_t run, std::int64_t count, Element* to) {
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * size, from + i * pitch, static_cast<std::size_t>(size) * sizeof(Element));
  };
  switch (run) {
    case 4: return copy(std::integral_constant<std::int64_t, 4>());
    case 8: return copy(std::integral_constant<std::int64_t, 8>());
    case 16: return copy(std::integral_constant<std::int64_t, 16>());
    default: return copy(run);
  }
}

}  // namespace tosaic::cpu
