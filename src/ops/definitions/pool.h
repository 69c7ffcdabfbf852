// SPDX-License-Identifier: Apache-2.0
// What the pools share: windows by kernel, stride and pad, padding never wider than the window. They are attributes,
// and of TOSA 1.1's adaptive pools the last three operands. Private to src/ops.
#pragma once
#include "ops/definitions/window.h"

namespace tosaic::tosa {

std::vector<Slide> pool_slides(const View& view);  // of operands that are constants
std::vector<Slide> pool_slides(const Run& run);
// Is it one of the adaptive pools, and are its operands known?
bool adapts(const View& view);
std::vector<TensorType> infer_pool(const View& view);
// Attribute lengths, "<op>.kernel", "<op>.pad-kernel", and check_slides.
Check check_pool(const View& view);
Check level_pool(const View& view, const Level& level);
// The row of TOSA 1.1's adaptive form of a pool, in 1.0 as_pool.
Op adaptive_pool(Op pool, std::string_view name, std::uint16_t schema_number,
                 std::vector<ValueId> (*in_1_0)(extension::Definition&));
std::vector<ValueId> as_pool(extension::Definition& definition, Operator op);
Op tosa_avg_pool2d();
Op tosa_max_pool2d();

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
