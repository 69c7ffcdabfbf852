// SPDX-License-Identifier: Apache-2.0
// The patches of a convolution, but each line of the input with what its windows see of it, once: a row of the product
// is a stretch of as many such lines as its window has. Of 3x3 windows they take a third of the patches' memory, and
// stay in the second-level cache. Rows are equally far apart also where an output line ends, so that tiles need not end
// there. Lines that a stride's steps reach together lie together.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/window/window.h"

namespace tosaic::cpu {

class LinePatches {
 public:
  // Of one image, whose windows have more than one line.
  static bool fit(const Window& w) {
    return w.batch == 1 && w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.kernel[1] > 1;
  }
  // Elements of memory for a row.
  static std::int64_t elements_of_row(const Window& w) {
    return std::min(w.stride[1], w.kernel[1]) * w.kernel[2] * w.channels;
  }
  // `pitch`: elements from row to row; `rows`: at most so many are asked for at once.
  LinePatches(const Window& w, std::int64_t pitch, std::int64_t rows)
      : lines_(w), stride_(w.stride[1]), reach_((w.kernel[1] - 1) * w.dilation[1]), pitch_(pitch) {
    const std::int64_t output_lines = std::min(w.out[1], (rows + w.out[2] - 2) / w.out[2] + 1);
    of_step_ = output_lines + reach_ / stride_;
    used_.resize(static_cast<std::size_t>(stride_));
    for (std::int64_t y = 0; y <= reach_; y += w.dilation[1]) {
      starts_.push_back(place(y));
      used_[static_cast<std::size_t>(y % stride_)] = true;
    }
    // The lines are those of a window one line high.
    lines_.kernel[1] = lines_.stride[1] = 1;
    lines_.out[1] = (w.out[1] - 1) * stride_ + reach_ + 1;
  }

  std::int64_t pitch() const { return pitch_; }
  std::int64_t elements() const { return stride_ * of_step_ * lines_.out[2] * pitch_; }
  // Where the lines of a row's window begin, as elements from the row.
  const std::vector<std::int64_t>& starts() const { return starts_; }

  // The lines that rows [first, first + rows) see. copy and fill as those of for_patches. Gives where the first row is.
  template <class Copy, class Fill>
  std::int64_t gather(std::int64_t first, std::int64_t rows, const Copy& copy, const Fill& fill) const {
    const std::int64_t across = lines_.out[2], top = first / across,
                       count = ((first + rows - 1) / across - top) * stride_ + reach_ + 1;
    for (std::int64_t of_step = 0; of_step < stride_; ++of_step)  // in order, as copies may go on past their end
      for (std::int64_t line = of_step; line < count && used_[static_cast<std::size_t>(of_step)]; line += stride_) {
        const std::int64_t to = place(line);
        for_patches(
            lines_, (top * stride_ + line) * across, across, pitch_,
            [&](std::int64_t from, std::int64_t where, std::int64_t n) { copy(from, to + where, n); },
            [&](std::int64_t where, std::int64_t n) { fill(to + where, n); });
      }
    return first % across * pitch_;
  }

 private:
  std::int64_t place(std::int64_t line) const {
    return (line % stride_ * of_step_ + line / stride_) * lines_.out[2] * pitch_;
  }

  Window lines_;
  std::int64_t stride_ = 1, reach_ = 0, pitch_ = 0, of_step_ = 0;  // reach: of a window, less one line
  std::vector<std::int64_t> starts_;
  std::vector<bool> used_;  // of a stride's lines
};

}  // namespace tosaic::cpu
