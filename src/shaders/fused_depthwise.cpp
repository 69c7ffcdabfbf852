// SPDX-License-Identifier: Apache-2.0
#include "shaders/fused_depthwise.h"

#include <algorithm>

#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

// One axis of the image: how many of its pixels the windows of `own` results that stand together reach, at most.
std::int64_t reached(const tosa::View& view, std::size_t axis, std::int64_t own) {
  const int dim = static_cast<int>(axis) + 1;
  const std::int64_t size = view.in(0).shape.size(dim), out = view.out().shape.size(dim),
                     kernel = view.in(1).shape.size(dim - 1), stride = view.ints("stride")[axis],
                     before = view.ints("pad")[2 * axis];
  std::int64_t most = 0;
  for (std::int64_t first = 0; first < out; first += own) {
    const std::int64_t begin = std::max<std::int64_t>(0, first * stride - before),
                       end = std::min(size, (std::min(first + own, out) - 1) * stride - before + kernel);
    most = std::max(most, end - begin);
  }
  return most;
}

std::int64_t parts_of(std::int64_t all, std::int64_t own) { return (all + own - 1) / own; }

}  // namespace

std::optional<Regions> regions_of(const tosa::View& view, std::int64_t rows) {
  const Shape& out = view.out().shape;
  std::vector<std::int64_t> heights(1), widths(1);
  for (std::int64_t n = 1; n <= out.size(1); ++n) heights.push_back(reached(view, 0, n));
  for (std::int64_t n = 1; n <= out.size(2); ++n) widths.push_back(reached(view, 1, n));
  std::optional<Regions> best;
  for (std::int64_t h = 1; h <= out.size(1); ++h)
    for (std::int64_t w = 1; w <= out.size(2); ++w) {
      const auto height = heights[static_cast<std::size_t>(h)], width = widths[static_cast<std::size_t>(w)];
      if (height < 1 || width < 1 || height * width > rows) continue;
      const Regions found{width, height, w, h, parts_of(out.size(2), w), parts_of(out.size(1), h), out.size(0)};
      if (!best || found.count() < best->count()) best = found;
    }
  // As measured on an H200, where what finishes an integer takes longer.
  const std::int64_t most_sums = is_float(view.in(0).dtype) ? 1 << 20 : 1 << 18;
  if (best && best->count() * rows * out.size(3) > most_sums) return std::nullopt;
  return best;
}

bool may_fuse_depthwise(const tosa::View& plain, const tosa::View& depthwise) {
  const auto is_static = [](const tosa::View& view) {
    return view.in(0).shape.is_static() && view.out().shape.is_static();
  };
  return is_static(plain) && is_static(depthwise) && is_plain(plain) && has_tiles(plain) && has_quad_taps(depthwise) &&
         plain.out().shape == depthwise.in(0).shape && depthwise.all_are("dilation", 1);
}

FusedDepthwise::FusedDepthwise(Kernel& s, const Finish::Behind& behind, const Regions& regions, Value region,
                               Value first_column, Value all_columns, std::uint32_t columns, std::uint32_t invocations)
    : s_(s),
      view_(s.graph(), *behind.node),
      end_(*behind.end),
      wide_(columns / 4),
      invocations_(invocations),
      down_(line(0)),
      across_(line(1)),
      width_(s.param(regions.width)),
      height_(s.param(regions.height)),
      out_width_(s.param(regions.out_width)),
      out_height_(s.param(regions.out_height)),
      all_columns_(all_columns),
      first_column_(first_column),
      zero_point_(zero_point(s, view_, 0, 3)),
      weight_zero_point_(zero_point(s, view_, 1, 4)) {
  const Value across = s.param(regions.across), down = s.param(regions.down), row = region / across;
  out_x_ = region % across * out_width_;
  out_y_ = row % down * out_height_;
  image_ = row / down;
  exists_ = image_ < s.param(regions.images);  // there may be more groups than regions
  const auto begin = [&](Value out, const Line& axis) {
    return largest(out * axis.stride - axis.before, s.integer(0));
  };
  y_ = begin(out_y_, down_);
  x_ = begin(out_x_, across_);
}

FusedDepthwise::Line FusedDepthwise::line(std::size_t axis) {
  const int dim = static_cast<int>(axis) + 1;
  return {s_.param(view_.in(0).shape[dim]), s_.param(view_.out().shape[dim]), view_.ints("stride")[axis],
          view_.ints("pad")[2 * axis]};
}

FusedDepthwise::Window FusedDepthwise::place(Value row) const {
  const Value y = y_ + row / width_, x = x_ + row % width_;
  const Value exists = exists_ & (row < width_ * height_) & (y < down_.size) & (x < across_.size);
  return {exists, (image_ * down_.size + y) * across_.size + x};
}

void FusedDepthwise::prepare() {
  const Value column = first_column_ + s_.local() % s_.integer(wide_) * 4;
  const Value quad = s_.select(there(column), shift_right_unsigned(column, s_.integer(2)), s_.integer(0));
  const Value quads = shift_right_unsigned(all_columns_, s_.integer(2));
  const Buffer weights = s_.input(view_.node().inputs[1], true);
  const Shape& shape = view_.in(1).shape;
  for (std::int64_t tap = 0; tap < shape.size(0) * shape.size(1); ++tap)
    weights_.push_back(s_.load_raw(weights, quads * tap + quad));
  bias_ = bias_quad_at(s_, view_, quad);
}

// Each sum, made what the windows read, in its own place; zeros where there is no pixel.
void FusedDepthwise::finish(const TileAccumulators& sums, const Finish& between, const tosa::View& plain) const {
  const std::uint32_t size = sums.rows * wide_;
  const bool real = is_float(view_.in(0).dtype);
  const Value zero = s_.integer(0), nothing = real ? s_.real(0) : zero;
  s_.loop(zero, s_.integer(size), s_.integer(invocations_), [&](Value begin) {
    const Value number = (begin + s_.local()) % s_.integer(size);
    const Value row = number / s_.integer(wide_), own = number % s_.integer(wide_), column = first_column_ + own * 4;
    const Window at = place(row);
    const Value exists = at.exists & there(column), quad = shift_right_unsigned(column, s_.integer(2));
    const Value quads = shift_right_unsigned(all_columns_, s_.integer(2));
    const Quad bias = bias_quad_at(s_, plain, s_.select(exists, quad, zero));
    Quad all = accumulators_at(s_, sums, row * sums.pitch + own);
    for (std::size_t q = 0; q < 4; ++q) all[q] = all[q] + bias[q];
    all = between.finished_quad(s_, s_.select(exists, at.pixel * quads + quad, zero), all);
    for (Value& x : all) x = s_.select(exists, centred(x, zero_point_), nothing);
    store_at(s_, sums, row * sums.pitch + own, all);
  });
  s_.barrier();
}

Quad FusedDepthwise::window(const TileAccumulators& sums, Value out_y, Value out_x) const {
  const Value zero = s_.integer(0), own = s_.local() % s_.integer(wide_);
  const bool real = is_float(view_.in(0).dtype);
  const Value nothing = real ? s_.real(0) : zero;
  const Value top = out_y * down_.stride - down_.before - y_, left = out_x * across_.stride - across_.before - x_;
  const std::int64_t across = view_.in(1).shape.size(1);
  std::array<std::optional<Value>, 4> all;
  for (std::size_t tap = 0; tap < weights_.size(); ++tap) {
    const auto number = static_cast<std::int64_t>(tap);
    const Value y = top + number / across, x = left + number % across;
    const Value inside = below_unsigned(y, height_) & below_unsigned(x, width_);
    const Value row = s_.select(inside, y * width_ + x, zero) % s_.integer(std::int64_t{sums.rows});
    const Quad pixel = made_at(s_, sums, row * sums.pitch + own, real),
               by = s_.numbers(weights_[tap], view_.in(1).dtype);
    for (std::size_t q = 0; q < 4; ++q) {
      const Value from = s_.select(inside, pixel[q], nothing), weight = centred(by[q], weight_zero_point_);
      all[q] = all[q] ? add_product(*all[q], from, weight) : from * weight;
    }
  }
  Quad made;
  for (std::size_t q = 0; q < 4; ++q) made[q] = *all[q] + (*bias_)[q];
  return made;
}

void FusedDepthwise::take(const TileAccumulators& sums, const Finish& between, const tosa::View& plain) const {
  finish(sums, between, plain);
  const Value column = first_column_ + s_.local() % s_.integer(wide_) * 4;
  const Value pixels = out_width_ * out_height_, step = s_.integer(invocations_ / wide_);
  const Value quads = shift_right_unsigned(all_columns_, s_.integer(2));
  s_.loop(s_.integer(0), pixels, step, [&](Value begin) {
    const Value number = begin + s_.local() / s_.integer(wide_);
    const Value y = out_y_ + number / out_width_, x = out_x_ + number % out_width_;
    const Value exists = exists_ & (number < pixels) & (y < down_.out) & (x < across_.out) & there(column);
    const Value pixel = (image_ * down_.out + y) * across_.out + x;
    const Value at = s_.select(exists, pixel * quads + shift_right_unsigned(column, s_.integer(2)), s_.integer(0));
    const Quad all = end_.finished_quad(s_, at, window(sums, y, x));
    s_.when(exists, [&] { end_.store_finished(s_, at, all); });
  });
}

}  // namespace tosaic::shaders
