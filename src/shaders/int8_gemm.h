// SPDX-License-Identifier: Apache-2.0
// Factors of int8 x int8 GEMMs as shaders read them (quantised_weights.h). Quantised
// values of activations count from their row's zero point; products are integers, and so are sums: of a column's whole
// depth, or of a part of a group, whose scale they then get.
#pragma once
#include "shaders/axes.h"
#include "shaders/quantised_matrix.h"

namespace tosaic::shaders {

// The weight: words of quantised values along the depth, four columns' next to each other.
class QuantisedByDepth {
 public:
  QuantisedByDepth(Kernel& s, const QuantisedMatrix& m)
      : s_(s),
        bits_(m.bits),
        words_(s.constant(DType::i32, m.words, true)),
        scales_buffer_(s.constant(DType::f32, m.scales, true)),
        row_(s.param(m.depth / m.per_word())),
        scales_(s, m, scales_buffer_) {}
  // Vectors of a column, each of as many words of four quantised values.
  Value vectors() const { return row_; }
  std::size_t words_of_vector() const { return bits_ == 4 ? 2 : 1; }

  Quad vector(Value quad, Value at) const { return s_.load_quad(words_, quad * row_ + at); }
  // Four quantised values in bytes, those of 4 bits times a factor of 16: of the vector's word `which`.
  Value bytes(Value word, std::size_t which) const {
    if (bits_ == 8) return word;
    return (which == 0 ? word << s_.integer(4) : word) & 0xf0f0f0f0;
  }
  Value bytes(Value word, Value which) const {
    return bits_ == 8 ? word : (word << (s_.integer(4) - which * 4)) & 0xf0f0f0f0;
  }
  Value without_factor(Value sum) const {
    if (bits_ == 8) return sum;
    return sum.kind == Kind::real ? sum * s_.real(1.0 / 16) : shift_right_signed(sum, s_.integer(4));
  }
  // Of sums of a vector's group, with the factor in them.
  Quad scales_at(Value quad, Value vector) const {
    Quad four = scales_.of_group(quad, scales_.group_of(vector));
    for (Value& scale : four) scale = without_factor(scale);
    return four;
  }

  // What one weight is: of row `row` among four.
  Value weight(Value quad, Value row, Value channel) const {
    const auto per = static_cast<std::int64_t>(4 * words_of_vector());
    const Value at = channel / s_.integer(per), in_word = channel % s_.integer(4);
    const Quad words = vector(quad, at), four = scales_at(quad, at);
    Value word = words[0], scale = four[0];
    for (std::size_t q = 1; q < 4; ++q) {
      const Value is = row == static_cast<std::int64_t>(q);
      word = s_.select(is, words[q], word);
      scale = s_.select(is, four[q], scale);
    }
    const Value which = channel % s_.integer(per) / s_.integer(4);
    const Value code = shift_right_signed(bytes(word, which) << (s_.integer(24) - in_word * 8), s_.integer(24));
    return s_.signed_to_real(code) * scale;
  }

 private:
  Kernel& s_;
  const int bits_;
  const Buffer words_, scales_buffer_;
  const Value row_;
  const GroupScales scales_;
};

// How many vectors are summed as floats, exactly, before the sum is taken: a part of a group; without groups there may
// be fewer at the end.
std::int64_t vectors_at_once(const QuantisedMatrix& m);

// The signed bytes of a word.
Quad bytes_of_word(Kernel& s, Value word);

// What becomes of the product's sums: they get the scales of their rows, and without groups those of their columns, and
// the bias; sums that are the result themselves stay integers.
class ScaledAccumulators {
 public:
  // By quads: all columns are asked for by fours.
  ScaledAccumulators(Kernel& s, const Node& node, const QuantisedMatrix& m, bool by_quads = false);
  bool stay_integers() const { return integers_; }
  // The row's zero point, an integer; none: 0.
  std::optional<Value> zero(Value row) const;
  Value finished(Value sum, Value row, Value column) const;
  // The same without the bias: of four columns from `column` on, or of that one alone.
  Quad scaled(const Quad& sums, Value row, Value column) const;

 private:
  std::optional<Value> by_row(std::size_t operand, Value row) const;
  Kernel& s_;
  const Node& node_;
  const bool integers_, by_quads_;
  std::optional<Buffer> of_columns_;
};

}  // namespace tosaic::shaders
