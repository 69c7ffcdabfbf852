// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of halves, whose sums of 32 bits subgroups make by matrices of 16 x 16: the tiles of
// both factors lie in memory that the group shares, as in product.cpp.
#include "shaders/fetched_operand.h"
#include "shaders/fused_depthwise.h"
#include "shaders/matmul_tile.h"
#include "shaders/matrix_tile.h"
#include "shaders/product.h"
#include "shaders/strided_operand.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

using spirv::MatrixUse;

constexpr std::int64_t unit = 8;  // halves in a vector
std::int64_t vectors_in(std::int64_t n) { return (n + unit - 1) / unit; }
Dim tiles_along(const Dim& n, std::uint32_t by) { return ceil_div(n, std::int64_t{by}); }

// What is given to the kernel; numbers as its parameters.
struct Sides {
  Windows& windows;
  Fetched &left, &right;
  Value depth;  // vectors that there are along the depth
  Value columns;
  Value deep;  // rows of the right factor
  // Where the right factor begins, and how far apart its rows lie; or its columns, of which vectors are read.
  Value right_begin, right_pitch;
  bool by_columns = false;
  // Do tiles divide the depth of plain rows, and the columns as well? Then nothing that is read is beyond.
  bool even_rows = false, even_columns = false;
};

class MatrixProduct {
 public:
  MatrixProduct(Kernel& s, const MatrixTile& tile) : s_(s), tile_(tile) {
    memory_ = s.shared(Kind::integer, tile.shared());
    team_ = s.local() / s.integer(tile.team());
    own_ = s.local() % s.integer(tile.team());
    const Value subgroup = s.subgroup(), in_team = subgroup % s.integer(tile.down * tile.across);
    sum_team_ = subgroup / s.integer(tile.down * tile.across);
    row_ = in_team / s.integer(tile.across);
    column_ = in_team % s.integer(tile.across);
  }

  // The row of the left factor that place i of this invocation reads.
  Value left_row(std::uint32_t i) {
    return own_ / s_.integer(deep()) + static_cast<std::int64_t>(i * (tile_.team() / deep()));
  }

  // Of `steps` steps from `begin` on, a multiple of as many as are read ahead.
  void sum(Sides& sides, Value begin, Value steps, Value first_column) {
    for (std::uint32_t i = 0; i < tile_.own_down() * tile_.own_across(); ++i) sums_.push_back(s_.zero_matrix());
    const auto from = [&](Value at, std::uint32_t behind) { return behind ? at + std::int64_t{behind} : at; };
    for (std::uint32_t set = 0; set < tile_.ahead; ++set) fetch(sides, from(begin, set), first_column, set);
    s_.loop(s_.integer(0), steps, s_.integer(tile_.ahead), [&](Value first) {
      for (std::uint32_t set = 0; set < tile_.ahead; ++set) {
        const Value next = first + std::int64_t{tile_.ahead + set};
        share(sides, set);
        s_.barrier();
        s_.when(next < steps, [&] { fetch(sides, begin + next, first_column, set); });
        multiply(sides);
        s_.barrier();
      }
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
    return {memory_,     Kind::real,        tile_.rows / tile_.passes, tile_.columns,
            tile_.split, tile_.sum_pitch(), tile_.invocations()};
  }

 private:
  std::uint32_t deep() const { return tile_.depth / unit; }  // vectors
  std::uint32_t wide() const { return tile_.columns / unit; }
  Value left_of(Value team) { return team * tile_.left(); }
  Value right_of(Value team) { return team * tile_.right() + tile_.split * tile_.left(); }
  std::uint32_t right_pitch(const Sides& sides) const {
    return sides.by_columns ? tile_.left_pitch() : tile_.right_pitch();
  }
  Value right_place(std::uint32_t i) { return own_ + static_cast<std::int64_t>(i * tile_.team()); }

  void fetch(Sides& sides, Value step, Value first_column, std::uint32_t set) {
    const Value part = step * tile_.split + team_;
    const Value vector = part * deep() + own_ % s_.integer(deep());
    if (sides.even_rows)
      sides.windows.fetch(vector, set);
    else
      sides.windows.fetch(vector, sides.depth, set);
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i)
      if (sides.by_columns)
        fetch_of_column(sides, i, part, first_column, set);
      else
        fetch_of_row(sides, i, part, first_column, set);
  }

  void fetch_of_row(Sides& sides, std::uint32_t i, Value part, Value first_column, std::uint32_t set) {
    const Value place = right_place(i), k = part * tile_.depth + place / s_.integer(wide());
    const Value column = shift_right_unsigned(first_column, s_.integer(3)) + place % s_.integer(wide());
    const Value left = sides.columns - column * unit;
    fetch_right(sides, set * tile_.right_reads() + i,
                sides.right_begin + k * sides.right_pitch + sides.right.scaled(column), (k < sides.deep) & (left > 0),
                left);
  }
  void fetch_of_column(Sides& sides, std::uint32_t i, Value part, Value first_column, std::uint32_t set) {
    const Value place = right_place(i), k = part * deep() + place % s_.integer(deep());
    const Value column = first_column + place / s_.integer(deep()), left = sides.deep - k * unit;
    fetch_right(sides, set * tile_.right_reads() + i,
                sides.right_begin + column * sides.right_pitch + sides.right.scaled(k),
                (column < sides.columns) & (left > 0), left);
  }
  static void fetch_right(Sides& sides, std::uint32_t place, Value at, Value inside, Value left) {
    if (sides.even_columns)
      sides.right.fetch(place, at);
    else
      sides.right.fetch(place, at, inside, left);
  }

  void share(Sides& sides, std::uint32_t set) {
    for (std::uint32_t i = 0; i < tile_.left_reads(); ++i)
      s_.store(memory_, left_of(team_) + left_row(i) * tile_.left_pitch() + own_ % s_.integer(deep()),
               sides.left.vector(set * tile_.left_reads() + i));
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i) {
      const Value place = right_place(i), across = s_.integer(sides.by_columns ? deep() : wide());
      s_.store(memory_, right_of(team_) + place / across * right_pitch(sides) + place % across,
               sides.right.vector(set * tile_.right_reads() + i));
    }
  }

  void multiply(const Sides& sides) {
    const std::uint32_t down = tile_.own_down(), across = tile_.own_across(), vectors = matrix_side / unit;
    const Value left = left_of(sum_team_) + row_ * (matrix_side * tile_.left_pitch()),
                right = right_of(sum_team_) +
                        column_ * (across * (sides.by_columns ? matrix_side * right_pitch(sides) : vectors));
    std::vector<Matrix> sums;
    for (const MatrixVariable& sum : sums_) sums.push_back(sum.get());
    for (std::uint32_t k = 0; k < tile_.depth / matrix_side; ++k) {
      std::vector<Matrix> a;
      for (std::uint32_t r = 0; r < down; ++r)
        a.push_back(s_.load_matrix(memory_, left + (r * tile_.down * matrix_side * tile_.left_pitch() + k * vectors),
                                   tile_.left_pitch(), MatrixUse::left));
      for (std::uint32_t c = 0; c < across; ++c) {
        const std::uint32_t pitch = right_pitch(sides), side = matrix_side * pitch;
        const std::uint32_t at = sides.by_columns ? c * side + k * vectors : k * side + c * vectors;
        const Matrix b = s_.load_matrix(memory_, right + at, pitch, MatrixUse::right, sides.by_columns);
        for (std::uint32_t r = 0; r < down; ++r) sums[r * across + c] = s_.multiply_add(a[r], b, sums[r * across + c]);
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
  }

  // A subgroup's matrices lie as far apart along the rows as there are subgroups: a pass has neighbouring rows.
  void share_sums(std::uint32_t pass) {
    const std::uint32_t own = tile_.own_down() / tile_.passes, across = tile_.own_across(), vectors = matrix_side / 4;
    const Value begin = sum_team_ * (tile_.rows / tile_.passes * tile_.sum_pitch()) +
                        row_ * (matrix_side * tile_.sum_pitch()) + column_ * (across * vectors);
    for (std::uint32_t r = 0; r < own; ++r)
      for (std::uint32_t c = 0; c < across; ++c)
        s_.store_matrix(memory_, begin + (r * tile_.down * matrix_side * tile_.sum_pitch() + c * vectors),
                        tile_.sum_pitch(), sums_[(pass * own + r) * across + c].get());
    s_.barrier();
  }

  Kernel& s_;
  const MatrixTile tile_;
  Shared memory_;
  Value team_, own_;               // as a reader of factors
  Value sum_team_, row_, column_;  // as one of a subgroup
  std::vector<MatrixVariable> sums_;
};

bool is_f16_matrix(const tosa::View& view) {
  return view.in(0).dtype == DType::f16 && view.in(1).dtype == DType::f16 && is_float(view.out().dtype);
}

// Rows are the pixels of a region, whose sums go on through the windows of what stands behind.
MadeList matrices_before_depthwise(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node), behind(work.graph, *end.behind()->node);
  const std::int64_t columns = view.out().shape.size(3), channels = view.in(0).shape.size(3),
                     depth = vectors_in(channels);
  const auto chosen = region_tile(behind, depth * unit, region_matrix_tiles(), clocks_of_matrices);
  if (!chosen) return std::nullopt;
  const auto& [tile, regions] = *chosen;
  const Dim across = tiles_along(columns, tile.columns);
  Kernel s(work, "conv2d+depthwise_conv2d", Groups{across * regions.count(), tile.invocations()});
  MatrixProduct product(s, tile);
  const Value tiles_across = s.param(across), first_column = s.group() % tiles_across * tile.columns;
  const Value all_columns = s.param(columns), all_depth = s.param(depth);
  FusedDepthwise fused_windows(s, *end.behind(), regions, s.group() / tiles_across, first_column, all_columns,
                               tile.columns, tile.invocations());
  Fetched left(s, DType::f16, std::nullopt, channels, Fetched::As::f16);
  Fetched right(s, DType::f16, std::nullopt, unit, Fetched::As::f16);
  left.bind(node.inputs[0]);
  right.bind(packed_weights(view.constant(1), DType::f16, columns, 1, channels, unit));
  Windows windows(s, {}, s.param(channels), s.integer(0), left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) {
    const FusedDepthwise::Window at = fused_windows.place(product.left_row(i));
    windows.add_pixel(at.exists, at.pixel);
  }
  Sides sides{windows, left, right, all_depth, all_columns, all_depth * unit, s.integer(0), right.pitch(all_columns)};
  fused_windows.prepare();
  product.sum(sides, s.integer(0), s.param(tiles_along(depth * unit, tile.depth * tile.split)), first_column);
  fused_windows.take(product.shared_accumulators(0), end, view);
  return one(s);
}

}  // namespace

bool takes_matrix_convolution(const tosa::View& view) { return is_f16_matrix(view) && has_tiles(view); }
bool takes_matrix_matmul(const tosa::View& view) { return is_f16_matrix(view); }

MadeList make_matrix_convolution(const Work& work, const Node& node, const Finish& end) {
  if (end.behind()) return matrices_before_depthwise(work, node, end);
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape;
  const std::int64_t columns = weight.size(0), channels = in.size(in.rank() - 1);
  const Dim rows = rows_of_product(view);
  const auto spatial = static_cast<std::size_t>(in.rank() - 2);
  const std::int64_t taps = weight.elements() / std::max<std::int64_t>(columns * channels, 1);
  const std::int64_t depth = taps * vectors_in(channels);
  const MatrixTile& tile = matrix_tile_for({1, most(rows), columns, depth * unit});
  const Dim across = tiles_along(columns, tile.columns), tiles = across * tiles_along(rows, tile.rows);
  const std::int64_t needed = tiles_along(depth * unit, tile.depth * tile.split).value(),
                     steps = (needed + tile.ahead - 1) / tile.ahead * tile.ahead;
  Kernel s(work, std::string(tosa::find(node.op)->name), Groups{tiles, tile.invocations()});
  MatrixProduct product(s, tile);
  const Value all_rows = s.param(rows);
  Fetched left(s, DType::f16, std::nullopt, channels, Fetched::As::f16);
  Fetched right(s, DType::f16, std::nullopt, unit, Fetched::As::f16);
  auto pixels_apart = bind_image(s, left, node.inputs[0], unit);
  const bool plain = is_plain(view) && !pixels_apart;
  std::vector<Axis> axes;
  if (!plain)
    for (std::size_t i = 0; i < spatial; ++i)
      axes.push_back(axis_of(s, view, i, weight.size(1 + static_cast<int>(i)), true));
  right.bind(packed_weights(view.constant(1), DType::f16, columns, taps, channels, unit));
  const Value all_columns = s.param(columns), all_depth = s.param(depth);
  Windows windows(s, std::move(axes), s.param(channels), all_rows, left, std::move(pixels_apart));
  const Value tiles_across = s.param(across);
  const Value first_row = s.group() / tiles_across * tile.rows, first_column = s.group() % tiles_across * tile.columns;
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) windows.add_row(first_row + product.left_row(i), std::nullopt);
  Sides sides{windows, left, right, all_depth, all_columns, all_depth * unit, s.integer(0), right.pitch(all_columns)};
  const bool even = depth * unit == steps * tile.depth * tile.split;
  sides.even_rows = even && plain && left.is_whole();
  sides.even_columns = even && columns % tile.columns == 0;
  Sink sink(s, end, &view, columns % 4 == 0, first_column, all_rows, all_columns, s.integer(0), all_columns);
  sink.prepare(tile.columns, tile.invocations());
  product.sum(sides, s.integer(0), s.param(steps), first_column);
  product.give(sink, first_row);
  return one(s);
}

MadeList make_matrix_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const std::int64_t batches = out.size(0), rows = out.size(1), columns = out.size(2), depth = view.in(0).shape.size(2);
  const MatrixTile& tile = matrix_tile_for_batches({batches, rows, columns, depth});
  const TiledMatmul size{batches, rows, columns, depth, tile.rows, tile.columns};
  Kernel s(work, "matmul", Groups{size.tiles(), tile.invocations()});
  MatrixProduct product(s, tile);
  const StridedMatrices a = find_strided_operand(work, node.inputs[0], unit, false),
                        b = find_strided_operand(work, node.inputs[1], unit, true);
  const bool by_columns = b.is_by_columns();
  Fetched left(s, DType::f16, std::nullopt, depth, Fetched::As::f16);
  Fetched right(s, DType::f16, std::nullopt, by_columns ? depth : columns, Fetched::As::f16);
  left.bind(a.value);
  right.bind(b.value);
  const MatmulTile at = matmul_tile(s, size, {left, a}, {right, b});
  Windows windows(s, {}, at.all_depth, at.own_rows, left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i)
    windows.add_plain_row(at.first_row + product.left_row(i),
                          at.left_begin + (at.first_row + product.left_row(i)) * at.left_rows);
  Sides sides{windows,        left,           right,     windows.vectors_of_channels(), at.all_columns, at.all_depth,
              at.right_begin, at.right_pitch, by_columns};
  const bool even = is_multiple(depth, tile.depth * tile.split);
  sides.even_rows = even && left.is_whole();
  sides.even_columns = even && right.is_whole() && is_multiple(columns, tile.columns);
  product.sum(sides, s.integer(0), s.param(tiles_along(depth, tile.depth * tile.split)), at.first_column);
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{end.output(), rows * columns, columns});
  const bool by_quads = is_multiple(columns, 4) && is_multiple(apart.rows, 4) && is_multiple(apart.batches, 4);
  const Sink sink(s, end, nullptr, by_quads, at.first_column, at.own_rows, at.all_columns,
                  at.batch * s.param(apart.batches), s.param(apart.rows));
  product.give(sink, at.first_row);
  return one(s);
}

}  // namespace tosaic::shaders
