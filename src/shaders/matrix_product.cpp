// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of f16 and of 8-bit integers, whose sums of 32 bits subgroups make by matrices:
// the tiles of both factors lie in memory that the group shares, as in product.cpp. What zero points ask for of weights
// is known before, what they ask for of activations is not (matrix_zero_points.h).
#include <bit>

#include "shaders/convolution_groups.h"
#include "shaders/fetched_operand.h"
#include "shaders/fused_depthwise.h"
#include "shaders/matmul_tile.h"
#include "shaders/matrix_tile.h"
#include "shaders/matrix_zero_points.h"
#include "shaders/product.h"
#include "shaders/split_depth.h"
#include "shaders/strided_operand.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

using spirv::MatrixUse;

std::int64_t vectors_in(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }
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
  // Do tiles divide the depth of plain rows, and the columns as well? Then nothing that is read is beyond.
  bool even_rows = false, even_columns = false;
};

class MatrixProduct {
 public:
  // By columns: the right factor's neighbours along the depth lie together, and not along its rows.
  MatrixProduct(Kernel& s, const MatrixTile& tile, bool by_columns)
      : s_(s), tile_(tile), by_columns_(by_columns), of_(tile.of) {
    memory_ = s.shared(Kind::integer, tile.shared(by_columns));
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

  void begin_with(const FirstSums& begin, Value first_column, Value columns) {
    const std::uint32_t wide = tile_.columns / 4, all = wide * tile_.split;
    const Value place = s_.local() % s_.integer(all), own = place % s_.integer(wide), zero = s_.integer(0);
    const Value factor = s_.select(place / s_.integer(wide) == zero, begin.factor, zero),
                quad = shift_right_unsigned(first_column, s_.integer(2)) + own;
    const Vector sums = s_.vector(begin.at(s_, s_.select(quad * 4 < columns, quad, zero)));
    s_.when(s_.local() < all, [&] { s_.store(memory_, place, sums * factor); });
    s_.barrier();
    const std::uint32_t across = tile_.own_across(), vectors = matrix_side / 4;
    const Value first = sum_team_ * wide + column_ * (across * vectors);
    for (std::uint32_t c = 0; c < across; ++c)
      first_sums_.push_back(s_.load_matrix(memory_, first + c * vectors, 0, MatrixUse::sum, false, of_));
    s_.barrier();
  }

  void centre(const ProductZeroPoints& zero_points) {
    zero_points_ = zero_points;
    if (!zero_points.left && !zero_points.right) return;
    const MatrixOnes ones(s_);
    s_.barrier();
    const auto make = [&](MatrixUse use, std::uint32_t sums, std::vector<MatrixVariable>& variables) {
      for (std::uint32_t i = 0; i < sums; ++i) variables.push_back(s_.zero_matrix(of_));
      return ones.load(use);
    };
    if (zero_points.right) ones_right_ = make(MatrixUse::right, tile_.own_down(), row_sums_);
    if (zero_points.left) ones_left_ = make(MatrixUse::left, tile_.own_across(), column_sums_);
  }

  // Of `steps` steps from `begin` on, a multiple of as many as are read ahead.
  void sum(Sides& sides, Value begin, Value steps, Value first_column) {
    for (std::uint32_t i = 0; i < tile_.own_down() * tile_.own_across(); ++i) {
      sums_.push_back(s_.zero_matrix(of_));
      if (!first_sums_.empty()) sums_.back().set(first_sums_[i % tile_.own_across()]);
    }
    const auto from = [&](Value at, std::uint32_t behind) { return behind ? at + std::int64_t{behind} : at; };
    for (std::uint32_t set = 0; set < tile_.ahead; ++set) fetch(sides, from(begin, set), first_column, set);
    const auto step = [&](Value first) {
      for (std::uint32_t set = 0; set < tile_.ahead; ++set) {
        const Value next = first + std::int64_t{tile_.ahead + set};
        share(sides, set);
        s_.barrier();
        s_.when(next < steps, [&] { fetch(sides, begin + next, first_column, set); });
        multiply();
        s_.barrier();
      }
    };
    // Written out several times it is no faster, and drivers compile it for longer.
    s_.loop(s_.integer(0), steps, s_.integer(tile_.ahead), step, Unrolling::none);
    add_zero_points();
  }

  void give(const Sink& sink, Value first_row) {
    for (std::uint32_t pass = 0; pass < tile_.passes; ++pass) {
      if (pass > 0) s_.barrier();
      sink.take(shared_accumulators(pass), first_row + pass * (tile_.rows / tile_.passes));
    }
  }
  TileAccumulators shared_accumulators(std::uint32_t pass) {
    share_sums(pass);
    return {memory_,
            of_ == MatrixOf::f16 ? Kind::real : Kind::integer,
            tile_.rows / tile_.passes,
            tile_.columns,
            tile_.split,
            tile_.sum_pitch(),
            tile_.invocations()};
  }

 private:
  std::uint32_t deep() const { return tile_.deep(); }
  std::uint32_t wide() const { return tile_.wide(); }
  Value left_of(Value team) { return team * tile_.left(); }
  Value right_of(Value team) { return team * tile_.right(by_columns_) + tile_.split * tile_.left(); }
  std::uint32_t right_pitch() const { return tile_.right_pitch(by_columns_); }
  Value right_place(std::uint32_t i) { return own_ + static_cast<std::int64_t>(i * tile_.team()); }

  void fetch(Sides& sides, Value step, Value first_column, std::uint32_t set) {
    const Value part = step * tile_.split + team_;
    const Value vector = part * deep() + own_ % s_.integer(deep());
    if (sides.even_rows)
      sides.windows.fetch(vector, set);
    else
      sides.windows.fetch(vector, sides.depth, set);
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i)
      if (by_columns_)
        fetch_of_column(sides, i, part, first_column, set);
      else
        fetch_of_row(sides, i, part, first_column, set);
  }

  void fetch_of_row(Sides& sides, std::uint32_t i, Value part, Value first_column, std::uint32_t set) {
    const Value place = right_place(i), k = part * tile_.depth + place / s_.integer(wide());
    const Value column =
        shift_right_unsigned(first_column, s_.integer(std::countr_zero(tile_.unit()))) + place % s_.integer(wide());
    const Value left = sides.columns - column * tile_.unit();
    fetch_right(sides, set * tile_.right_reads() + i,
                sides.right_begin + k * sides.right_pitch + sides.right.scaled(column), (k < sides.deep) & (left > 0),
                left);
  }
  void fetch_of_column(Sides& sides, std::uint32_t i, Value part, Value first_column, std::uint32_t set) {
    const Value place = right_place(i), k = part * deep() + place % s_.integer(deep());
    const Value column = first_column + place / s_.integer(deep()), left = sides.deep - k * tile_.unit();
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
      const Value place = right_place(i), across = s_.integer(by_columns_ ? deep() : wide());
      s_.store(memory_, right_of(team_) + place / across * right_pitch() + place % across,
               sides.right.vector(set * tile_.right_reads() + i));
    }
  }

  // Vectors from a matrix of the right factor to the next one, along its columns and along the depth.
  std::uint32_t right_across() const { return by_columns_ ? matrix_side * right_pitch() : matrix_side / tile_.unit(); }
  std::uint32_t right_down() const {
    return by_columns_ ? deep_of_matrix : deep_of_matrix * tile_.unit() * right_pitch();
  }

  void multiply() {
    const std::uint32_t down = tile_.own_down(), across = tile_.own_across();
    const Value left = left_of(sum_team_) + row_ * (matrix_side * tile_.left_pitch()),
                right = right_of(sum_team_) + column_ * (across * right_across());
    const auto values_of = [](const std::vector<MatrixVariable>& variables) {
      std::vector<Matrix> values;
      for (const MatrixVariable& v : variables) values.push_back(v.get());
      return values;
    };
    std::vector<Matrix> sums = values_of(sums_), rows = values_of(row_sums_), columns = values_of(column_sums_);
    for (std::uint32_t k = 0; k < deep() / deep_of_matrix; ++k) {
      std::vector<Matrix> a;
      for (std::uint32_t r = 0; r < down; ++r) {
        const std::uint32_t at = r * tile_.down * matrix_side * tile_.left_pitch() + k * deep_of_matrix;
        a.push_back(s_.load_matrix(memory_, left + at, tile_.left_pitch(), MatrixUse::left, false, of_));
        if (ones_right_) rows[r] = s_.multiply_add(a[r], *ones_right_, rows[r]);
      }
      for (std::uint32_t c = 0; c < across; ++c) {
        const std::uint32_t at = c * right_across() + k * right_down();
        const Matrix b = s_.load_matrix(memory_, right + at, right_pitch(), MatrixUse::right, by_columns_, of_);
        for (std::uint32_t r = 0; r < down; ++r) sums[r * across + c] = s_.multiply_add(a[r], b, sums[r * across + c]);
        if (ones_left_) columns[c] = s_.multiply_add(*ones_left_, b, columns[c]);
      }
    }
    const auto keep = [](const std::vector<MatrixVariable>& variables, const std::vector<Matrix>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) variables[i].set(values[i]);
    };
    keep(sums_, sums);
    keep(row_sums_, rows);
    keep(column_sums_, columns);
  }

  void add_zero_points() {
    const auto filled = [&](Value number) { return s_.filled_sum(number); };
    const Value none = s_.integer(0);
    std::optional<Matrix> products;
    if (ones_left_ && ones_right_) {
      const Value all = zero_points_.product();
      products = filled(s_.select(sum_team_ == none, all, none));  // once
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      Matrix sum = sums_[i].get();
      if (ones_right_) sum = sum + row_sums_[i / tile_.own_across()].get() * filled(none - *zero_points_.right);
      if (ones_left_) sum = sum + column_sums_[i % tile_.own_across()].get() * filled(none - *zero_points_.left);
      sums_[i].set(products ? sum + *products : sum);
    }
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

  static constexpr std::uint32_t deep_of_matrix = 2;  // vectors
  Kernel& s_;
  const MatrixTile tile_;
  const bool by_columns_;
  const MatrixOf of_;
  Shared memory_;
  Value team_, own_;               // as a reader of factors
  Value sum_team_, row_, column_;  // as one of a subgroup
  std::vector<MatrixVariable> sums_;
  std::vector<Matrix> first_sums_;  // of the own columns
  ProductZeroPoints zero_points_;
  std::optional<Matrix> ones_left_, ones_right_;
  std::vector<MatrixVariable> row_sums_, column_sums_;
};

bool is_f16_matrix(const tosa::View& view) {
  return view.in(0).dtype == DType::f16 && view.in(1).dtype == DType::f16 && is_float(view.out().dtype);
}
bool is_int8(const tosa::View& view) { return view.in(0).dtype == DType::i8; }
Fetched::As form_of(const tosa::View& view) { return is_int8(view) ? Fetched::As::int8 : Fetched::As::f16; }
std::int64_t unit_of(const tosa::View& view) { return Fetched::width_of(form_of(view)); }

// Tiles are chosen by how long those of f16 take, of which as many vectors take as long.
std::int64_t depth_in_halves(const tosa::View& view, std::int64_t depth) {
  return vectors_in(depth, unit_of(view)) * std::int64_t{Fetched::width_of(Fetched::As::f16)};
}
MatrixTile of_type(const tosa::View& view, const MatrixTile& tile) { return is_int8(view) ? tile.of_int8() : tile; }

// A convolution: constant weights as the right factor, by columns where they are integers.
struct Weights {
  bool by_columns;
  std::int64_t unit;
  ConvolutionGroups groups;
  std::int64_t columns, taps, channels;  // of a group
  std::int64_t vectors_of_tap() const { return vectors_in(channels, unit); }
  std::int64_t vectors() const { return taps * vectors_of_tap(); }

  explicit Weights(const tosa::View& view)
      : by_columns(is_int8(view)),
        unit(unit_of(view)),
        groups(view),
        columns(groups.columns),
        channels(groups.channels) {
    taps = view.in(1).shape.elements() / std::max<std::int64_t>(view.in(1).shape.size(0) * channels, 1);
  }
  Fetched bound(Kernel& s, const tosa::View& view) const {
    Fetched right(s, view.in(1).dtype, std::nullopt, unit, form_of(view));
    const Bytes& weights = view.constant(1);
    right.bind(by_columns ? packed_columns(weights, groups.count * columns * taps, channels, unit)
                          : packed_weights(weights, DType::f16, columns, taps, channels, unit, groups.count));
    return right;
  }
  Value pitch(Kernel& s, const Fetched& right, Value all_columns) const {
    return by_columns ? s.param(vectors()) : right.pitch(all_columns);
  }
  // Vectors of a group.
  std::int64_t all_vectors() const {
    return by_columns ? columns * vectors() : vectors() * unit * vectors_in(columns, unit);
  }
  // The sums begin with what is left of the zero point.
  FirstSums begin(Kernel& s, const tosa::View& view) const {
    return first_sums(s, view.constant(1), view.in(1).shape.size(0), *zero_point(s, view, 0, 3));
  }
};

// Rows are the pixels of a region, whose sums go on through the windows of what stands behind.
MadeList matrices_before_depthwise(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node), behind(work.graph, *end.behind()->node);
  const Weights weights(view);
  const std::int64_t depth = weights.vectors();
  const auto chosen =
      region_tile(behind, depth_in_halves(view, depth * weights.unit), region_matrix_tiles(), clocks_of_matrices);
  if (!chosen) return std::nullopt;
  const MatrixTile tile = of_type(view, chosen->tile);
  const Regions& regions = chosen->regions;
  const Dim across = tiles_along(weights.columns, tile.columns);
  Kernel s(work, "conv2d+depthwise_conv2d", Groups{across * regions.count(), tile.invocations()});
  MatrixProduct product(s, tile, weights.by_columns);
  const Value tiles_across = s.param(across), first_column = s.group() % tiles_across * tile.columns;
  const Value all_columns = s.param(weights.columns), all_depth = s.param(depth);
  FusedDepthwise fused_windows(s, *end.behind(), regions, s.group() / tiles_across, first_column, all_columns,
                               tile.columns, tile.invocations());
  Fetched left(s, view.in(0).dtype, zero_point(s, view, 0, 3), weights.channels, form_of(view));
  left.bind(node.inputs[0]);
  Fetched right = weights.bound(s, view);
  Windows windows(s, {}, s.param(weights.channels), s.integer(0), left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) {
    const FusedDepthwise::Window at = fused_windows.place(product.left_row(i));
    windows.add_pixel(at.exists, at.pixel);
  }
  Sides sides{windows,      left,
              right,        all_depth,
              all_columns,  all_depth * weights.unit,
              s.integer(0), weights.pitch(s, right, all_columns)};
  fused_windows.prepare();
  if (is_int8(view)) product.begin_with(weights.begin(s, view), first_column, all_columns);
  product.sum(sides, s.integer(0), s.param(tiles_along(depth * weights.unit, tile.depth * tile.split)), first_column);
  fused_windows.take(product.shared_accumulators(0), end, view);
  return one(s);
}

}  // namespace

bool takes_matrix_convolution(const tosa::View& view) { return is_f16_matrix(view) && has_tiles(view); }
bool takes_int8_matrix_convolution(const tosa::View& view) {
  // Those of less depth are no faster than by dot products, on an H200.
  constexpr std::int64_t fewest_products = 128;
  return takes_dot_convolution(view) && view.in(1).shape.elements() >= fewest_products * view.in(1).shape.size(0);
}
bool takes_matrix_matmul(const tosa::View& view) { return is_f16_matrix(view); }
bool takes_int8_matrix_matmul(const tosa::View& view) {
  // Of rows that are shorter than a vector words are read one by one.
  const auto is_read = [](std::int64_t n) { return n >= 16 || n % 4 == 0; };
  return is_int8(view) && view.in(1).dtype == DType::i8 && view.out().dtype == DType::i32 &&
         is_read(view.in(0).shape.size(2)) && is_read(view.in(1).shape.size(2)) && view.constant_integers(2) &&
         view.constant_integers(3);
}

MadeList make_matrix_convolution(const Work& work, const Node& node, const Finish& end) {
  if (end.behind()) return matrices_before_depthwise(work, node, end);
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape;
  const Weights weights(view);
  const Dim rows = rows_of_product(view);
  const auto spatial = static_cast<std::size_t>(in.rank() - 2);
  const std::int64_t columns = weights.columns, depth = weights.vectors(), unit = weights.unit;
  const ProductSize size{weights.groups.count, most(rows), columns, depth_in_halves(view, depth * unit)};
  const auto [of_halves, parts] =
      size.batches == 1 ? divided_matrices({count_side_by_side(work, node), size.rows, size.columns, size.depth},
                                           is_int8(view) ? MatrixOf::int8 : MatrixOf::f16, can_split_depth(view))
                        : DividedMatrices{matrix_tile_for_batches(size), 1};
  const MatrixTile tile = of_type(view, of_halves);
  const Dim across = tiles_along(columns, tile.columns), tiles_of_each = across * tiles_along(rows, tile.rows),
            tiles = tiles_of_each * size.batches;
  const std::int64_t needed = tiles_along(depth * unit, tile.depth * tile.split * parts).value(),
                     steps = (needed + tile.ahead - 1) / tile.ahead * tile.ahead;  // of a part
  const SplitDepth split{parts, most(rows), columns};
  const bool splits = parts > 1;  // of f16 alone
  Kernel s(work, std::string(node.op.base()), Groups{tiles * parts, tile.invocations()});
  MatrixProduct product(s, tile, weights.by_columns);
  Value all_rows = s.param(rows), group = s.group();
  const Value part = part_of(s, split, tiles, group, all_rows);
  const ConvolvedGroup own_group(s, weights.groups, tiles_of_each, group, all_rows);
  Fetched left(s, view.in(0).dtype, zero_point(s, view, 0, 3), weights.channels, form_of(view));
  auto pixels_apart = own_group.bind(left, view, unit);
  const bool plain = is_plain(view) && !pixels_apart;
  std::vector<Axis> axes;
  if (!plain)
    for (std::size_t i = 0; i < spatial; ++i)
      axes.push_back(axis_of(s, view, i, weight.size(1 + static_cast<int>(i)), true));
  Fetched right = weights.bound(s, view);
  const Value all_columns = s.param(columns), all_depth = s.param(depth);
  Windows windows(s, std::move(axes), s.param(weights.channels), all_rows, left, std::move(pixels_apart));
  const Value tiles_across = s.param(across);
  const Value first_row = group / tiles_across * tile.rows, first_column = group % tiles_across * tile.columns;
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) windows.add_row(first_row + product.left_row(i), std::nullopt);
  const Value right_begin = own_group.before(weights.all_vectors());
  Sides sides{windows,     left,
              right,       all_depth,
              all_columns, all_depth * unit,
              right_begin, weights.pitch(s, right, all_columns)};
  const bool even = depth * unit == parts * steps * tile.depth * tile.split;
  sides.even_rows = even && plain && left.is_whole();
  sides.even_columns = even && columns % tile.columns == 0;
  Sink sink(s, end, splits ? nullptr : &view, columns % 4 == 0, own_group.column(first_column), all_rows,
            own_group.column(all_columns), part * s.param(split.rows * split.columns),
            own_group.columns_apart(all_columns));
  if (splits)
    sink.store_into(s.write_scratch(split.type, split.scratch()));
  else
    sink.prepare(tile.columns, tile.invocations());
  if (is_int8(view)) product.begin_with(own_group.first_sums(weights.begin(s, view)), first_column, all_columns);
  const Value own = s.param(steps);
  product.sum(sides, splits ? part * own : s.integer(0), own, first_column);
  product.give(sink, first_row);
  return made_with_parts(s, work, node, end, split);
}

MadeList make_matrix_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const std::int64_t batches = out.size(0), rows = out.size(1), columns = out.size(2), depth = view.in(0).shape.size(2),
                     unit = unit_of(view);
  const MatrixTile tile =
      of_type(view, matrix_tile_for_batches({batches, rows, columns, depth_in_halves(view, depth)}));
  const TiledMatmul size{batches, rows, columns, depth, tile.rows, tile.columns};
  Kernel s(work, "matmul", Groups{size.tiles(), tile.invocations()});
  const StridedMatrices a = find_strided_operand(work, node.inputs[0], unit, false),
                        b = find_strided_operand(work, node.inputs[1], unit, true);
  const bool by_columns = b.is_by_columns();
  MatrixProduct product(s, tile, by_columns);
  Fetched left(s, view.in(0).dtype, std::nullopt, depth, form_of(view));
  Fetched right(s, view.in(1).dtype, std::nullopt, by_columns ? depth : columns, form_of(view));
  left.bind(a.value);
  right.bind(b.value);
  const MatmulTile at = matmul_tile(s, size, {left, a}, {right, b});
  Windows windows(s, {}, at.all_depth, at.own_rows, left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i)
    windows.add_plain_row(at.first_row + product.left_row(i),
                          at.left_begin + (at.first_row + product.left_row(i)) * at.left_rows);
  Sides sides{windows,        left,         right,          windows.vectors_of_channels(),
              at.all_columns, at.all_depth, at.right_begin, at.right_pitch};
  const bool even = is_multiple(depth, tile.depth * tile.split);
  sides.even_rows = even && left.is_whole();
  sides.even_columns = even && right.is_whole() && is_multiple(columns, tile.columns);
  if (is_int8(view)) product.centre({s, view, at.all_depth});
  product.sum(sides, s.integer(0), s.param(tiles_along(depth, tile.depth * tile.split)), at.first_column);
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{end.output(), {rows * columns}, columns});
  const bool by_quads = is_multiple(columns, 4) && is_multiple(apart.rows, 4) && apart.batches.are_multiples(4);
  const Sink sink(s, end, nullptr, by_quads, at.first_column, at.own_rows, at.all_columns,
                  apart.batches.begin(s, at.batch), s.param(apart.rows));
  product.give(sink, at.first_row);
  return one(s);
}

}  // namespace tosaic::shaders
