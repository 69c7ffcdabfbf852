// SPDX-License-Identifier: Apache-2.0
// Int8 x int8 GEMMs of many rows for CPU devices, where a subgroup is a vector register: an invocation sums 16
// columns of two rows, as floats, exactly (int8_gemm.h). A step's words of the weight, two vectors of each column,
// are fetched once by the whole subgroup, made numbers where they were fetched, and passed on by shuffles.
#include "shaders/int8_gemm.h"
#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

constexpr int lanes = 8, rows_of_lane = 2, columns_of_tile = 16, quads_of_tile = columns_of_tile / 4;
constexpr int vectors_of_step = lanes / quads_of_tile;

class SubgroupInt8 {
 public:
  SubgroupInt8(Kernel& s, const Node& node, const QuantisedMatrix& matrix, const Dim& rows, bool by_quads)
      : s_(s),
        quantised_(s, matrix),
        scaling_(s, node, matrix, by_quads),
        grouped_(matrix.has_groups()),
        words_(static_cast<int>(quantised_.words_of_vector())) {
    input_ = s.input_words(node.inputs[0], false);
    const Value number = s.invocation(), group = shift_right_unsigned(number, s.integer(3));
    const Value across = s.param(matrix.rows + columns_of_tile - 1) / s.integer(columns_of_tile);
    lane_ = number & (lanes - 1);
    all_rows_ = s.param(rows);
    columns_ = s.param(matrix.rows);
    words_of_row_ = s.param(matrix.depth / 4);
    first_column_ = group % across * columns_of_tile;
    // Columns beyond the last quad are those of the last one; nobody stores them.
    quad_ = smallest(group % across * quads_of_tile + (lane_ & (quads_of_tile - 1)), s.param(matrix.quads()) - 1);
    for (int i = 0; i < rows_of_lane; ++i) {
      const Value row = group / across * (lanes * rows_of_lane) + lane_ + i * lanes;
      rows_.push_back(row);
      held_.push_back(smallest(row, all_rows_ - 1));
      if (const auto zero = scaling_.zero(held_.back())) zeros_.push_back(s.signed_to_real(*zero));
      for (int c = 0; c < columns_of_tile; ++c) {
        sums_.push_back(s.variable(s.real(0)));
        totals_.push_back(s.variable(grouped_ ? s.real(0) : s.integer(0)));
      }
    }
    for (int q = 0; q < 4; ++q) of_weights_.push_back(s.variable(s.real(0)));
    at_once_ = s.param(vectors_at_once(matrix));
  }

  void sum() {
    s_.loop(s_.integer(0), quantised_.vectors(), at_once_, [&](Value begin) {
      const Value end = smallest(begin + at_once_, quantised_.vectors());
      s_.loop(begin, end, s_.integer(vectors_of_step), [&](Value first) { step(first, end); });
      take_sums(begin);
    });
  }

  void give(const tosa::View& view, const Finish& end, bool by_quads) {
    s_.repeat(rows_of_lane * quads_of_tile, [&](int n) {
      const int i = n / quads_of_tile, q = n % quads_of_tile;
      const auto row = static_cast<std::size_t>(i);
      const Value column = first_column_ + 4 * q, index = rows_[row] * columns_ + column;
      Quad four;
      for (int c = 0; c < 4; ++c) four[static_cast<std::size_t>(c)] = totals_[place(i, 4 * q + c)].get();
      s_.when((rows_[row] < all_rows_) & (column < columns_), [&] {
        if (by_quads) {
          four = scaling_.scaled(four, held_[row], column);
          if (!scaling_.stay_integers()) {
            const Quad bias = bias_quad_at(s_, view, shift_right_unsigned(column, s_.integer(2)));
            for (std::size_t c = 0; c < 4; ++c) four[c] = four[c] + bias[c];
          }
          const Value quad = shift_right_unsigned(index, s_.integer(2));
          return end.store_finished(s_, quad, end.finished_quad(s_, quad, four));
        }
        s_.repeat(4, [&](int c) {
          const Value at = column + c, own = four[static_cast<std::size_t>(c)];
          s_.when(at < columns_, [&] { end.store(s_, index + c, scaling_.finished(own, held_[row], at)); });
        });
      });
    });
  }

 private:
  static std::size_t place(int row, int column) { return static_cast<std::size_t>(row * columns_of_tile + column); }

  // Vectors `first` and the next one, if that is before `end`.
  void step(Value first, Value end) {
    const Value own = first + shift_right_unsigned(lane_, s_.integer(2)), inside = own < end;
    const Quad words = quantised_.vector(quad_, s_.select(inside, own, first));
    std::vector<std::array<Quad, 4>> numbers;  // of this lane's columns, four for each word
    for (int w = 0; w < words_; ++w) {
      auto& of_word = numbers.emplace_back();
      for (std::size_t q = 0; q < 4; ++q) {
        const Value held = s_.select(inside, words[q], s_.integer(0));
        of_word[q] = bytes_of_word(s_, quantised_.bytes(held, static_cast<std::size_t>(w)));
        for (Value& x : of_word[q]) x = s_.signed_to_real(x);
        if (!zeros_.empty())
          of_weights_[q].set(of_weights_[q].get() +
                             ((of_word[q][0] + of_word[q][1]) + (of_word[q][2] + of_word[q][3])));
      }
    }
    std::vector<Value> sums;
    for (const Variable& v : sums_) sums.push_back(v.get());
    for (int vector = 0; vector < vectors_of_step; ++vector)
      for (int w = 0; w < words_; ++w) {
        std::vector<Quad> x;
        const Value word = smallest((first + vector) * words_ + w, words_of_row_ - 1);
        for (const Value& row : held_) {
          Quad& four = x.emplace_back(bytes_of_word(s_, s_.load(input_, row * words_of_row_ + word)));
          for (Value& code : four) code = s_.signed_to_real(code);
        }
        for (int column = 0; column < columns_of_tile; ++column)
          for (std::size_t k = 0; k < 4; ++k) {
            const Value& held = numbers[static_cast<std::size_t>(w)][static_cast<std::size_t>(column % 4)][k];
            const Value weight = s_.shuffle(held, s_.integer(vector * quads_of_tile + column / 4));
            for (int i = 0; i < rows_of_lane; ++i) {
              Value& sum = sums[place(i, column)];
              sum = add_product(sum, x[static_cast<std::size_t>(i)][k], weight);
            }
          }
      }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
  }

  // Whole numbers of vectors from `begin` on.
  void take_sums(Value begin) {
    const Quad own_scales = grouped_ ? quantised_.scales_at(quad_, begin) : Quad{};
    for (int column = 0; column < columns_of_tile; ++column) {
      const auto q = static_cast<std::size_t>(column % 4);
      const Value lane = s_.integer(column / 4);
      std::optional<Value> weights, scale;
      if (!zeros_.empty()) {
        const Value own = of_weights_[q].get();
        weights = s_.shuffle(own, lane) + s_.shuffle(own, s_.integer(column / 4 + quads_of_tile));
      }
      if (grouped_) scale = s_.shuffle(own_scales[q], lane);
      for (int i = 0; i < rows_of_lane; ++i) {
        Value part = sums_[place(i, column)].get();
        if (weights) part = part - zeros_[static_cast<std::size_t>(i)] * *weights;
        const Variable& total = totals_[place(i, column)];
        total.set(total.get() + (grouped_ ? part * *scale : s_.real_to_signed(quantised_.without_factor(part))));
        sums_[place(i, column)].set(s_.real(0));
      }
    }
    for (const Variable& v : of_weights_) v.set(s_.real(0));
  }

  Kernel& s_;
  const QuantisedByDepth quantised_;
  const ScaledAccumulators scaling_;
  const bool grouped_;
  const int words_;  // of a vector
  Buffer input_;
  Value lane_, all_rows_, columns_, words_of_row_, first_column_, quad_, at_once_;
  std::vector<Value> rows_, held_, zeros_;
  std::vector<Variable> sums_, totals_, of_weights_;
};

}  // namespace

MadeList make_subgroup_int8_gemm(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const Dim rows = rows_of_product(view);
  const std::int64_t across = (matrix->rows + columns_of_tile - 1) / columns_of_tile;
  Kernel s(work, name_of_product(node), Groups{ceil_div(rows, lanes * rows_of_lane) * across, lanes});
  const bool by_quads = end.has_quads(work.graph, matrix->rows);
  SubgroupInt8 product(s, node, *matrix, rows, by_quads);
  product.sum();
  product.give(view, end, by_quads);
  return one(s);
}

}  // namespace tosaic::shaders
