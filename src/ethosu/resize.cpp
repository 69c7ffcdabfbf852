// SPDX-License-Identifier: Apache-2.0
// RESIZE (U85). A position is out * d + offset in units of 1/n of an input element. Bilinear sums are not divided by
// n * n, and both modes' results carry 16 more bits, which the output scale takes off again.
#include <fmt/format.h>
#include <algorithm>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

enum Mode : std::uint32_t { bilinear = 0, replicate = 1, nearest = 2 };
constexpr int fraction_bits = 16;

struct Axis {
  std::int64_t n, d, offset, size;
  struct Sample {
    std::int64_t first, second, fraction;  // neighbours inside the input, fraction of n
  };
  Sample at(std::int64_t out) const {
    const std::int64_t position = out * d + offset;
    const std::int64_t whole = position >= 0 ? position / n : -((-position + n - 1) / n);
    return {std::clamp<std::int64_t>(whole, 0, size - 1), std::clamp<std::int64_t>(whole + 1, 0, size - 1),
            position - whole * n};
  }
};

std::int64_t sign_extend12(std::uint64_t v) { return static_cast<std::int64_t>(v << 52) >> 52; }

}  // namespace

Result<OutputStage> run_resize(Context& context, std::uint32_t mode) {
  const Registers& r = context.registers;
  if (mode == replicate || mode > nearest)
    return error("ethosu.undecidable", fmt::format("resize mode {} has not been seen and checked", mode));
  if (r.get<"OFM_PRECISION", "scale_mode">() != 1)
    return error("ethosu.undecidable", "RESIZE with a scale per channel");
  TOSAIC_TRY(OutputStage out, OutputStage::create(context, Scaling::global));
  const Shape3& shape = out.shape();
  TOSAIC_TRY(const Operand ifm, ifm_operand(r, Broadcasts::no));
  if (ifm.broadcast.scalar) return error("ethosu.undecidable", "RESIZE of a scalar");
  Axis y, x;
  y.n = static_cast<std::int64_t>(r.get<"RESIZE_Y_SCALE_N_M1", "resize_y_scale_n_m1">()) + 1;
  x.n = static_cast<std::int64_t>(r.get<"RESIZE_X_SCALE_N_M1", "resize_x_scale_n_m1">()) + 1;
  y.d = static_cast<std::int64_t>(r.get<"RESIZE_Y", "one_step_int">()) * y.n +
        static_cast<std::int64_t>(r.get<"RESIZE_Y", "one_step_mod">());
  x.d = static_cast<std::int64_t>(r.get<"RESIZE_X", "one_step_int">()) * x.n +
        static_cast<std::int64_t>(r.get<"RESIZE_X", "one_step_mod">());
  y.offset = sign_extend12(r.get<"RESIZE_Y_OFFSET", "resize_y_offset">());
  x.offset = sign_extend12(r.get<"RESIZE_X_OFFSET", "resize_x_offset">());
  y.size = static_cast<std::int64_t>(r.get<"KERNEL_HEIGHT_M1", "height_m1">()) + 1;
  x.size = static_cast<std::int64_t>(r.get<"KERNEL_WIDTH_M1", "width_m1">()) + 1;
  TOSAIC_TRY(FeatureMap map, place_operand(context, ifm, {y.size, x.size, shape.c}, false, "IFM"));
  std::vector<std::byte> copy;
  if (out.stores() && map.overlaps(out.map())) map = map.snapshot(copy);
  TOSAIC_CHECK(context.spend(4 * static_cast<double>(shape.h) * static_cast<double>(shape.w + x.size) *
                             static_cast<double>(shape.c)));
  if (std::max(x.size, shape.w) * shape.c > most_elements) return error("ethosu.too-large", "a row of RESIZE");
  if (r.missing()) return out;
  context.pool.run(shape.h, [&](std::int64_t oy, int thread) {
    Scratch& scratch = context.scratch[static_cast<std::size_t>(thread)];
    std::int64_t* above = Scratch::of(scratch.left, x.size * shape.c);
    std::int64_t* below = Scratch::of(scratch.right, x.size * shape.c);
    std::int64_t* row = Scratch::of(scratch.wide_sums, shape.w * shape.c);
    const Axis::Sample py = y.at(oy);
    map.read_row(py.first, 0, x.size, 0, shape.c, above);
    map.read_row(py.second, 0, x.size, 0, shape.c, below);
    for (std::int64_t ox = 0; ox < shape.w; ++ox) {
      const Axis::Sample px = x.at(ox);
      for (std::int64_t c = 0; c < shape.c; ++c) {
        const auto at = [&](const std::int64_t* line, std::int64_t column) {
          return line[column * shape.c + c] - ifm.zero_point;
        };
        std::int64_t value;
        if (mode == nearest) {
          const bool down = 2 * py.fraction >= y.n, right = 2 * px.fraction >= x.n;
          value = at(down ? below : above, right ? px.second : px.first) << fraction_bits;
          if (mutated("resize.nearest")) value = at(above, px.first) << fraction_bits;
        } else {
          const std::int64_t top = at(above, px.first) * (x.n - px.fraction) + at(above, px.second) * px.fraction;
          const std::int64_t bottom = at(below, px.first) * (x.n - px.fraction) + at(below, px.second) * px.fraction;
          value = (top * (y.n - py.fraction) + bottom * py.fraction) << fraction_bits;
        }
        row[ox * shape.c + c] = value;
      }
    }
    out.finish_row(scratch, oy, 0, shape.c, row, shape.c);
  });
  TOSAIC_CHECK(out.close(context));
  return out;
}

}  // namespace tosaic::ethosu
