// SPDX-License-Identifier: Apache-2.0
// A convolution that reads its input where it lies, in lines with padding at both ends: a row of the product is one
// segment of each line that its window reaches, and overlaps its neighbours.
#pragma once
#include <algorithm>

#include "cpu/window/line_tasks.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {

inline constexpr std::int64_t bytes_of_lines = 128 << 10;  // for one task: they stay in the second-level cache

// Where a patch would be copied for few columns, or in runs as short as this, copying takes as long as products.
inline bool goes_by_lines(const Window& w, std::int64_t columns) {
  constexpr std::int64_t few_columns = 64, short_run = 64, fewest_rows = 4;
  constexpr std::array<std::int64_t, 3> dense{1, 1, 1};
  return w.kernel[0] == 1 && w.before[2] >= 0 && w.in[0] == 1 && w.out[0] == 1 && w.spread == dense &&
         w.dilation[2] == 1 && w.taps() > 1 && w.out[2] >= fewest_rows &&
         (columns <= few_columns || w.kernel[2] * w.channels < short_run);
}

struct InputLines {
  Window window;

  std::int64_t in_line() const { return window.in[2] * window.pixel; }
  // Elements of a group's input line and the padding at both of its ends that windows reach.
  std::int64_t padded_line() const {
    const std::int64_t reached = (window.out[2] - 1) * window.stride[2] + window.kernel[2];
    return std::max(reached, window.before[2] + window.in[2]) * window.channels;
  }
  std::int64_t lines_for(std::int64_t output_lines) const {
    return (output_lines - 1) * window.stride[1] + (window.kernel[1] - 1) * window.dilation[1] + 1;
  }

  // Input lines that output lines from `first` on read: of `image`, zeros beyond it.
  template <class Element>
  void copy_lines(const Element* image, std::int64_t first, std::int64_t output_lines, Element* to) const {
    const std::int64_t pitch = padded_line(), left = window.before[2] * window.channels,
                       own = window.in[2] * window.channels;
    for (std::int64_t i = 0; i < lines_for(output_lines); ++i, to += pitch) {
      const std::int64_t line = first * window.stride[1] - window.before[1] + i;
      if (line < 0 || line >= window.in[1]) {
        std::fill_n(to, pitch, Element{0});
        continue;
      }
      std::fill_n(to, left, Element{0});
      if (window.groups() == 1)
        std::copy_n(image + line * in_line(), own, to + left);
      else
        join_runs(image + line * in_line(), window.pixel, window.channels, window.in[2], to + left);
      std::fill(to + left + own, to + pitch, Element{0});
    }
  }
};

}  // namespace tosaic::cpu
