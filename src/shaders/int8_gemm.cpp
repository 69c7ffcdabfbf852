// SPDX-License-Identifier: Apache-2.0
// Int8 x int8 GEMMs: of a few rows by work groups that divide the depth, with dot products of words where
// there are such; of any by invocations that make four columns of some rows, as floats, exactly: sums of up to 512
// products of 255 and 128, or of 128 and 128 and what zero points make of them, do not exceed 2^24.
#include "shaders/int8_gemm.h"

#include "ops/definitions/extension.h"
#include "shaders/product.h"
#include "shaders/row_product.h"

namespace tosaic::shaders {
namespace {

using namespace row_product;

constexpr std::int64_t most_at_once = 512;  // products

// Four quantised values by four.
class Int8Dots {
 public:
  Int8Dots(Kernel& s, const std::optional<Value>& zero)
      : s_(s), packed_(tiers_of_dots.has(s.work().tier)), zero_(zero) {}

  struct Left {
    Value word;
    Quad quantised;  // instead of it
  };
  Left left(Value word) const {
    if (packed_) return {word, {}};
    Left made{word, bytes_of_word(s_, word)};
    for (Value& code : made.quantised) code = centred(code, zero_);
    return made;
  }
  Value sum(const Left& left, Value bytes) const {
    if (packed_) {
      const Value dot = s_.dot_of_int8(bytes, left.word);
      return zero_ ? dot - s_.dot_of_int8(bytes, s_.integer(0x01010101)) * *zero_ : dot;
    }
    const Quad quantised = bytes_of_word(s_, bytes);
    Value all = left.quantised[0] * quantised[0];
    for (std::size_t i = 1; i < 4; ++i) all = all + left.quantised[i] * quantised[i];
    return all;
  }

 private:
  Kernel& s_;
  const bool packed_;
  const std::optional<Value> zero_;
};

}  // namespace

std::int64_t vectors_at_once(const QuantisedMatrix& m) {
  const std::int64_t per = m.per_word(), group = m.group / per, most = most_at_once / per;
  if (group <= most) return group;
  if (!m.has_groups()) return most;
  std::int64_t part = most;
  while (group % part != 0) --part;
  return part;
}

Quad bytes_of_word(Kernel& s, Value word) {
  Quad quantised;
  for (std::size_t i = 0; i < 4; ++i)
    quantised[i] = shift_right_signed(i == 3 ? word : word << s.integer(24 - 8 * static_cast<int>(i)), s.integer(24));
  return quantised;
}

ScaledAccumulators::ScaledAccumulators(Kernel& s, const Node& node, const QuantisedMatrix& m, bool by_quads)
    : s_(s), node_(node), integers_(is_integer(s.type(node.outputs[0]).dtype)), by_quads_(by_quads) {
  if (!integers_ && !m.has_groups()) of_columns_ = s.constant(DType::f32, m.scales, by_quads_);
}

std::optional<Value> ScaledAccumulators::by_row(std::size_t operand, Value row) const {
  const std::vector<ValueId>& in = node_.inputs;
  if (node_.op != extension::op::scaled_product || in.size() <= operand) return std::nullopt;
  return s_.load(s_.input(in[operand]), row);
}

std::optional<Value> ScaledAccumulators::zero(Value row) const {
  const auto zero = by_row(extension::scaled_product::row_zero, row);
  return zero ? std::optional(s_.real_to_signed(*zero)) : std::nullopt;
}

Quad ScaledAccumulators::scaled(const Quad& sums, Value row, Value column) const {
  if (integers_) return sums;
  const auto of_row = by_row(extension::scaled_product::row_scale, row);
  Quad scaled = sums, of_columns;
  if (of_columns_ && by_quads_) of_columns = s_.load_quad(*of_columns_, shift_right_unsigned(column, s_.integer(2)));
  if (of_columns_ && !by_quads_) of_columns[0] = s_.load(*of_columns_, column);
  for (std::size_t q = 0; q < (by_quads_ ? 4 : 1); ++q) {
    if (of_columns_) scaled[q] = s_.signed_to_real(scaled[q]) * of_columns[q];
    if (of_row) scaled[q] = scaled[q] * *of_row;
  }
  return scaled;
}

Value ScaledAccumulators::finished(Value sum, Value row, Value column) const {
  if (integers_) return sum;
  return scaled({sum}, row, column)[0] + bias_at(s_, tosa::View(s_.graph(), node_), column);
}

bool takes_int8_gemm(const tosa::View& view) { return multiplies_int8(view.graph(), view.node()); }
bool takes_few_int8_rows(const tosa::View& view) {
  return takes_int8_gemm(view) && most(rows_of_product(view)) <= few_rows;
}
bool takes_many_int8_rows(const tosa::View& view) {
  return takes_int8_gemm(view) && most(rows_of_product(view)) > few_rows;
}

MadeList make_int8_row_gemm(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const Dim rows = rows_of_product(view);
  const std::int64_t across = (matrix->quads() + wide - 1) / wide;
  Kernel s(work, name_of_product(node), Groups{rows * across, wide * deep});
  const QuantisedByDepth quantised(s, *matrix);
  const Value local = s.local(), tiles = s.param(across), quads = s.param(matrix->quads()), zero = s.integer(0);
  const Value row = s.group() / tiles, first = s.group() % tiles * wide, words = s.param(matrix->depth / 4);
  const Value quad = first + local % s.integer(wide), part = local / s.integer(wide), all_rows = s.param(rows);
  const Value there = (quad < quads) & (row < all_rows), own = s.select(there, quad, zero);
  const Value own_row = s.select(there, row, zero), begin = own_row * words;
  const Buffer input = s.input_words(node.inputs[0], false);
  const ScaledAccumulators sums(s, node, *matrix);
  const Int8Dots dots(s, sums.zero(own_row));
  const bool grouped = matrix->has_groups();
  const std::size_t of_vector = quantised.words_of_vector();
  const VectorVariable sum = s.variable(s.splat(grouped ? s.real(0) : zero));
  s.loop(part, quantised.vectors(), s.integer(deep * reads_at_once), [&](Value first_vector) {
    std::vector<Quad> weights, scales;
    std::vector<Value> x;
    for (std::uint32_t n = 0; n < reads_at_once; ++n) {
      const Value at = first_vector + n * deep, inside = at < quantised.vectors(), place = s.select(inside, at, zero);
      weights.push_back(quantised.vector(own, place));
      for (Value& word : weights.back()) word = s.select(inside, word, zero);
      if (grouped) scales.push_back(quantised.scales_at(own, place));
      for (std::size_t i = 0; i < of_vector; ++i)
        x.push_back(s.load(input, begin + place * static_cast<std::int64_t>(of_vector) + static_cast<std::int64_t>(i)));
    }
    for (std::size_t n = 0; n < reads_at_once; ++n) {
      Quad four;
      for (std::size_t i = 0; i < of_vector; ++i) {
        const Int8Dots::Left left = dots.left(x[n * of_vector + i]);
        for (std::size_t q = 0; q < 4; ++q) {
          const Value dot = dots.sum(left, quantised.bytes(weights[n][q], i));
          four[q] = i == 0 ? dot : four[q] + dot;
        }
      }
      for (std::size_t q = 0; q < 4; ++q)
        four[q] = grouped ? s.signed_to_real(four[q]) * scales[n][q] : quantised.without_factor(four[q]);
      sum.set(sum.get() + s.vector(four));
    }
  });
  store_row_sums(s, view, end, sum, {row, first, s.param(matrix->rows), all_rows},
                 [&](Value folded, Value column) { return sums.finished(folded, row, column); });
  return one(s);
}

MadeList make_int8_gemm(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = find_quantised_matrix(work, node);
  if (!matrix) return std::nullopt;
  const Dim rows = rows_of_product(view);
  const std::int64_t at_once = std::min(rows_at_once, most(rows));
  const bool grouped = matrix->has_groups();
  Kernel s(work, name_of_product(node), ceil_div(rows, at_once) * matrix->quads());
  const QuantisedByDepth quantised(s, *matrix);
  const std::size_t of_vector = quantised.words_of_vector();
  const Value quads = s.param(matrix->quads()), quad = s.index() % quads, first = s.index() / quads * at_once;
  const Value all_rows = s.param(rows), all_columns = s.param(matrix->rows), words = s.param(matrix->depth / 4);
  const Buffer input = s.input_words(node.inputs[0], false);
  const ScaledAccumulators scaling(s, node, *matrix);
  const Vector none = s.splat(s.real(0));
  std::vector<Value> own_rows;
  std::vector<VectorVariable> sums, totals;
  std::vector<std::optional<Value>> zeros;
  for (std::int64_t r = 0; r < at_once; ++r) {
    own_rows.push_back(smallest(first + r, all_rows - 1));
    sums.push_back(s.variable(none));
    totals.push_back(s.variable(s.splat(grouped ? s.real(0) : s.integer(0))));
    zeros.push_back(scaling.zero(own_rows.back()));
  }
  const Value step = s.param(vectors_at_once(*matrix));
  s.loop(s.integer(0), quantised.vectors(), step, [&](Value begin) {
    s.loop(begin, smallest(begin + step, quantised.vectors()), s.integer(1), [&](Value at) {
      const Quad weights = quantised.vector(quad, at);
      for (std::size_t i = 0; i < of_vector; ++i) {
        std::array<Quad, 4> by_depth;
        for (std::size_t q = 0; q < 4; ++q) {
          const Quad four = bytes_of_word(s, quantised.bytes(weights[q], i));
          for (std::size_t k = 0; k < 4; ++k) by_depth[k][q] = s.signed_to_real(four[k]);
        }
        std::array<Vector, 4> columns;
        for (std::size_t k = 0; k < 4; ++k) columns[k] = s.vector(by_depth[k]);
        const Value word = at * static_cast<std::int64_t>(of_vector) + static_cast<std::int64_t>(i);
        for (std::size_t r = 0; r < sums.size(); ++r) {
          const Quad x = bytes_of_word(s, s.load(input, own_rows[r] * words + word));
          Vector sum = sums[r].get();
          for (std::size_t k = 0; k < 4; ++k) sum = sum + columns[k] * s.signed_to_real(centred(x[k], zeros[r]));
          sums[r].set(sum);
        }
      }
    });
    const Quad scales = grouped ? quantised.scales_at(quad, begin) : Quad{};
    for (std::size_t r = 0; r < sums.size(); ++r) {
      Quad four;
      for (std::size_t q = 0; q < 4; ++q) {
        const Value part = lane(sums[r].get(), static_cast<Word>(q));
        four[q] = grouped ? part * scales[q] : s.real_to_signed(quantised.without_factor(part));
      }
      totals[r].set(totals[r].get() + s.vector(four));
      sums[r].set(none);
    }
  });
  for (std::size_t r = 0; r < sums.size(); ++r) {
    const Value row = first + static_cast<std::int64_t>(r);
    s.repeat(4, [&](int q) {
      const Value column = quad * 4 + q;
      s.when((row < all_rows) & (column < all_columns), [&] {
        const Value sum = lane(totals[r].get(), static_cast<Word>(q));
        end.store(s, row * all_columns + column, scaling.finished(sum, own_rows[r], column));
      });
    });
  }
  return one(s);
}

}  // namespace tosaic::shaders
