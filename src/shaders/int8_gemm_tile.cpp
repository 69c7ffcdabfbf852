// SPDX-License-Identifier: Apache-2.0
// Int8 x int8 GEMMs of many rows, whose sums a work group makes together (product.h): both factors are words
// of four quantised values in the memory that the group shares. They are multiplied by dot products of words, or as
// floats. After each part of a group that a step has, sums are whole numbers still: then they get the group's scale.
#include "shaders/fetched_operand.h"
#include "shaders/int8_gemm.h"
#include "shaders/product.h"
#include "shaders/product_tile.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

class Int8Tile {
 public:
  Int8Tile(Kernel& s, const ProductTile& tile, const QuantisedMatrix& matrix, const QuantisedByDepth& quantised,
           Fetched& left, const ScaledAccumulators& scaling)
      : s_(s),
        tile_(tile),
        quantised_(quantised),
        left_(left),
        scaling_(scaling),
        packed_(tiers_of_dots.has(s.work().tier)),
        grouped_(matrix.has_groups()),
        keeps_totals_(grouped_ || !packed_),
        scaled_every_(grouped_ ? std::min<std::int64_t>(matrix.group / 4, tile.depth) : tile.depth) {
    memory_ = s.shared(Kind::integer, shared(tile));
    team_ = s.local() / s.integer(tile.team());
    own_ = s.local() % s.integer(tile.team());
  }

  // Words of the weight's rows in the memory lie one vector further apart, so that invocations that write neighbours of
  // a column do not wait for each other.
  static std::uint32_t shared(const ProductTile& t) {
    return t.split * std::max(t.left() + t.depth * (t.columns / 4 + 1), t.rows * t.columns / 4 / t.passes);
  }
  // Is a step a part of a group, or a whole number of groups that are multiplied vector by vector?
  static bool takes(const ProductTile& t, const QuantisedMatrix& m) {
    const std::int64_t group = m.group / 4;
    return !m.has_groups() || group % t.depth == 0 || (t.depth % group == 0 && group % 4 == 0);
  }

  void sum(Value first_row, Value first_column, Value all_rows, Value quads, Value words, std::int64_t steps) {
    words_ = words;
    first_quad_ = shift_right_unsigned(first_column, s_.integer(2));
    quads_ = quads;
    left_pitch_ = left_.pitch(words * 4);
    first_row_ = first_row;
    all_rows_ = all_rows;
    begin_sums(first_row);
    fetch(s_.integer(0));
    const Value all_steps = s_.param(steps);
    s_.loop(s_.integer(0), all_steps, s_.integer(1), [&](Value step) {
      share(step);
      s_.barrier();
      const Value next = step + 1;
      s_.when(next < all_steps, [&] { fetch(next); });
      for (std::int64_t at = 0; at < tile_.depth; at += scaled_every_) {
        const std::vector<Quad> scales = grouped_ ? scales_at(step, at) : std::vector<Quad>{};
        s_.loop(
            s_.integer(at / 4), s_.integer((at + scaled_every_) / 4), s_.integer(1), [&](Value k) { multiply(k); },
            Unrolling::all);
        if (keeps_totals_) take_sums(scales);
      }
      s_.barrier();
    });
  }

  TileAccumulators shared_accumulators(std::uint32_t pass) {
    const std::uint32_t wide = tile_.columns / 4, own = tile_.own_rows / tile_.passes;
    const Value begin = team_ * (tile_.rows / tile_.passes * wide) + own_row() * wide + own_column();
    for (std::uint32_t r = 0; r < own; ++r)
      for (std::uint32_t c = 0; c < quads_of_columns(); ++c) {
        const std::uint32_t row = pass * own + r;
        Quad four = keeps_totals_ ? lanes(totals_[place(row, c)].get()) : counted_from_zero(row, c);
        for (Value& x : four)
          if (x.kind == Kind::real) x = s_.bits_of(x);
        s_.store(memory_, begin + (r * down() * wide + c * across()), s_.vector(four));
      }
    s_.barrier();
    return {memory_,
            grouped_ ? Kind::real : Kind::integer,
            tile_.rows / tile_.passes,
            tile_.columns,
            tile_.split,
            tile_.columns / 4,
            tile_.invocations()};
  }

 private:
  std::uint32_t down() const { return tile_.rows / tile_.own_rows; }
  std::uint32_t across() const { return tile_.columns / tile_.own_columns; }
  std::uint32_t quads_of_columns() const { return tile_.own_columns / 4; }
  Value own_row() { return own_ / s_.integer(across()); }
  Value own_column() { return own_ % s_.integer(across()); }
  std::size_t place(std::uint32_t row, std::uint32_t column) const { return row * quads_of_columns() + column; }
  std::uint32_t left_stride() const { return tile_.depth / 4 + 1; }
  std::uint32_t right_stride() const { return tile_.columns / 4 + 1; }
  Value begin_of_left() { return team_ * tile_.left(); }
  Value begin_of_right() { return team_ * (tile_.depth * right_stride()) + tile_.split * tile_.left(); }
  Value part_of(Value step) { return step * tile_.split + team_; }
  static Quad lanes(Vector v) { return {lane(v, 0), lane(v, 1), lane(v, 2), lane(v, 3)}; }
  Value zero() { return packed_ ? s_.integer(0) : s_.real(0); }

  void begin_sums(Value first_row) {
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
      const Value row = first_row + own_row() + std::int64_t{r * down()};
      const auto of_row = scaling_.zero(s_.select(row < all_rows_, row, s_.integer(0)));
      if (of_row) zeros_.push_back(packed_ ? *of_row : s_.signed_to_real(*of_row));
    }
    for (std::uint32_t i = 0; i < tile_.own_rows * quads_of_columns(); ++i) {
      sums_.push_back(s_.variable(s_.splat(zero())));
      if (keeps_totals_) totals_.push_back(s_.variable(s_.splat(grouped_ ? s_.real(0) : s_.integer(0))));
    }
    for (std::uint32_t c = 0; c < quads_of_columns(); ++c) of_weights_.push_back(s_.variable(s_.splat(zero())));
  }

  // The row of the left factor, and the word and the columns of the right one, at place i of this invocation.
  Value left_row(std::uint32_t i) {
    const std::uint32_t across = tile_.depth / 4;
    return own_ / s_.integer(across) + static_cast<std::int64_t>(i * (tile_.team() / across));
  }
  Value right_word() { return own_ % s_.integer(tile_.depth); }
  Value right_quad(std::uint32_t i) {
    return own_ / s_.integer(tile_.depth) + static_cast<std::int64_t>(i * (tile_.team() / tile_.depth));
  }

  void fetch(Value step) {
    const Value part = part_of(step), vector = part * (tile_.depth / 4) + own_ % s_.integer(tile_.depth / 4);
    for (std::uint32_t i = 0; i < tile_.left_reads(); ++i) {
      const Value row = first_row_ + left_row(i), left = words_ * 4 - vector * 16;
      left_.fetch(i, row * left_pitch_ + left_.scaled(vector), (row < all_rows_) & (left > 0), left);
    }
    const Value word = part * tile_.depth + right_word();
    const Value at = quantised_.words_of_vector() == 2 ? shift_right_unsigned(word, s_.integer(1)) : word;
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i) {
      const Value quad = first_quad_ + right_quad(i), inside = (word < words_) & (quad < quads_), none = s_.integer(0);
      Quad four = quantised_.vector(s_.select(inside, quad, none), s_.select(inside, at, none));
      for (Value& w : four) w = s_.select(inside, w, none);
      if (i == right_.size())
        right_.push_back(s_.variable(s_.vector(four)));
      else
        right_[i].set(s_.vector(four));
    }
  }

  void share(Value step) {
    const std::uint32_t across = tile_.depth / 4;
    for (std::uint32_t i = 0; i < tile_.left_reads(); ++i)
      s_.store(memory_, begin_of_left() + left_row(i) * left_stride() + own_ % s_.integer(across), left_.vector(i));
    const Value which = (part_of(step) * tile_.depth + right_word()) & 1;
    for (std::uint32_t i = 0; i < tile_.right_reads(); ++i) {
      Quad four = lanes(right_[i].get());
      for (Value& w : four) w = quantised_.bytes(w, which);
      s_.store(memory_, begin_of_right() + right_word() * right_stride() + right_quad(i), s_.vector(four));
    }
  }

  // Vector k of the step's depth.
  void multiply(Value k) {
    k = k % s_.integer(tile_.depth / 4);  // as the loop has it, said so that it is seen
    const Value left = begin_of_left() + own_row() * left_stride() + k;
    const Value right = begin_of_right() + k * (4 * right_stride()) + own_column();
    std::vector<Vector> a, sums, of_weights;
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) a.push_back(s_.load(memory_, left + r * down() * left_stride()));
    for (const VectorVariable& v : sums_) sums.push_back(v.get());
    for (const VectorVariable& v : of_weights_) of_weights.push_back(v.get());
    for (std::uint32_t q = 0; q < 4; ++q)
      for (std::uint32_t c = 0; c < quads_of_columns(); ++c) {
        const Factor b(*this, lanes(s_.load(memory_, right + (q * right_stride() + c * across()))));
        if (!zeros_.empty()) of_weights[c] = of_weights[c] + b.itself();
        for (std::uint32_t r = 0; r < tile_.own_rows; ++r)
          sums[place(r, c)] = b.added_to(sums[place(r, c)], lane(a[r], q));
      }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
    for (std::size_t i = 0; i < of_weights.size(); ++i) of_weights_[i].set(of_weights[i]);
  }

  // Words of four columns.
  class Factor {
   public:
    Factor(Int8Tile& of, const Quad& words) : s_(of.s_), packed_(of.packed_), words_(words) {
      if (packed_) return;
      for (Word q = 0; q < 4; ++q) {
        const Quad quantised = bytes_of_word(s_, words[q]);
        for (std::size_t k = 0; k < 4; ++k) reals_[k][q] = s_.signed_to_real(quantised[k]);
      }
    }
    Vector itself() const {
      if (packed_) return dots(s_.integer(0x01010101));
      Vector all = s_.vector(reals_[0]);
      for (std::size_t k = 1; k < 4; ++k) all = all + s_.vector(reals_[k]);
      return all;
    }
    Vector added_to(Vector sum, Value word) const {
      if (packed_) return sum + dots(word);
      const Quad quantised = bytes_of_word(s_, word);
      for (std::size_t k = 0; k < 4; ++k) sum = sum + s_.vector(reals_[k]) * s_.signed_to_real(quantised[k]);
      return sum;
    }

   private:
    Vector dots(Value word) const {
      Quad four;
      for (Word q = 0; q < 4; ++q) four[q] = s_.dot_of_int8(words_[q], word);
      return s_.vector(four);
    }
    Kernel& s_;
    const bool packed_;
    const Quad words_;
    std::array<Quad, 4> reals_;
  };

  // Sums of quantised values that count from the row's zero point; those of groups with the factor that is in their
  // scales.
  Quad counted_from_zero(std::uint32_t row, std::uint32_t column) {
    Vector sum = sums_[place(row, column)].get();
    if (!zeros_.empty()) sum = sum + of_weights_[column].get() * -zeros_[row];
    Quad four = lanes(sum);
    for (Value& x : four)
      if (!grouped_) x = quantised_.without_factor(x);
    return four;
  }

  // Those of word `at` of the step.
  std::vector<Quad> scales_at(Value step, std::int64_t at) {
    std::vector<Quad> scales;
    const Value word = smallest(part_of(step) * tile_.depth + at, words_ - 1);
    const Value vector = quantised_.words_of_vector() == 2 ? shift_right_unsigned(word, s_.integer(1)) : word;
    s_.repeat(static_cast<int>(quads_of_columns()), [&](int c) {
      const Value quad = first_quad_ + own_column() + static_cast<std::int64_t>(c) * across();
      scales.push_back(quantised_.scales_at(smallest(quad, quads_ - 1), vector));
    });
    return scales;
  }

  void take_sums(const std::vector<Quad>& scales) {
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r)
      for (std::uint32_t c = 0; c < quads_of_columns(); ++c) {
        Quad four = counted_from_zero(r, c);
        for (std::size_t q = 0; q < 4; ++q) {
          if (grouped_)
            four[q] = (packed_ ? s_.signed_to_real(four[q]) : four[q]) * scales[c][q];
          else
            four[q] = s_.real_to_signed(four[q]);
        }
        totals_[place(r, c)].set(totals_[place(r, c)].get() + s_.vector(four));
        sums_[place(r, c)].set(s_.splat(zero()));
      }
    for (const VectorVariable& v : of_weights_) v.set(s_.splat(zero()));
  }

  Kernel& s_;
  const ProductTile tile_;
  const QuantisedByDepth& quantised_;
  Fetched& left_;
  const ScaledAccumulators& scaling_;
  const bool packed_, grouped_, keeps_totals_;
  const std::int64_t scaled_every_;  // words
  Shared memory_;
  Value team_, own_, words_, first_quad_, quads_, left_pitch_, first_row_, all_rows_;
  std::vector<Value> zeros_;
  std::vector<VectorVariable> sums_, totals_, of_weights_, right_;
};

}  // namespace

MadeList make_tiled_int8_gemm(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows, words = matrix->depth / 4;
  const Dim rows = rows_of_product(view);
  const ProductTile tile = tile_for({1, most(rows), columns, words});
  if (!Int8Tile::takes(tile, *matrix)) return std::nullopt;
  const std::int64_t across = (columns + tile.columns - 1) / tile.columns;
  Kernel s(work, name_of_product(node), Groups{ceil_div(rows, std::int64_t{tile.rows}) * across, tile.invocations()});
  const QuantisedByDepth quantised(s, *matrix);
  Fetched left(s, DType::i8, std::nullopt, matrix->depth, Fetched::As::int8);
  left.bind(node.inputs[0]);
  const Value all_rows = s.param(rows), all_columns = s.param(columns), tiles_across = s.param(across);
  const Value first_row = s.group() / tiles_across * tile.rows, first_column = s.group() % tiles_across * tile.columns;
  const bool by_quads = columns % 4 == 0;
  const ScaledAccumulators scaling(s, node, *matrix, by_quads);
  Int8Tile product(s, tile, *matrix, quantised, left, scaling);
  Sink sink(s, end, scaling.stay_integers() ? nullptr : &view, by_quads, first_column, all_rows, all_columns,
            s.integer(0), all_columns);
  sink.prepare(tile.columns, tile.invocations());
  sink.scale([&](const Quad& sums, Value row, Value column) { return scaling.scaled(sums, row, column); });
  const std::int64_t of_step = std::int64_t{tile.depth} * tile.split;
  product.sum(first_row, first_column, all_rows, s.param(matrix->quads()), s.param(words),
              (words + of_step - 1) / of_step);
  for (std::uint32_t pass = 0; pass < tile.passes; ++pass) {
    if (pass > 0) s.barrier();
    sink.take(product.shared_accumulators(pass), first_row + pass * (tile.rows / tile.passes));
  }
  return one(s);
}

}  // namespace tosaic::shaders
