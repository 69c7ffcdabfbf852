// SPDX-License-Identifier: Apache-2.0
#include "shaders/product.h"

#include <cstring>

#include "shaders/product_tile.h"

namespace tosaic::shaders {
namespace {

std::int64_t fours_in(std::int64_t n) { return (n + 3) / 4; }

// Four neighbours of a factor for each place of an invocation: fetched, and later made numbers. Where the neighbours
// need not lie at a multiple of four they are loaded one by one.
class Fetched {
 public:
  Fetched(Kernel& s, DType type, std::optional<Value> zero_point, bool by_fours)
      : s_(s), type_(type), zero_point_(zero_point), by_fours_(by_fours) {}
  void bind(ValueId v) { buffer_ = s_.input(v, by_fours_); }
  void bind(Bytes constant) { buffer_ = s_.constant(type_, std::move(constant), true); }
  bool by_fours() const { return by_fours_; }
  // What a multiple of four counts in the buffer.
  Value scaled(Value fours) const { return by_fours_ ? fours : fours * 4; }

  // The four at `at` (counted in fours or in elements) for place i, or zeros; `left` of them are there, if not by
  // fours.
  void fetch(std::size_t i, Value at, Value inside, Value left) {
    if (i == places_.size()) places_.emplace_back();
    Place& place = places_[i];
    if (by_fours_) {
      const RawQuad raw = s_.load_raw(buffer_, s_.select(inside, at, s_.integer(0)));
      keep(place.raw, raw);
      keep(place.inside, inside);
      return;
    }
    Quad four;
    for (std::uint32_t q = 0; q < 4; ++q) {
      const Value there = inside & (left > q);
      four[q] = held(s_.load(buffer_, s_.select(there, at + q, s_.integer(0))), there);
    }
    keep(place.numbers, s_.vector(four));
  }

  Vector numbers(std::size_t i) {
    const Place& place = places_[i];
    if (!by_fours_) return place.numbers->get();
    Quad four = s_.numbers(place.raw->get(), type_);
    const Value inside = place.inside->get();
    for (Value& number : four) number = held(number, inside);
    return s_.vector(four);
  }

 private:
  struct Place {
    std::optional<RawVariable> raw;
    std::optional<Variable> inside;
    std::optional<VectorVariable> numbers;
  };
  template <class V, class X>
  void keep(std::optional<V>& variable, const X& value) {
    if (variable)
      variable->set(value);
    else
      variable = s_.variable(value);
  }
  Value held(Value number, Value inside) {
    const Value zero = number.kind == Kind::real ? s_.real(0) : s_.integer(0);
    return s_.select(inside, centred(number, zero_point_), zero);
  }

  Kernel& s_;
  DType type_;
  std::optional<Value> zero_point_;
  bool by_fours_;
  Buffer buffer_;
  std::vector<Place> places_;
};

// The left factor: windows of pixels, or plain rows where there are no axes.
class Windows {
 public:
  Windows(Kernel& s, std::vector<Axis> axes, Value channels, Value rows, Fetched& fetched)
      : s_(s), axes_(std::move(axes)), channels_(channels), all_rows_(rows), fetched_(fetched) {}

  // Its row for the next place; `before`: rows of the batches before.
  void add_row(Value number, std::optional<Value> before) {
    Row row{number < all_rows_, {}, {}};
    const Pixel pixel = pixel_at(before ? *before + number : number, axes_);
    Value at = pixel.image;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      row.begin.push_back(pixel.position[i] * axes_[i].stride - axes_[i].before);
      at = at * axes_[i].size + row.begin[i];
    }
    row.at = at * unit();
    rows_.push_back(std::move(row));
  }

  // Vector `depth` of each row, of as many as channels in all taps.
  void fetch(Value depth, Value all) {
    const Value fours = fours_of_channels();
    std::vector<Value> tap(axes_.size());
    Value channel = depth;
    if (!axes_.empty()) {
      channel = depth % fours;
      Value rest = depth / fours;
      for (std::size_t i = axes_.size(); i-- > 0; rest = i > 0 ? rest / axes_[i].kernel : rest)
        tap[i] = (i > 0 ? rest % axes_[i].kernel : rest) * axes_[i].dilation;
    }
    Value offset = s_.integer(0);
    for (std::size_t i = 0; i < axes_.size(); ++i) offset = i ? offset * axes_[i].size + tap[i] : tap[i];
    const Value in_row = fetched_.scaled(channel), left = channels_ - channel * 4;
    const Value at = axes_.empty() ? in_row : offset * unit() + in_row, exists = depth < all;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      Value inside = rows_[r].exists & exists;
      for (std::size_t i = 0; i < axes_.size(); ++i)
        inside = inside & below_unsigned(rows_[r].begin[i] + tap[i], axes_[i].size);
      fetched_.fetch(r, rows_[r].at + at, inside, left);
    }
  }

  Value fours_of_channels() {
    if (!fours_) fours_ = shift_right_unsigned(channels_ + 3, s_.integer(2));
    return *fours_;
  }

 private:
  struct Row {
    Value exists;
    std::vector<Value> begin;
    Value at;
  };
  Value unit() { return fetched_.by_fours() ? fours_of_channels() : channels_; }

  Kernel& s_;
  std::vector<Axis> axes_;
  Value channels_, all_rows_;
  Fetched& fetched_;
  std::optional<Value> fours_;
  std::vector<Row> rows_;
};

// What is given to the kernel; numbers as its parameters.
struct Sides {
  Windows& windows;
  Fetched &left, &right;
  Value depth;  // vectors of four that there are along the depth
  Value rows, columns;
  Value deep;                        // rows of the right factor
  std::optional<Value> right_begin;  // of this batch
};

class TiledProduct {
 public:
  TiledProduct(Kernel& s, const ProductTile& tile, DType result)
      : s_(s), tile_(tile), kind_(is_float(result) ? Kind::real : Kind::integer) {
    memory_ = s.shared(kind_, tile.shared());
    team_ = s.local() / s.integer(tile.team());
    own_ = s.local() % s.integer(tile.team());
  }

  Value first_row(Value tile) { return tile * tile_.rows; }
  // The row of the left factor that place i of this invocation reads.
  Value left_row(std::uint32_t i) {
    const std::uint32_t across = tile_.depth / 4;
    return own_ / s_.integer(across) + static_cast<std::int64_t>(i * (tile_.team() / across));
  }

  void sum(Sides& sides, Value steps, Value first_column) {
    for (std::uint32_t i = 0; i < tile_.own_rows * tile_.own_columns / 4; ++i)
      sums_.push_back(s_.variable(s_.splat(zero())));
    fetch(sides, s_.integer(0), first_column);
    s_.loop(s_.integer(0), steps, s_.integer(1), [&](Value step) {
      share(sides);
      s_.barrier();
      fetch(sides, step + 1, first_column);
      s_.loop(
          s_.integer(0), s_.integer(tile_.depth / 4), s_.integer(1), [&](Value k) { multiply(k); }, true);
      s_.barrier();
    });
    share_sums();
  }

  // Calls body(row, column, sum) for each element of the tile: its team shares come together here.
  void for_sums(const std::function<void(Value row, Value column, Value sum)>& body) {
    const std::uint32_t size = tile_.rows * tile_.columns, at_once = tile_.invocations();
    s_.loop(s_.integer(0), s_.integer(size), s_.integer(at_once), [&](Value begin) {
      const Value e = (begin + s_.local()) % s_.integer(size), four = e / s_.integer(4), part = e % s_.integer(4);
      Value sum = s_.load(memory_, four, part);
      for (std::uint32_t t = 1; t < tile_.split; ++t) sum = sum + s_.load(memory_, four + t * size / 4, part);
      body(e / s_.integer(tile_.columns), e % s_.integer(tile_.columns), sum);
    });
  }
  // The same of four neighbours, of which `column` is the first. Rows beyond the tile's are none.
  void for_quads(const std::function<void(Value row, Value column, const Quad& sums)>& body) {
    const std::uint32_t size = tile_.rows * tile_.columns / 4, wide = tile_.columns / 4;
    s_.loop(s_.integer(0), s_.integer(size), s_.integer(tile_.invocations()), [&](Value begin) {
      const Value e = begin + s_.local(), four = e % s_.integer(size);
      Vector sum = s_.load(memory_, four);
      for (std::uint32_t t = 1; t < tile_.split; ++t) sum = sum + s_.load(memory_, four + t * size);
      body(e / s_.integer(wide), e % s_.integer(wide) * 4, {lane(sum, 0), lane(sum, 1), lane(sum, 2), lane(sum, 3)});
    });
  }

 private:
  Value zero() { return kind_ == Kind::real ? s_.real(0) : s_.integer(0); }
  Value begin_of_left() { return team_ * tile_.left(); }
  Value begin_of_right() { return team_ * tile_.right() + tile_.split * tile_.left(); }

  void fetch(Sides& sides, Value step, Value first_column) {
    const std::uint32_t across = tile_.depth / 4, wide = tile_.columns / 4;
    const Value part = step * tile_.split + team_;
    sides.windows.fetch(part * across + own_ % s_.integer(across), sides.depth);
    const Value column = shift_right_unsigned(first_column, s_.integer(2)) + own_ % s_.integer(wide);
    const Value left = sides.columns - column * 4;
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i) {
      const Value k =
          part * tile_.depth + own_ / s_.integer(wide) + static_cast<std::int64_t>(i * (tile_.team() / wide));
      Value row = k;
      if (sides.right_begin) row = row + *sides.right_begin;
      const Value unit =
          sides.right.by_fours() ? shift_right_unsigned(sides.columns + 3, s_.integer(2)) : sides.columns;
      sides.right.fetch(i, row * unit + sides.right.scaled(column), (k < sides.deep) & (left > 0), left);
    }
  }

  void share(Sides& sides) {
    const std::uint32_t across = tile_.depth / 4;
    for (std::uint32_t i = 0; i < tile_.left_reads(); ++i)
      s_.store(memory_, begin_of_left() + left_row(i) * (across + 1) + own_ % s_.integer(across),
               sides.left.numbers(i));
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i)
      s_.store(memory_, begin_of_right() + own_ + i * tile_.team(), sides.right.numbers(i));
  }

  // Rows and vectors of columns of an invocation lie as far apart as there are invocations along them.
  std::uint32_t down() const { return tile_.rows / tile_.own_rows; }
  std::uint32_t across() const { return tile_.columns / tile_.own_columns; }
  Value own_row() { return own_ / s_.integer(across()); }
  Value own_column() { return own_ % s_.integer(across()); }

  void multiply(Value k) {
    k = k % s_.integer(tile_.depth / 4);  // as the loop has it, said so that it is seen
    const std::uint32_t stride = tile_.depth / 4 + 1, wide = tile_.columns / 4;
    const Value left = begin_of_left() + own_row() * stride + k,
                right = begin_of_right() + k * (4 * wide) + own_column();
    std::vector<Vector> a, sums;
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) a.push_back(s_.load(memory_, left + r * down() * stride));
    for (const VectorVariable& sum : sums_) sums.push_back(sum.get());
    for (std::uint32_t q = 0; q < 4; ++q)
      for (std::uint32_t c = 0; c < tile_.own_columns / 4; ++c) {
        const Vector b = s_.load(memory_, right + (q * wide + c * across()));
        for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
          Vector& sum = sums[r * (tile_.own_columns / 4) + c];
          sum = sum + b * lane(a[r], q);
        }
      }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
  }

  void share_sums() {
    const std::uint32_t wide = tile_.columns / 4;
    const Value begin = team_ * (tile_.rows * wide) + own_row() * wide + own_column();
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r)
      for (std::uint32_t c = 0; c < tile_.own_columns / 4; ++c)
        s_.store(memory_, begin + (r * down() * wide + c * across()), sums_[r * (tile_.own_columns / 4) + c].get());
    s_.barrier();
  }

  Kernel& s_;
  const ProductTile tile_;
  const Kind kind_;
  Shared memory_;
  Value team_, own_;
  std::vector<VectorVariable> sums_;
};

// Where a tile's sums go: into rows and columns that there are.
struct Sink {
  Kernel& s;
  const Finish& end;
  Value first_row, first_column, all_rows, all_columns;

  // `before`: rows of the batches before.
  void take(TiledProduct& product, const ProductTile& tile, bool by_quads, Value before,
            const std::function<Value(Value column, Value sum)>& finished) const {
    const auto there = [&](Value row, Value column, const std::function<void(Value at)>& store) {
      const Value number = first_row + row;
      s.when((row < tile.rows) & (number < all_rows) & (column < all_columns),
             [&] { store((before + number) * all_columns + column); });
    };
    if (!by_quads)
      return product.for_sums([&](Value row, Value column, Value sum) {
        column = first_column + column;
        there(row, column, [&](Value at) { end.store(s, at, finished(column, sum)); });
      });
    product.for_quads([&](Value row, Value column, const Quad& sums) {
      column = first_column + column;
      there(row, column, [&](Value at) {
        end.store_quad(s, shift_right_unsigned(at, s.integer(2)),
                       [&](int q) { return finished(column + q, sums[static_cast<std::size_t>(q)]); });
      });
    });
  }
};

std::int64_t tiles_along(std::int64_t n, std::uint32_t by) { return (n + by - 1) / by; }

}  // namespace

Bytes packed_weights(const Bytes& weights, DType type, std::int64_t columns, std::int64_t taps, std::int64_t channels) {
  const std::size_t size = storage_size(type);
  const auto wide = static_cast<std::size_t>(4 * fours_in(columns)),
             deep = static_cast<std::size_t>(4 * fours_in(channels));
  const auto tap_count = static_cast<std::size_t>(taps), channel_count = static_cast<std::size_t>(channels);
  std::byte* to = nullptr;
  Bytes packed = Bytes::fresh(tap_count * deep * wide * size, to);
  std::memset(to, 0, packed.size());
  const std::byte* from = weights.data();
  for (std::size_t column = 0; column < static_cast<std::size_t>(columns); ++column)
    for (std::size_t tap = 0; tap < tap_count; ++tap)
      for (std::size_t c = 0; c < channel_count; ++c, from += size)
        std::memcpy(to + ((tap * deep + c) * wide + column) * size, from, size);
  return packed;
}

bool has_narrow_sums(const tosa::View& view) {
  return storage_size(view.out().dtype) <= 4 && storage_size(view.in(0).dtype) <= 4;
}
bool has_tiles(const tosa::View& view) { return has_narrow_sums(view) && !view.constant(1).null(); }

bool is_plain(const tosa::View& view) {
  const auto all_are = [&](std::string_view list, std::int64_t number) {
    return std::ranges::all_of(view.ints(list), [&](std::int64_t n) { return n == number; });
  };
  const Shape& weight = view.in(1).shape;
  return weight.elements() == weight.size(0) * weight.size(weight.rank() - 1) && all_are("stride", 1) &&
         all_are("pad", 0);
}

MadeList make_tiled_convolution(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  const std::int64_t columns = weight.size(0), channels = in.size(in.rank() - 1), rows = out.elements() / columns;
  const auto spatial = static_cast<std::size_t>(in.rank() - 2);
  const std::int64_t taps = weight.elements() / std::max<std::int64_t>(columns * channels, 1);
  const ProductTile& tile = tile_for({1, rows, columns, taps * channels});
  const std::int64_t across = tiles_along(columns, tile.columns), depth = taps * fours_in(channels);
  Kernel s(work, std::string(tosa::find(node.op)->name),
           Groups{static_cast<std::uint64_t>(across * tiles_along(rows, tile.rows)), tile.invocations()});
  TiledProduct product(s, tile, view.out().dtype);
  const Value group = s.group();
  std::vector<Axis> axes;
  if (!is_plain(view))
    for (std::size_t i = 0; i < spatial; ++i) axes.push_back(axis_of(s, view, i, weight.size(1 + static_cast<int>(i))));
  Fetched left(s, view.in(0).dtype, zero_point(s, view, 0, 3), channels % 4 == 0);
  Fetched right(s, view.in(1).dtype, zero_point(s, view, 1, 4), true);
  left.bind(node.inputs[0]);
  right.bind(packed_weights(view.constant(1), view.in(1).dtype, columns, taps, channels));
  const Value all_rows = s.param(rows), all_columns = s.param(columns), all_depth = s.param(depth);
  Windows windows(s, std::move(axes), s.param(channels), all_rows, left);
  const Value tiles_across = s.param(across);
  const Value first_row = group / tiles_across * tile.rows, first_column = group % tiles_across * tile.columns;
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i) windows.add_row(first_row + product.left_row(i), std::nullopt);
  Sides sides{windows, left, right, all_depth, all_rows, all_columns, all_depth * 4, std::nullopt};
  product.sum(sides, s.param(tiles_along(depth, tile.depth / 4 * tile.split)), first_column);
  const Sink sink{s, end, first_row, first_column, all_rows, all_columns};
  sink.take(product, tile, columns % 4 == 0, s.integer(0),
            [&](Value column, Value sum) { return sum + bias_at(s, view, column); });
  return one(s);
}

MadeList make_tiled_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& out = view.out().shape;
  const std::int64_t batches = out.size(0), rows = out.size(1), columns = out.size(2), depth = view.in(0).shape.size(2);
  const ProductTile& tile = tile_for({batches, rows, columns, depth});
  const std::int64_t across = tiles_along(columns, tile.columns), down = tiles_along(rows, tile.rows);
  Kernel s(work, "matmul", Groups{static_cast<std::uint64_t>(batches * across * down), tile.invocations()});
  TiledProduct product(s, tile, view.out().dtype);
  Fetched left(s, view.in(0).dtype, zero_point(s, view, 0, 2), depth % 4 == 0);
  Fetched right(s, view.in(1).dtype, zero_point(s, view, 1, 3), columns % 4 == 0);
  left.bind(node.inputs[0]);
  right.bind(node.inputs[1]);
  const Value all_rows = s.param(rows), all_columns = s.param(columns), all_depth = s.param(depth);
  const Value tiles_across = s.param(across), tiles_down = s.param(down), rest = s.group() / tiles_across;
  const Value batch = rest / tiles_down;
  const Value first_row = rest % tiles_down * tile.rows, first_column = s.group() % tiles_across * tile.columns;
  // There may be more groups than tiles: those have no rows.
  const Value own_rows = s.select(batch < s.param(batches), all_rows, s.integer(0));
  Windows windows(s, {}, all_depth, own_rows, left);
  for (std::uint32_t i = 0; i < tile.left_reads(); ++i)
    windows.add_row(first_row + product.left_row(i), batch * all_rows);
  Sides sides{windows, left, right, windows.fours_of_channels(), all_rows, all_columns, all_depth, batch * all_depth};
  product.sum(sides, s.param(tiles_along(fours_in(depth), tile.depth / 4 * tile.split)), first_column);
  const Sink sink{s, end, first_row, first_column, own_rows, all_columns};
  sink.take(product, tile, columns % 4 == 0, batch * all_rows, [](Value, Value sum) { return sum; });
  return one(s);
}

}  // namespace tosaic::shaders
