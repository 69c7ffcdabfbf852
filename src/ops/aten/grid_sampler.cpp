// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/builder_bounds.h"
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

// Of quantised tensors, whose scales multiply: positions are integers, in 1/1024 of a pixel. The pixels of a row are
// weighed first, then the rows.
class IntegerSampler {
 public:
  enum Mode : std::int64_t { bilinear, nearest, bicubic };
  enum Padding : std::int64_t { zeros, border, reflection };

  IntegerSampler(Builder& b, Val x, Val grid, Mode mode, Padding padding, bool corners)
      : b_(b),
        mode_(mode),
        padding_(padding),
        corners_(corners),
        n_(x.dim(0)),
        c_(x.dim(1)),
        h_(x.dim(2)),
        w_(x.dim(3)),
        oh_(grid.dim(1)),
        ow_(grid.dim(2)),
        pixels_(b.reshape(channels_last(x), {n_, h_ * w_, c_})),
        grid_(grid) {}

  Val run() const {
    const Axis rows = axis(1, h_), columns = axis(0, w_);
    const double scale = pixels_.type().scales->scale[0];
    // As many digits of a weighed row as 32 bits leave to the weighed rows.
    const double reach = std::max(largest_integer(b_.graph(), pixels_.id()), 1.0) * most_ * most_;
    const int digits = std::min(static_cast<int>(std::floor(30.8 - std::log2(reach))) - bits, bits);
    std::optional<Val> all;
    for (const Tap& row : rows) {
      std::optional<Val> line;
      for (const Tap& column : columns) {
        const Val v = weighed(pixel(row, column), column);
        line = line ? b_.add(*line, v) : v;
      }
      if (mode_ != nearest)
        line = b_.rescale(*line, {DType::i32, line->shape(), Scales{{std::ldexp(scale, -digits)}, {0}}});
      line = weighed(*line, row);
      all = all ? b_.add(*all, *line) : *line;
    }
    return channels_first(b_.reshape(*all, {n_, oh_, ow_, c_}));
  }

 private:
  static constexpr int bits = 10;
  static constexpr std::int64_t unit = 1 << bits;  // a pixel
  struct Tap {
    Val index, inside;          // [n, places]
    std::optional<Val> weight;  // [n, places, 1]
  };
  using Axis = std::vector<Tap>;

  Val plain(Val x) const { return b_.relabelled(x, {DType::i32, x.shape(), std::nullopt}); }
  // Rounded down; every Ethos-U has shifts that round.
  Val pixels_of(Val at) const {
    return b_.binary(tosa::op::arithmetic_right_shift, b_.sub(at, unit / 2.0), b_.scalar(bits, DType::i32),
                     {{"round", true}});
  }
  Val units_of(Val pixel) const { return b_.binary(tosa::op::logical_left_shift, pixel, b_.scalar(bits, DType::i32)); }
  Val weighed(Val v, const Tap& tap) const { return tap.weight ? b_.mul(v, *tap.weight) : v; }

  Val mirrored(Val at, double largest, std::int64_t size) const {
    const std::int64_t low = corners_ ? 0 : -unit / 2, span = (corners_ ? size - 1 : size) * unit;
    if (span == 0) return b_.mul(at, b_.like(at, 0.0));
    const double period = 2.0 * static_cast<double>(span);
    const double before = period * (std::ceil(largest / period) + 1);
    at = b_.add(at, before - static_cast<double>(low));
    at = b_.sub(at, b_.mul(b_.binary(tosa::op::intdiv, at, b_.like(at, period)), b_.like(at, period)));
    const Val distance = b_.unary(tosa::op::abs, b_.sub(at, static_cast<double>(span)));
    return b_.sub(b_.like(at, static_cast<double>(span + low)), distance);
  }
  double largest_of(Val at) const { return largest_integer(b_.graph(), at.id()); }
  // Of whole pixels.
  Val within(Val index, std::int64_t size) const { return b_.clamp(index, 0.0, static_cast<double>(size - 1)); }

  Val position(int axis, std::int64_t size) const {
    const double half = static_cast<double>(corners_ ? size - 1 : size) / 2;
    const Val g = b_.reshape(b_.slice_axis(grid_, 3, axis, 1), {n_, oh_ * ow_});
    const double middle = static_cast<double>(size - 1) / 2 * unit;
    Val at = half == 0 ? b_.filled(0, DType::i32, g.shape())
                       : plain(b_.rescale(b_.scaled(g, half), {DType::i32, g.shape(), Scales{{1.0 / unit}, {0}}}));
    at = b_.add(at, middle);
    const double last = static_cast<double>((size - 1) * unit);
    if (padding_ == border && mode_ != bicubic) return b_.clamp(at, 0.0, last);
    if (padding_ != reflection) return b_.clamp(at, -3.0 * unit, last + 3.0 * unit);
    return mode_ == bicubic ? at : b_.clamp(mirrored(at, largest_of(at), size), 0.0, last);
  }

  Axis axis(int axis, std::int64_t size) const {
    const Val at = position(axis, size), whole = pixels_of(at);
    if (mode_ == nearest) {  // ties to even
      const Val one = b_.scalar(1, DType::i32);
      const Val odd = b_.sub(whole, b_.mul(b_.binary(tosa::op::arithmetic_right_shift, whole, one, {{"round", false}}),
                                           b_.like(whole, 2.0)));
      const Val near = pixels_of(b_.add(b_.add(at, odd), unit / 2.0 - 1));
      return {tap(near, size, std::nullopt)};
    }
    const Val rest = b_.clamp(b_.sub(at, units_of(whole)), 0.0, unit - 1.0);
    const auto weight = [&](Val v) {
      v = b_.reshape(v, {n_, oh_ * ow_, 1});
      return b_.relabelled(v, {DType::i32, v.shape(), Scales{{1.0 / unit}, {0}}});
    };
    if (mode_ == bilinear)
      return {tap(whole, size, weight(b_.sub(b_.like(rest, unit), rest))), tap(b_.add(whole, 1.0), size, weight(rest))};
    const Val weights = gathered(cubic_table(), b_.reshape(rest, {1, n_ * oh_ * ow_}));
    Axis taps;
    for (int i = 0; i < 4; ++i)
      taps.push_back(
          tap(b_.add(whole, i - 1.0), size, weight(b_.slice_axis(weights, 2, i, 1)), largest_of(at) + 2.0 * unit));
    return taps;
  }

  Tap tap(Val index, std::int64_t size, std::optional<Val> weight, double largest = 0) const {
    if (mode_ == bicubic && padding_ == reflection) index = pixels_of(mirrored(units_of(index), largest, size));
    const Val inside = within(index, size);
    return {inside, b_.binary(tosa::op::equal, index, inside), weight};
  }

  // Keys' weights of the four pixels, of every place between two pixels. They add up to one.
  Val cubic_table() const {
    std::vector<std::int64_t> table;
    for (std::int64_t i = 0; i < unit; ++i) {
      constexpr double a = -0.75;
      const double t = static_cast<double>(i) / unit;
      const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
      const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      const std::int64_t first = std::llround(far(1 + t) * unit), third = std::llround(near(1 - t) * unit),
                         fourth = std::llround(far(2 - t) * unit);
      table.insert(table.end(), {first, unit - first - third - fourth, third, fourth});
    }
    return b_.integers(table, DType::i32, {1, unit, 4});
  }

  Val pixel(const Tap& row, const Tap& column) const {
    const Val index = b_.add(b_.mul(row.index, b_.like(row.index, static_cast<double>(w_))), column.index);
    const Val v = gathered(pixels_, index);
    if (padding_ != zeros) return v;
    const Val in = b_.tosa(tosa::op::logical_and, {row.inside, column.inside});
    return b_.select(b_.reshape(in, {n_, oh_ * ow_, 1}), v, b_.like(v, 0.0));
  }

  Builder& b_;
  const Mode mode_;
  const Padding padding_;
  const bool corners_;
  const std::int64_t n_, c_, h_, w_, oh_, ow_;
  const Val pixels_, grid_;
  const double most_ = mode_ == bicubic ? 4 : mode_ == bilinear ? 2 : 1;  // weights, none of which is above 1
};

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
  if (x.type().quantised() && grid.type().quantised())
    return IntegerSampler(b, x, grid, IntegerSampler::Mode{mode}, IntegerSampler::Padding{padding},
                          call.flag("align_corners"))
        .run();
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

// Where 8 bits of a position are too few: the nearest pixel is often another one, and those of an input of the program
// would be its only rounding, of more than a quarter of a pixel.
bool needs_fine_positions(const Graph& graph, const Node& node) {
  constexpr std::int64_t longest = 64;
  if (node.attrs.get_or<std::int64_t>("interpolation_mode", 0) == IntegerSampler::nearest) return true;
  const Shape& image = graph[node.inputs[0]].type.shape;
  const bool given = std::find(graph.inputs.begin(), graph.inputs.end(), node.inputs[1]) != graph.inputs.end();
  return given && image.is_static() && image.rank() == 4 && std::max(image.size(2), image.size(3)) > longest;
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
          .rule = Rule::product,
          .lower = {lower},
          .domain = {"x(1,2,4,5), u(-1.3,1.3,1,3,3,2), 0, 0, False # half=off: positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-1.3,1.3,2,3,2,2), 0, 1, True # half=off: positions lose the fraction of a pixel",
                     "x(1,2,4,5), u(-1.3,1.3,1,3,3,2), 1, 0, False # half=off integer=target.unsupported: positions "
                     "lose the fraction of a pixel",
                     "x(2,2,4,5), u(-2.6,2.6,2,3,2,2), 0, 2, True # half=off: positions lose the fraction of a pixel",
                     "x(2,2,4,5), u(-2.6,2.6,2,3,2,2), 0, 2, False # half=off: positions lose the fraction of a pixel",
                     "x(1,2,1,5), u(-2.6,2.6,1,3,3,2), 1, 2, True # half=off integer=target.unsupported: positions "
                     "lose the fraction of a pixel",
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
          .core = core,
          .stays_float = needs_fine_positions};
}
}  // namespace tosaic
