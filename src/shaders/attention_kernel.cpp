// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "shaders/attention.h"
#include "shaders/attention_factor.h"
#include "shaders/attention_group.h"
#include "shaders/functions.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

using spirv::MatrixUse;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t unit = 8;  // of f16 in a vector

// A group has `rows` queries, and at each step as many keys; subgroups have 16 rows, of which `across` share the
// columns. Where scores have `places` two, those of a step are stored while weights of the step before are read.
struct AttentionTile {
  std::uint32_t rows, keys, width, across, places = 2;

  constexpr std::uint32_t down() const { return rows / matrix_side; }
  constexpr std::uint32_t invocations() const { return down() * across * matrix_subgroup; }
  constexpr std::uint32_t lanes() const { return invocations() / rows; }  // invocations of a row
  // In vectors, one more than a row has, so that reads of several rows do not wait for each other.
  constexpr std::uint32_t factor_pitch() const { return width / 8 + 1; }
  constexpr std::uint32_t score_pitch() const { return keys / 4 + 1; }
  constexpr std::uint32_t result_pitch() const { return width / 4 + 1; }
  // What the memory has one behind the other: scores, later weights; keys, before them queries; values; a number of
  // each row. In the end results, from the beginning on.
  constexpr std::uint32_t keys_at() const { return places * rows * score_pitch(); }
  constexpr std::uint32_t values_at() const { return keys_at() + std::max(rows, keys) * factor_pitch(); }
  constexpr std::uint32_t factors_at() const {
    return std::max(values_at() + keys * factor_pitch(), rows * result_pitch());
  }
  constexpr std::uint32_t shared() const { return factors_at() + rows / 4; }
};

// The narrowest first; and one for so few that all of them are at work at once, as measured on an H200.
constexpr AttentionTile tiles[] = {{32, 64, 32, 2}, {32, 32, 64, 2}, {32, 32, 96, 2}, {32, 32, 128, 2}};
constexpr AttentionTile of_few = {32, 64, 64, 4, 1};
constexpr std::int64_t few = 132;

constexpr bool fits(const AttentionTile& t) {
  const std::uint32_t side = matrix_side * t.across;
  return t.rows * t.width / 8 % t.invocations() == 0 && t.keys * t.width / 8 % t.invocations() == 0 &&
         t.keys % side == 0 && t.width % side == 0 && t.keys / 8 % t.lanes() == 0 && t.lanes() <= matrix_subgroup &&
         std::has_single_bit(t.lanes()) && t.shared() * 16 <= 32 * 1024 && t.invocations() <= 256;
}
static_assert(std::ranges::all_of(tiles, fits) && fits(of_few));

class Online {
 public:
  Online(Kernel& s, const AttentionTile& tile, const Attention& attention, const QueriesOfGroup& queries)
      : s_(s),
        tile_(tile),
        rows_may_be_empty_(attention.rows_may_be_empty),
        queries_of_group_(queries),
        scores_(s, attention, queries, AttentionScores::bits_of_e),
        memory_(s.shared(Kind::integer, tile.shared())) {
    const Value subgroup = s.subgroup();
    row_ = subgroup / s.integer(tile.across);
    column_ = subgroup % s.integer(tile.across);
    line_ = s.local() / s.integer(tile.lanes());
    lane_ = s.local() % s.integer(tile.lanes());
  }

  void read_queries(AttentionFactor& queries) {
    queries.fetch(tile_.rows, queries_of_group_.first, queries_of_group_.all);
    queries.share(memory_, tile_.rows, tile_.keys_at());
    s_.barrier();
    const Value begin = row_ * (matrix_side * tile_.factor_pitch()) + std::int64_t{tile_.keys_at()};
    for (std::uint32_t k = 0; k < tile_.width / matrix_side; ++k)
      queries_.push_back(s_.load_matrix(memory_, begin + k * 2, tile_.factor_pitch(), MatrixUse::left));
    s_.barrier();
  }

  // Two barriers are enough for a step, but for one more where scores have one place: what is written between two of
  // them was read before the first one, and is read behind the second one.
  void go_over(AttentionFactor& keys, AttentionFactor& values, Value blocks) {
    most_ = s_.variable(s_.real(-infinity));
    sum_ = s_.variable(s_.real(0));
    for (std::uint32_t c = 0; c < own_columns(); ++c) weighted_.push_back(s_.zero_matrix());
    keys.fetch(tile_.keys, s_.integer(0), queries_of_group_.keys);
    keys.share(memory_, tile_.keys, tile_.keys_at());
    s_.barrier();
    const auto step = [&](Value block) {
      const Value first = block * tile_.keys, next = block + 1;
      if (tile_.places == 2) scores_at_ = (block & 1) * std::int64_t{tile_.rows * tile_.score_pitch()};
      values.fetch(tile_.keys, first, queries_of_group_.keys);
      s_.when(next < blocks, [&] { keys.fetch(tile_.keys, first + tile_.keys, queries_of_group_.keys); });
      make_scores();
      s_.barrier();
      values.share(memory_, tile_.keys, tile_.values_at());
      keys.share(memory_, tile_.keys, tile_.keys_at());
      make_weights(finished_scores(first));
      s_.barrier();
      weigh_values();
      if (tile_.places == 1) s_.barrier();
    };
    // Written out several times it is no faster, and drivers compile it for three times as long.
    s_.loop(s_.integer(0), blocks, s_.integer(1), step, Unrolling::none);
    s_.barrier();
  }

  TileAccumulators results() {
    Value sum = all_of_row(sum_->get(), [](Value a, Value b) { return a + b; });
    if (rows_may_be_empty_) sum = s_.select(sum < s_.real(1), s_.real(1), sum);
    share_factor(reciprocal(sum));
    s_.barrier();
    const Matrix parts = row_factors();
    const Value begin = row_ * (matrix_side * tile_.result_pitch()) + column_ * (own_columns() * (matrix_side / 4));
    for (std::uint32_t c = 0; c < own_columns(); ++c)
      s_.store_matrix(memory_, begin + std::int64_t{c * (matrix_side / 4)}, tile_.result_pitch(),
                      weighted_[c].get() * parts);
    s_.barrier();
    return {memory_, Kind::real, tile_.rows, tile_.width, 1, tile_.result_pitch(), tile_.invocations()};
  }

 private:
  std::uint32_t own_columns() const { return tile_.width / tile_.across / matrix_side; }
  std::uint32_t own_eights() const { return tile_.keys / 8 / tile_.lanes(); }
  Value own_eight(std::uint32_t i) { return lane_ + std::int64_t{i * tile_.lanes()}; }
  Value in_scores(Value vector) { return scores_at_ ? *scores_at_ + vector : vector; }
  Value begin_of_line() { return in_scores(line_ * tile_.score_pitch()); }

  // Of a subgroup, matrices next to each other.
  Value begin_of_scores() { return in_scores(row_ * (matrix_side * tile_.score_pitch())); }
  void make_scores() {
    const std::uint32_t own = tile_.keys / tile_.across / matrix_side, side = matrix_side * tile_.factor_pitch();
    const Value keys_at = column_ * (own * side) + std::int64_t{tile_.keys_at()};
    std::vector<Matrix> sums(own, s_.zero_sum());
    for (std::uint32_t k = 0; k < queries_.size(); ++k)
      for (std::uint32_t c = 0; c < own; ++c) {
        const Matrix keys =
            s_.load_matrix(memory_, keys_at + (c * side + k * 2), tile_.factor_pitch(), MatrixUse::right, true);
        sums[c] = s_.multiply_add(queries_[k], keys, sums[c]);
      }
    const Value begin = begin_of_scores() + column_ * (own * (matrix_side / 4));
    for (std::uint32_t c = 0; c < own; ++c)
      s_.store_matrix(memory_, begin + std::int64_t{c * (matrix_side / 4)}, tile_.score_pitch(), sums[c]);
  }

  void weigh_values() {
    const Value left = begin_of_scores(), right = column_ * (own_columns() * 2) + std::int64_t{tile_.values_at()};
    const Matrix rescaled = row_factors();
    std::vector<Matrix> sums;
    for (const MatrixVariable& sum : weighted_) sums.push_back(sum.get() * rescaled);
    for (std::uint32_t k = 0; k < tile_.keys / matrix_side; ++k) {
      const Matrix weights = s_.load_matrix(memory_, left + k * 2, tile_.score_pitch(), MatrixUse::left);
      for (std::uint32_t c = 0; c < own_columns(); ++c) {
        const Value at = right + (k * matrix_side * tile_.factor_pitch() + c * 2);
        const Matrix values = s_.load_matrix(memory_, at, tile_.factor_pitch(), MatrixUse::right);
        sums[c] = s_.multiply_add(weights, values, sums[c]);
      }
    }
    for (std::size_t c = 0; c < sums.size(); ++c) weighted_[c].set(sums[c]);
  }

  // Eight neighbours at a time, as scales and masks leave them, in bits. Where there is no key, none has a weight.
  std::vector<Value> finished_scores(Value first) {
    std::vector<Value> list;
    for (std::uint32_t i = 0; i < own_eights(); ++i)
      for (std::uint32_t four : {0u, 1u}) {
        const Vector v = s_.load(memory_, begin_of_line() + own_eight(i) * 2 + four);
        for (Word q = 0; q < 4; ++q) list.push_back(s_.real_of(lane(v, q)));
      }
    s_.repeat(static_cast<int>(list.size()), [&](int n) {
      Value& score = list[static_cast<std::size_t>(n)];
      score = scores_.finished(score, line_, first + own_eight(static_cast<std::uint32_t>(n) / unit) * unit + n % unit);
    });
    return list;
  }

  static Value largest_of(std::vector<Value> list) {
    for (; list.size() > 1; list.resize(list.size() / 2))
      for (std::size_t i = 0; i < list.size() / 2; ++i) list[i] = larger_score(list[i], list[list.size() / 2 + i]);
    return list[0];
  }

  // In place of scores. What was summed before is to be multiplied by the row's factor.
  void make_weights(const std::vector<Value>& scores) {
    const Value before = most_->get(), now = larger_score(before, all_of_row(largest_of(scores), larger_score));
    most_->set(now);
    const Value base = base_of_scores(now);
    const Value rescale = s_.call(Function::exp2, {before - base});
    std::vector<Value> weights;
    for (const Value& score : scores) weights.push_back(s_.call(Function::exp2, {score - base}));
    for (std::uint32_t i = 0; i < own_eights(); ++i) {
      Quad words;
      for (std::size_t q = 0; q < 4; ++q)
        words[q] = s_.packed_f16(weights[i * unit + 2 * q], weights[i * unit + 2 * q + 1]);
      s_.store(memory_, begin_of_line() + own_eight(i), s_.vector(words));
    }
    Value sum = sum_->get() * rescale;
    for (const Value& weight : weights) sum = sum + weight;
    sum_->set(sum);
    share_factor(rescale);
  }

  // Of what each invocation of a row has, for all of them: they are neighbours in a subgroup.
  Value all_of_row(Value own, const std::function<Value(Value, Value)>& fold) {
    const Value lane = s_.local() % s_.integer(matrix_subgroup);
    for (std::uint32_t apart = 1; apart < tile_.lanes(); apart *= 2)
      own = fold(own, s_.shuffle(own, lane ^ s_.integer(apart)));
    return own;
  }
  // By which matrices of a row's sums are multiplied.
  void share_factor(Value factor) {
    const Value four = s_.integer(4);
    s_.when(lane_ == 0, [&] {
      s_.store(memory_, line_ / four + std::int64_t{tile_.factors_at()}, line_ % four, s_.bits_of(factor));
    });
  }
  Matrix row_factors() { return s_.load_column(memory_, row_ * (matrix_side / 4) + std::int64_t{tile_.factors_at()}); }

  Kernel& s_;
  const AttentionTile tile_;
  const bool rows_may_be_empty_;
  const QueriesOfGroup& queries_of_group_;
  const AttentionScores scores_;  // in bits
  Shared memory_;
  std::optional<Value> scores_at_;  // of the step at hand; none: there is one place
  Value row_, column_;              // of a subgroup
  Value line_, lane_;               // of an invocation, among rows
  std::vector<Matrix> queries_;
  std::optional<Variable> most_, sum_;  // of the row: the largest score, and this invocation's part of the weights
  std::vector<MatrixVariable> weighted_;
};

}  // namespace

// Of f16 alone.
static MadeList make_attention_of_matrices(const Work& work, const Attention& attention, const Finish& end) {
  const AttentionSizes sizes = sizes_of(work.graph, attention);
  const AttentionTile* tile = std::ranges::find_if(
      tiles, [&](const AttentionTile& t) { return t.width >= std::max(sizes.deep, sizes.columns); });
  if (!packs_f16(work) || tile == std::end(tiles)) return std::nullopt;
  if (tile->width == of_few.width && sizes.keys > tile->keys && QueriesOfGroup::groups(sizes, of_few.rows) <= few)
    tile = &of_few;
  const auto operands = find_operands(work, attention, DType::f16, unit);
  if (!operands) return std::nullopt;
  const auto& [q, k, v] = *operands;
  Attention scaled = attention;
  scaled.factor = q.factor * k.factor;

  Kernel s(work, "attention", Groups{QueriesOfGroup::groups(sizes, tile->rows), tile->invocations()});
  const QueriesOfGroup group(s, sizes, tile->rows);
  const AttentionFactor::Lines lines{tile->width / 8, tile->factor_pitch(), tile->invocations()};
  AttentionFactor queries(s, q, group.batch, q.rows, sizes.deep, Fetched::As::f16, lines),
      key_rows(s, k, group.batch, k.columns, sizes.deep, Fetched::As::f16, lines),
      value_rows(s, v, group.batch, v.rows, sizes.columns, Fetched::As::f16, lines);
  Online online(s, *tile, scaled, group);
  online.read_queries(queries);
  online.go_over(key_rows, value_rows, s.param((sizes.keys + tile->keys - 1) / tile->keys));
  group.store(end, online.results());
  return one(s);
}

MadeList make_attention(const Work& work, const Attention& attention, const Finish& end) {
  MadeList made = make_attention_of_matrices(work, attention, end);
  return made ? std::move(made) : make_tiled_attention(work, attention, end);
}

}  // namespace tosaic::shaders
