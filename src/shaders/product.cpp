// SPDX-License-Identifier: Apache-2.0
#include "shaders/product.h"

#include <functional>

#include "plan/views.h"
#include "shaders/block_place.h"
#include "shaders/convolution_groups.h"
#include "shaders/fetched_operand.h"
#include "shaders/fused_depthwise.h"
#include "shaders/matmul_tile.h"
#include "shaders/product_tile.h"
#include "shaders/quantised_matrix.h"
#include "shaders/split_depth.h"
#include "shaders/strided_operand.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

std::int64_t fours_in(std::int64_t n) { return (n + 3) / 4; }

// What is given to the kernel; numbers as its parameters. Of quantised values an element is a word of four.
struct Sides {
  Windows& windows;
  Fetched &left, &right;
  Value depth;  // vectors of four that there are along the depth
  Value rows, columns;
  Value deep;  // rows of the right factor
  // Where the right factor begins, and how far apart its rows lie; or its columns, of which vectors are read.
  Value right_begin, right_pitch;
  bool by_columns = false;
  // Do tiles divide the depth of plain rows, and the columns as well? Then nothing that is read is beyond.
  bool even_rows = false, even_columns = false;
  std::optional<FirstSums> begin = {};        // factors are quantised values
  FetchedWeights* quantised_right = nullptr;  // instead of the right one
};

class TiledProduct {
 public:
  TiledProduct(Kernel& s, const ProductTile& tile, DType result)
      : s_(s),
        tile_(tile),
        kind_(is_float(result) ? Kind::real : Kind::integer),
        team_(s.local() / s.integer(tile.team())),
        own_(s.local() % s.integer(tile.team())),
        place_(s, own_, down(), across()) {
    memory_ = s.shared(kind_, tile.shared());
  }

  Value first_row(Value tile) { return tile * tile_.rows; }
  // The row of the left factor that place i of this invocation reads.
  Value left_row(std::uint32_t i) {
    const std::uint32_t across = tile_.depth / 4;
    return own_ / s_.integer(across) + static_cast<std::int64_t>(i * (tile_.team() / across));
  }

  // Of `steps` steps from `begin` on.
  void sum(Sides& sides, Value begin, Value steps, Value first_column) {
    const std::vector<Vector> first = first_sums(sides, first_column);
    for (std::uint32_t i = 0; i < tile_.own_rows * tile_.own_columns / 4; ++i)
      sums_.push_back(s_.variable(first[i % first.size()]));
    fetch(sides, begin, first_column);
    s_.loop(s_.integer(0), steps, s_.integer(1), [&](Value step) {
      share(sides);
      s_.barrier();
      const Value next = step + 1;
      s_.when(next < steps, [&] { fetch(sides, begin + next, first_column); });
      s_.loop(
          s_.integer(0), s_.integer(tile_.depth / 4), s_.integer(1), [&](Value k) { multiply(sides, k); },
          Unrolling::all);
      s_.barrier();
    });
  }

  void give(const Sink& sink, Value first_row) {
    for (std::uint32_t pass = 0; pass < tile_.passes; ++pass) {
      if (pass > 0) s_.barrier();
      sink.take(shared_accumulators(pass), first_row + pass * (tile_.rows / tile_.passes));
    }
  }
  TileAccumulators shared_accumulators(std::uint32_t pass) {
    share_sums(pass);
    return {
        memory_, kind_, tile_.rows / tile_.passes, tile_.columns, tile_.split, tile_.columns / 4, tile_.invocations()};
  }

 private:
  Value zero() { return kind_ == Kind::real ? s_.real(0) : s_.integer(0); }
  Value begin_of_left() { return team_ * tile_.left(); }
  Value begin_of_right() { return team_ * tile_.right() + tile_.split * tile_.left(); }

  void fetch(Sides& sides, Value step, Value first_column) {
    const std::uint32_t across = tile_.depth / 4;
    const Value part = step * tile_.split + team_;
    const Value vector = part * across + own_ % s_.integer(across);
    if (sides.even_rows)
      sides.windows.fetch(vector);
    else
      sides.windows.fetch(vector, sides.depth);
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i)
      if (sides.by_columns)
        fetch_of_column(sides, i, part, first_column);
      else
        fetch_of_row(sides, i, part, first_column);
  }

  void fetch_of_row(Sides& sides, std::uint32_t i, Value part, Value first_column) {
    const std::uint32_t wide = tile_.columns / 4;
    const Value column = shift_right_unsigned(first_column, s_.integer(2)) + own_ % s_.integer(wide);
    const Value left = sides.columns - column * 4;
    const Value k = part * tile_.depth + own_ / s_.integer(wide) + static_cast<std::int64_t>(i * (tile_.team() / wide));
    if (sides.quantised_right) return sides.quantised_right->fetch(i, column, k, (k < sides.deep) & (left > 0));
    fetch_right(sides, i, sides.right_begin + k * sides.right_pitch + sides.right.scaled(column),
                (k < sides.deep) & (left > 0), left);
  }
  // Of column `own / across` of those that are read at once, the vector along the depth.
  void fetch_of_column(Sides& sides, std::uint32_t i, Value part, Value first_column) {
    const std::uint32_t across = tile_.depth / 4;
    const Value k = part * across + own_ % s_.integer(across), column = first_column + right_column(i);
    const Value left = sides.deep - k * 4;
    fetch_right(sides, i, sides.right_begin + column * sides.right_pitch + sides.right.scaled(k),
                (column < sides.columns) & (left > 0), left);
  }
  static void fetch_right(Sides& sides, std::uint32_t i, Value at, Value inside, Value left) {
    if (sides.even_columns)
      sides.right.fetch(i, at);
    else
      sides.right.fetch(i, at, inside, left);
  }
  Value right_column(std::uint32_t i) {
    const std::uint32_t across = tile_.depth / 4;
    return own_ / s_.integer(across) + static_cast<std::int64_t>(i * (tile_.team() / across));
  }

  void share(Sides& sides) {
    const std::uint32_t across = tile_.depth / 4;
    for (std::uint32_t i = 0; i < tile_.left_reads(); ++i)
      s_.store(memory_, begin_of_left() + left_row(i) * (across + 1) + own_ % s_.integer(across), sides.left.vector(i));
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i) {
      const Vector v = sides.quantised_right ? sides.quantised_right->vector(i) : sides.right.vector(i);
      if (!sides.by_columns) {
        s_.store(memory_, begin_of_right() + own_ + i * tile_.team(), v);
        continue;
      }
      const Value column = right_column(i), four = s_.integer(4);
      const Value first = begin_of_right() + own_ % s_.integer(across) * tile_.columns + column / four;
      for (std::uint32_t q = 0; q < 4; ++q)
        s_.store(memory_, first + q * (tile_.columns / 4), column % four, lane(v, q));
    }
  }

  // Rows and vectors of columns of an invocation lie as far apart as there are invocations along them.
  std::uint32_t down() const { return tile_.rows / tile_.own_rows; }
  std::uint32_t across() const { return tile_.columns / tile_.own_columns; }

  // By vectors of an invocation's columns.
  std::vector<Vector> first_sums(const Sides& sides, Value first_column) {
    if (!sides.begin) return {s_.splat(zero())};
    std::vector<Vector> sums;
    const Value factor = s_.select(team_ == s_.integer(0), sides.begin->factor, zero());
    for (std::uint32_t c = 0; c < tile_.own_columns / 4; ++c) {
      const Value column = first_column + (place_.column + c * across()) * 4;
      const Value at = s_.select(column < sides.columns, shift_right_unsigned(column, s_.integer(2)), zero());
      sums.push_back(s_.vector(sides.begin->at(s_, at)) * factor);
    }
    return sums;
  }

  Vector product(const Sides& sides, Vector b, Value a) {
    if (!sides.begin) return b * a;
    Quad dots;
    for (Word q = 0; q < 4; ++q) dots[q] = s_.dot_of_int8(lane(b, q), a);
    return s_.vector(dots);
  }

  void multiply(const Sides& sides, Value k) {
    k = k % s_.integer(tile_.depth / 4);  // as the loop has it, said so that it is seen
    const std::uint32_t stride = tile_.depth / 4 + 1, wide = tile_.columns / 4;
    const Value left = begin_of_left() + place_.row * stride + k,
                right = begin_of_right() + k * (4 * wide) + place_.column;
    std::vector<Vector> a, sums;
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) a.push_back(s_.load(memory_, left + r * down() * stride));
    for (const VectorVariable& sum : sums_) sums.push_back(sum.get());
    for (std::uint32_t q = 0; q < 4; ++q)
      for (std::uint32_t c = 0; c < tile_.own_columns / 4; ++c) {
        const Vector b = s_.load(memory_, right + (q * wide + c * across()));
        for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
          Vector& sum = sums[r * (tile_.own_columns / 4) + c];
          sum = sum + product(sides, b, lane(a[r], q));
        }
      }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
  }

  void share_sums(std::uint32_t pass) {
    const std::uint32_t wide = tile_.columns / 4, own = tile_.own_rows / tile_.passes;
    const Value begin = team_ * (tile_.rows / tile_.passes * wide) + place_.row * wide + place_.column;
    for (std::uint32_t r = 0; r < own; ++r)
      for (std::uint32_t c = 0; c < tile_.own_columns / 4; ++c)
        s_.store(memory_, begin + (r * down() * wide + c * across()),
                 sums_[(pass * own + r) * (tile_.own_columns / 4) + c].get());
    s_.barrier();
  }

  Kernel& s_;
  const ProductTile tile_;
  const Kind kind_;
  Shared memory_;
  Value team_, own_;  // this invocation's team, and its number there
  BlockPlace place_;
  std::vector<VectorVariable> sums_;
};

Dim tiles_along(const Dim& n, std::uint32_t by) { return ceil_div(n, std::int64_t{by}); }

// Reads that need not ask what is there are another shader: for products that are large.
bool is_worth_more_modules(const ProductTile& tile) { return tile.rows * tile.columns >= 512; }

}  // namespace

std::int64_t count_side_by_side(const Work& work, const Node& node) {
  const auto shape_of = [&](const Node& n) { return work.uses.type(n.inputs[1]).shape; };
  const std::function<std::int64_t(ValueId)> others_of = [&](ValueId v) {
    std::int64_t count = 0;
    for (const std::uint32_t user : work.uses.users[v]) {
      const Node& other = work.uses.node(user);
      if (plan::is_view(other))
        count += others_of(other.outputs[0]);
      else if (&other != &node && other.op == node.op && other.inputs[0] == v && shape_of(other) == shape_of(node))
        ++count;
    }
    return count;
  };
  return 1 + others_of(plan::skip_views(work.graph, work.uses.producer, node.inputs[0]));
}

Dim rows_of_product(const tosa::View& view) {
  std::vector<Dim> pixels = view.out().shape.dims();
  pixels.pop_back();
  return product_of(pixels);
}

bool has_narrow_sums(const tosa::View& view) {
  return storage_size(view.out().dtype) <= 4 && storage_size(view.in(0).dtype) <= 4;
}
bool has_tiles(const tosa::View& view) { return has_narrow_sums(view) && !view.constant(1).null(); }

bool is_plain(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return weight.elements() == weight.size(0) * weight.size(weight.rank() - 1) && view.all_are("stride", 1) &&
         view.all_are("pad", 0);
}

bool takes_dot_convolution(const tosa::View& view) {
  const Shape& in = view.in(0).shape;
  return view.in(0).dtype == DType::i8 && view.in(1).dtype == DType::i8 && has_tiles(view) &&
         is_multiple(in[in.rank() - 1], 4) && view.constant_integers(3) && view.constant_integers(4)->at(0) == 0;
}

namespace {

// Rows are the pixels of a region, whose sums go on through the windows of what stands behind.
MadeList tiled_before_depthwise(const Work& work, const Node& node, const Finish& end, bool dots) {
  const tosa::View view(work.graph, node), behind(work.graph, *end.behind()->node);
  const std::int64_t columns = view.out().shape.size(3), channels = view.in(0).shape.size(3),
                     elements = dots ? channels / 4 : channels, depth = fours_in(elements);
  const auto chosen = region_tile(behind, elements, region_tiles(), clocks_of_regions);
  if (!chosen) return std::nullopt;
  const auto& [tile, regions] = *chosen;
  const Dim across = tiles_along(columns, tile.columns);
  Kernel s(work, "conv2d+depthwise_conv2d", Groups{across * regions.count(), tile.invocations()});
  TiledProduct product(s, tile, view.out().dtype);
  const Value tiles_across = s.param(across), first_column = s.group() % tiles_across * tile.columns;
  const Value all_columns = s.param(columns), all_depth = s.param(depth);
  FusedDepthwise fused_windows(s, *end.behind(), regions, s.group() / tiles_across, first_column, all_columns,
                               tile.columns, tile.invocations());
  const auto in_zero = zero_point(s, view, 0, 3);
  Fetched left(s, view.in(0).dtype, in_zero, channels, dots ? Fetched::As::int8 : Fetched::As::floats);
  const DType factor = dots ? DType::i32 : view.in(1).dtype;
  Fetched right(s, factor, dots ? std::nullopt : zero_point(s, view, 1, 4), 4);
  left.bind(node.inputs[0]);
  const Bytes& weights = view.constant(1);
  right.bind(dots ? packed_columns(weights, columns, channels, left.width())
                  : packed_weights(weights, factor, columns, 1, elements));
  Windows windows(s, {}, s.param(channels), s.integer(0), left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) {
    const FusedDepthwise::Window at = fused_windows.place(product.left_row(i));
    windows.add_pixel(at.exists, at.pixel);
  }
  Sides sides{windows,       left,         right,
              all_depth,     s.integer(0), all_columns,
              all_depth * 4, s.integer(0), dots ? all_depth : right.pitch(all_columns),
              dots};
  if (dots) sides.begin = first_sums(s, weights, columns, *in_zero);
  fused_windows.prepare();
  const std::int64_t steps = tiles_along(depth, tile.depth / 4 * tile.split).value();
  product.sum(sides, s.integer(0), s.param(steps), first_column);
  fused_windows.take(product.shared_accumulators(0), end, view);
  return one(s);
}

MadeList tiled_convolution(const Work& work, const Node& node, const Finish& end, bool dots) {
  if (end.behind()) return tiled_before_depthwise(work, node, end, dots);
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape;
  const ConvolutionGroups groups(view);
  const std::int64_t columns = groups.columns, channels = groups.channels;
  const Dim rows = rows_of_product(view);
  const auto spatial = static_cast<std::size_t>(in.rank() - 2);
  const std::int64_t taps = weight.elements() / std::max<std::int64_t>(weight.size(0) * channels, 1);
  // Along the depth, an element is a number or a word of four quantised values.
  const std::int64_t elements = dots ? channels / 4 : channels;
  const auto [tile, parts] =
      divided({groups.count * count_side_by_side(work, node), most(rows), columns, taps * elements},
              groups.count == 1 && can_split_depth(view));
  const Dim across = tiles_along(columns, tile.columns), tiles_of_each = across * tiles_along(rows, tile.rows),
            tiles = tiles_of_each * groups.count;
  const std::int64_t depth = taps * fours_in(elements);
  const std::int64_t steps = tiles_along(depth, tile.depth / 4 * tile.split).value();
  const SplitDepth split{parts, most(rows), columns, is_float(view.out().dtype) ? DType::f32 : DType::i32};
  const std::int64_t own_steps = (steps + split.parts - 1) / split.parts;
  Kernel s(work, std::string(node.op.base()), Groups{tiles * split.parts, tile.invocations()});
  TiledProduct product(s, tile, view.out().dtype);
  const bool splits = split.parts > 1;
  Value group = s.group(), all_rows = s.param(rows);
  const Value part = part_of(s, split, tiles, group, all_rows);
  const ConvolvedGroup own_group(s, groups, tiles_of_each, group, all_rows);
  const auto in_zero = zero_point(s, view, 0, 3);
  Fetched left(s, view.in(0).dtype, in_zero, channels, dots ? Fetched::As::int8 : Fetched::As::floats);
  const DType factor = dots ? DType::i32 : view.in(1).dtype;
  Fetched right(s, factor, dots ? std::nullopt : zero_point(s, view, 1, 4), 4);
  auto pixels_apart = own_group.bind(left, view, !dots ? 4 : channels % 16 == 0 ? 16 : 4);
  const bool plain = is_plain(view) && !pixels_apart;
  std::vector<Axis> axes;
  if (!plain)
    for (std::size_t i = 0; i < spatial; ++i)
      axes.push_back(axis_of(s, view, i, weight.size(1 + static_cast<int>(i)), true));
  const Bytes& weights = view.constant(1);
  right.bind(dots ? packed_columns(weights, groups.count * columns * taps, channels, left.width())
                  : packed_weights(weights, factor, columns, taps, elements, 4, groups.count));
  const Value all_columns = s.param(columns), all_depth = s.param(depth);
  Windows windows(s, std::move(axes), s.param(channels), all_rows, left, std::move(pixels_apart));
  const Value tiles_across = s.param(across);
  const Value first_row = group / tiles_across * tile.rows, first_column = group % tiles_across * tile.columns;
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) windows.add_row(first_row + product.left_row(i), std::nullopt);
  const Value right_begin = own_group.before(dots ? columns * depth : depth * 4 * fours_in(columns));
  Sides sides{windows,       left,        right,
              all_depth,     all_rows,    all_columns,
              all_depth * 4, right_begin, dots ? all_depth : right.pitch(all_columns),
              dots};
  const bool even =
      is_worth_more_modules(tile) && depth * 4 % (tile.depth * tile.split) == 0 && steps % split.parts == 0;
  sides.even_rows = even && plain && left.is_whole();
  sides.even_columns = even && columns % tile.columns == 0;
  if (dots) {
    sides.begin = own_group.first_sums(first_sums(s, weights, weight.size(0), *in_zero));
    sides.begin->factor = s.select(part == s.integer(0), sides.begin->factor, s.integer(0));
  }
  Sink sink(s, end, splits ? nullptr : &view, columns % 4 == 0, own_group.column(first_column), all_rows,
            own_group.column(all_columns), part * s.param(split.rows * split.columns),
            own_group.columns_apart(all_columns));
  if (splits)
    sink.store_into(s.write_scratch(split.type, split.scratch()));
  else
    sink.prepare(tile.columns, tile.invocations());
  const Value own = s.param(own_steps);
  product.sum(sides, splits ? part * own : s.integer(0), own, first_column);
  product.give(sink, first_row);
  return made_with_parts(s, work, node, end, split);
}

}  // namespace

MadeList make_tiled_convolution(const Work& work, const Node& node, const Finish& end) {
  return tiled_convolution(work, node, end, false);
}
MadeList make_dot_convolution(const Work& work, const Node& node, const Finish& end) {
  return tiled_convolution(work, node, end, true);
}

MadeList make_quantised_tiled_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows, depth = matrix->depth, steps_of = fours_in(depth);
  const Dim rows = rows_of_product(view);
  const ProductTile tile = tile_for({1, most(rows), columns, depth});
  const Dim across = tiles_along(columns, tile.columns);
  Kernel s(work, name_of_product(node), Groups{across * tiles_along(rows, tile.rows), tile.invocations()});
  TiledProduct product(s, tile, DType::f32);
  Fetched left(s, view.in(0).dtype, std::nullopt, depth), none(s, DType::f32, std::nullopt, 4);
  left.bind(node.inputs[0]);
  FetchedWeights fetched_weights(s, *matrix);
  const Value all_rows = s.param(rows), all_columns = s.param(columns), deep = s.param(depth),
              tiles_across = s.param(across), all_depth = s.param(steps_of);
  const Value first_row = s.group() / tiles_across * tile.rows, first_column = s.group() % tiles_across * tile.columns;
  Windows windows(s, {}, deep, all_rows, left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) {
    const Value row = first_row + product.left_row(i);
    windows.add_plain_row(row, row * left.pitch(deep));
  }
  Sides sides{windows, left, none, all_depth, all_rows, all_columns, deep, s.integer(0), all_columns};
  sides.quantised_right = &fetched_weights;
  Sink sink(s, end, &view, columns % 4 == 0, first_column, all_rows, all_columns, s.integer(0), all_columns);
  sink.prepare(tile.columns, tile.invocations());
  product.sum(sides, s.integer(0), s.param(tiles_along(steps_of, tile.depth / 4 * tile.split)), first_column);
  product.give(sink, first_row);
  return one(s);
}

MadeList make_tiled_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const Dim batches = out[0], rows = out[1], columns = out[2], depth = view.in(0).shape[2];
  const ProductTile tile = tile_for({most(batches), most(rows), most(columns), most(depth)});
  const TiledMatmul size{batches, rows, columns, depth, tile.rows, tile.columns};
  Kernel s(work, "matmul", Groups{size.tiles(), tile.invocations()});
  TiledProduct product(s, tile, view.out().dtype);
  const StridedMatrices a = find_strided_operand(work, node.inputs[0], 4, false),
                        b = find_strided_operand(work, node.inputs[1], 4, true);
  const bool by_columns = b.is_by_columns();
  Fetched left(s, view.in(0).dtype, zero_point(s, view, 0, 2), depth);
  Fetched right(s, view.in(1).dtype, zero_point(s, view, 1, 3), by_columns ? depth : columns);
  left.bind(a.value);
  right.bind(b.value);
  const MatmulTile at = matmul_tile(s, size, {left, a}, {right, b});
  Windows windows(s, {}, at.all_depth, at.own_rows, left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i)
    windows.add_plain_row(at.first_row + product.left_row(i),
                          at.left_begin + (at.first_row + product.left_row(i)) * at.left_rows);
  Sides sides{windows,        left,           right,        windows.vectors_of_channels(),
              at.all_rows,    at.all_columns, at.all_depth, at.right_begin,
              at.right_pitch, by_columns};
  const bool even = is_worth_more_modules(tile) && is_multiple(depth, tile.depth * tile.split);
  sides.even_rows = even && left.is_whole();
  sides.even_columns = even && right.is_whole() && is_multiple(columns, tile.columns);
  product.sum(sides, s.integer(0), s.param(tiles_along(ceil_div(depth, 4), tile.depth / 4 * tile.split)),
              at.first_column);
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{end.output(), {rows * columns}, columns});
  const bool by_quads = is_multiple(columns, 4) && is_multiple(apart.rows, 4) && apart.batches.are_multiples(4);
  const Sink sink(s, end, nullptr, by_quads, at.first_column, at.own_rows, at.all_columns,
                  apart.batches.begin(s, at.batch), s.param(apart.rows));
  product.give(sink, at.first_row);
  return one(s);
}

}  // namespace tosaic::shaders
