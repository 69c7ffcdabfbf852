// SPDX-License-Identifier: Apache-2.0
// What AVG_POOL2D and MAX_POOL2D share: windows by kernel, stride and pad, padding never wider than the window.
// Private to src/ops.
#pragma once
#include "ops/definitions/window.h"

namespace tosaic::tosa {

std::vector<Slide> pool_slides(const View& view);
std::vector<TensorType> infer_pool(const View& view);
// Attribute lengths, "<op>.kernel", "<op>.pad-kernel", and check_slides.
Check check_pool(const View& view);
Check level_pool(const View& view, const Level& level);

// Calls visit(output element of channel 0, n, rows y0..y1 and columns x0..x1 of the window inside the input).
template <class F>
void for_each_window(const std::vector<Slide>& slides, std::int64_t batch, F&& visit) {
  const Slide &v = slides[0], &h = slides[1];
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t oy = 0; oy < positions(v); ++oy)
      for (std::int64_t ox = 0; ox < positions(h); ++ox) {
        const std::int64_t y = oy * v.stride - v.before, x = ox * h.stride - h.before;
        visit((n * positions(v) + oy) * positions(h) + ox, n, std::max<std::int64_t>(y, 0),
              std::min(y + v.kernel, v.size), std::max<std::int64_t>(x, 0), std::min(x + h.kernel, h.size));
      }
}

}  // namespace tosaic::tosa
