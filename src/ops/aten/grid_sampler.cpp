// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_index.h"
#include "ops/aten_layout.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x thrown back at `low` and at `low` + `span` as often as it takes: a triangle wave.
Val reflected(Val x, double low, double span) {
  Builder& b = x.builder();
  if (span == 0) return b.mul(x, 0.0);
  x = b.sub(x, low);
  Val once = b.sub(x, b.mul(b.unary("floor", b.mul(x, 0.5 / span)), 2 * span));
  Val distance = b.unary("abs", b.sub(once, span));
  return b.add(b.sub(b.scalar(span, x.dtype()), distance), low);
}

// Each output pixel reads the pixels around its position in the flattened image; what lies outside counts as zero,
// as the nearest border pixel, or as its mirror image.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input"), grid = call.tensor("grid");
  const std::int64_t mode = call.integer("interpolation_mode"), padding = call.integer("padding_mode");
  if (x.rank() != 4 || grid.rank() != 4 || grid.dim(0) != x.dim(0) || grid.dim(3) != 2)
    b.refuse("aten.grid_sampler.shape",
             "a grid of shape " + to_string(grid.shape()) + " for images of shape " + to_string(x.shape()));
  if (mode > 1 || padding > 2)
    b.refuse("aten.grid_sampler.mode",
             "grid_sample takes the modes bilinear (0) and nearest (1) and the paddings zeros (0), border (1) and "
             "reflection (2), not mode " +
                 std::to_string(mode) + ", padding " + std::to_string(padding));
  const std::int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3), oh = grid.dim(1), ow = grid.dim(2),
                     p = oh * ow;
  const bool corners = call.flag("align_corners"), border = padding != 0;
  const DType t = x.dtype();
  Val pixels = b.reshape(channels_last(x), {n, h * w, c});
  auto position = [&](int axis, std::int64_t size) {  // -1..1 to pixels
    Val g = b.reshape(b.slice_axis(grid, 3, axis, 1), {n, p});
    const double last = static_cast<double>(size - 1), whole = static_cast<double>(size);
    Val at = corners ? b.mul(b.add(g, 1.0), last / 2) : b.sub(b.mul(b.add(g, 1.0), whole / 2), 0.5);
    if (padding == 2) at = reflected(at, corners ? 0.0 : -0.5, corners ? last : whole);
    // Far outside is all alike; the clamp keeps positions within what casts to integers hold.
    return border ? b.clamp(at, 0.0, last) : b.clamp(at, -2.0, whole + 1);
  };
  Val y = position(1, h), ix = position(0, w);
  auto sample = [&](Val row, Val column) {  // floats that are whole numbers
    Val inside_row = b.clamp(row, 0.0, static_cast<double>(h - 1)),
        inside_column = b.clamp(column, 0.0, static_cast<double>(w - 1));
    Val index = b.add(b.mul(b.cast(inside_row, DType::i32), b.scalar(static_cast<double>(w), DType::i32)),
                      b.cast(inside_column, DType::i32));
    Val v = gathered(pixels, index);
    if (border) return v;
    Val in = b.tosa("logical_and", {b.binary("equal", row, inside_row), b.binary("equal", column, inside_column)});
    return b.select(b.reshape(in, {n, p, 1}), v, b.scalar(0.0, t));
  };
  Val result;
  if (mode == 1) {
    result = sample(b.aten("aten.round.default", {y}), b.aten("aten.round.default", {ix}));
  } else {
    Val top = b.unary("floor", y), left = b.unary("floor", ix);
    Val wy = b.reshape(b.sub(y, top), {n, p, 1}), wx = b.reshape(b.sub(ix, left), {n, p, 1});
    Val below = b.add(top, 1.0), right = b.add(left, 1.0);
    Val one = b.scalar(1.0, t);
    auto row = [&](Val r) { return b.add(b.mul(sample(r, left), b.sub(one, wx)), b.mul(sample(r, right), wx)); };
    result = b.add(b.mul(row(top), b.sub(one, wy)), b.mul(row(below), wy));
  }
  return channels_first(b.reshape(result, {n, oh, ow, c}));
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "grid_sampler" || call.in(0).rank() != 4) return std::nullopt;
  return call.renamed("grid_sampler_2d");
}
}  // namespace

AtenOp aten_grid_sampler() {
  return {.schemas = {"grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                      "align_corners) -> Tensor",
                      "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                      "align_corners) -> Tensor"},
          .summary = "an image read at the positions that a grid gives",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(1,2,4,5), u(-1.3,1.3,1,3,3,2), 0, 0, False # half=off: positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-1.3,1.3,2,3,2,2), 0, 1, True # half=off: positions lose the fraction of a pixel",
                     "x(1,2,4,5), u(-1.3,1.3,1,3,3,2), 1, 0, False # half=off: positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-2.6,2.6,2,3,2,2), 0, 2, True # half=off: positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-2.6,2.6,2,3,2,2), 0, 2, False # half=off: positions lose the fraction of a pixel",
                     "x(1,2,1,5), u(-2.6,2.6,1,3,3,2), 1, 2, True # half=off: positions lose the fraction of a pixel",
                     "grid_sampler_2d.default: x(1,1,3,3), u(-1,1,1,2,2,2), 0, 0, True # half=off: positions lose the "
                     "fraction of a pixel"},
          .core = core};
}
}  // namespace tosaic
