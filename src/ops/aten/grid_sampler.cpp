// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/index.h"
#include "ops/lowering/layout.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x thrown back at `low` and at `low` + `span` as often as it takes: a triangle wave.
Val reflected(Val x, double low, double span) {
  Builder& b = x.builder();
  if (span == 0) return b.mul(x, 0.0);
  x = b.sub(x, low);
  Val once = b.sub(x, b.mul(b.unary(tosa::op::floor, b.mul(x, 0.5 / span)), 2 * span));
  Val distance = b.unary(tosa::op::abs, b.sub(once, span));
  return b.add(b.sub(b.scalar(span, x.dtype()), distance), low);
}

// Keys' cubic convolution: the weights of the four pixels around a position that lies `t` behind the second.
std::array<Val, 4> cubic_weights(Val t) {
  Builder& b = t.builder();
  constexpr double a = -0.75;
  const auto near = [&](Val d) {  // at most 1 away
    return functions::polynomial(d, {1, 0, -(a + 3), a + 2});
  };
  const auto far = [&](Val d) { return functions::polynomial(d, {-4 * a, 8 * a, -5 * a, a}); };
  const Val after = b.sub(b.like(t, 1.0), t);
  return {far(b.add(t, 1.0)), near(t), near(after), far(b.add(after, 1.0))};
}

// Each output pixel reads the pixels around its position in the flattened image; what lies outside counts as zero,
// as the nearest border pixel, or as its mirror image.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input"), grid = call.tensor("grid");
  const std::int64_t mode = call.integer("interpolation_mode"), padding = call.integer("padding_mode");
  if (x.rank() != 4 || grid.rank() != 4 || grid.dim(0) != x.dim(0) || grid.dim(3) != 2)
    b.refuse("aten.grid_sampler.shape",
             "a grid of shape " + to_string(grid.shape()) + " for images of shape " + to_string(x.shape()));
  if (mode > 2 || padding > 2)
    b.refuse("aten.grid_sampler.mode",
             "grid_sample takes the modes bilinear (0), nearest (1) and bicubic (2) and the paddings zeros (0), border "
             "(1) and reflection (2), not mode " +
                 std::to_string(mode) + ", padding " + std::to_string(padding));
  const std::int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3), oh = grid.dim(1), ow = grid.dim(2),
                     p = oh * ow;
  const bool corners = call.flag("align_corners"), border = padding != 0;
  const DType t = x.dtype();
  Val pixels = b.reshape(channels_last(x), {n, h * w, c});
  auto padded = [&](Val at, std::int64_t size) {
    const double last = static_cast<double>(size - 1), whole = static_cast<double>(size);
    if (padding == 2) at = reflected(at, corners ? 0.0 : -0.5, corners ? last : whole);
    // Far outside is all alike; the clamp keeps positions within what casts to integers hold.
    return border ? b.clamp(at, 0.0, last) : b.clamp(at, -2.0, whole + 1);
  };
  auto position = [&](int axis, std::int64_t size) {  // -1..1 to pixels
    Val g = b.reshape(b.slice_axis(grid, 3, axis, 1), {n, p});
    const double last = static_cast<double>(size - 1), whole = static_cast<double>(size);
    Val at = corners ? b.mul(b.add(g, 1.0), last / 2) : b.sub(b.mul(b.add(g, 1.0), whole / 2), 0.5);
    if (mode != 2) return padded(at, size);
    return padding == 2 ? at : b.clamp(at, -3.0, whole + 2);  // its four pixels are padded each by itself
  };
  Val y = position(1, h), ix = position(0, w);
  auto sample = [&](Val row, Val column) {  // floats that are whole numbers
    Val inside_row = b.clamp(row, 0.0, static_cast<double>(h - 1)),
        inside_column = b.clamp(column, 0.0, static_cast<double>(w - 1));
    Val index = b.add(b.mul(b.cast(inside_row, DType::i32), b.scalar(static_cast<double>(w), DType::i32)),
                      b.cast(inside_column, DType::i32));
    Val v = gathered(pixels, index);
    if (border) return v;
    Val in = b.tosa(tosa::op::logical_and,
                    {b.binary(tosa::op::equal, row, inside_row), b.binary(tosa::op::equal, column, inside_column)});
    return b.select(b.reshape(in, {n, p, 1}), v, b.scalar(0.0, t));
  };
  Val result;
  if (mode == 1) {
    result = sample(b.aten(aten::op::round, {y}), b.aten(aten::op::round, {ix}));
  } else if (mode == 2) {
    const Val top = b.unary(tosa::op::floor, y), left = b.unary(tosa::op::floor, ix);
    const auto rows = cubic_weights(b.reshape(b.sub(y, top), {n, p, 1}));
    const auto columns = cubic_weights(b.reshape(b.sub(ix, left), {n, p, 1}));
    const auto tap = [&](Val first, int i, std::int64_t size) {
      const Val at = padded(b.add(first, static_cast<double>(i - 1)), size);
      return padding == 2 ? b.aten(aten::op::round, {at}) : at;
    };
    for (int r = 0; r < 4; ++r) {
      std::optional<Val> row;
      for (int k = 0; k < 4; ++k) {
        const Val term = b.mul(sample(tap(top, r, h), tap(left, k, w)), columns[static_cast<std::size_t>(k)]);
        row = row ? b.add(*row, term) : term;
      }
      const Val weighted = b.mul(*row, rows[static_cast<std::size_t>(r)]);
      result = r == 0 ? weighted : b.add(result, weighted);
    }
  } else {
    Val top = b.unary(tosa::op::floor, y), left = b.unary(tosa::op::floor, ix);
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
                     "x(1,2,4,5), u(-1.6,1.6,1,3,3,2), 2, 0, False # atol=3e-6 half=off: sixteen products cancel; "
                     "positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-1.6,1.6,2,3,2,2), 2, 1, True # atol=3e-6 half=off: sixteen products cancel; "
                     "positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-2.6,2.6,2,3,2,2), 2, 2, False # atol=3e-6 half=off: sixteen products cancel; "
                     "positions lose the fraction of a pixel",
                     "x(1,2,4,3), u(-2.6,2.6,1,3,2,2), 2, 2, True # atol=3e-6 half=off: sixteen products cancel; "
                     "positions lose the fraction of a pixel",
                     "grid_sampler_2d.default: x(1,1,3,3), u(-1,1,1,2,2,2), 0, 0, True # half=off: positions lose the "
                     "fraction of a pixel"},
          .core = core};
}
}  // namespace tosaic
