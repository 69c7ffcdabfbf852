// SPDX-License-Identifier: Apache-2.0
// Attention of f32: an invocation makes some rows and columns of a tile of scores, and then of the values that these
// weigh, as in product.cpp; of the same rows, so that their largest scores and sums stay with it.
#include <algorithm>
#include <limits>

#include "shaders/attention.h"
#include "shaders/attention_factor.h"
#include "shaders/attention_group.h"
#include "shaders/block_place.h"
#include "shaders/functions.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t keys = 32, across = 8;  // at each step, and the invocations that share a row of their scores
constexpr std::int64_t unit = 4;                // of f32 in a vector

// A group has `rows` queries, an invocation `own_rows` of them and four keys.
struct Tile {
  std::uint32_t rows, width, own_rows;

  constexpr std::uint32_t down() const { return rows / own_rows; }
  constexpr std::uint32_t invocations() const { return down() * across; }
  constexpr std::uint32_t own_vectors() const { return width / 4 / across; }  // of a row of values
  // In vectors, one more than a row has, so that reads of several rows do not wait for each other.
  constexpr std::uint32_t factor_pitch() const { return width / 4 + 1; }
  static constexpr std::uint32_t weight_pitch() { return keys / 4 + 1; }
  // What the memory has one behind the other: queries; keys, later values; weights; a number of each row for each
  // invocation that has it. In the end results, from the beginning on.
  constexpr std::uint32_t keys_at() const { return rows * factor_pitch(); }
  constexpr std::uint32_t weights_at() const { return keys_at() + keys * factor_pitch(); }
  constexpr std::uint32_t numbers_at() const { return weights_at() + rows * weight_pitch(); }
  constexpr std::uint32_t shared() const { return numbers_at() + rows * across / 4; }
};

// The narrowest first.
constexpr Tile tiles[] = {{32, 32, 2}, {16, 64, 1}};

constexpr bool fits(const Tile& t) {
  return t.down() % 4 == 0 && t.width % (4 * across) == 0 && t.shared() * 16 <= 16384;
}
static_assert(std::ranges::all_of(tiles, fits));

class TiledAttention {
 public:
  TiledAttention(Kernel& s, const Tile& tile, const Attention& attention, const QueriesOfGroup& queries)
      : s_(s),
        tile_(tile),
        rows_may_be_empty_(attention.rows_may_be_empty),
        queries_(queries),
        scores_(s, attention, queries, 1),
        memory_(s.shared(Kind::real, tile.shared())),
        place_(s, s.local(), tile.down(), across) {
    for (std::uint32_t r = 0; r < tile.own_rows; ++r) {
      most_.push_back(s.variable(s.real(-infinity)));
      sums_.push_back(s.variable(s.real(0)));
      for (std::uint32_t v = 0; v < tile.own_vectors(); ++v) weighted_.push_back(s.variable(s.splat(s.real(0))));
    }
  }

  // Memory that is written was read before the last barrier.
  void go_over(AttentionFactor& queries, AttentionFactor& all_keys, AttentionFactor& values, Value blocks) {
    all_keys.fetch(keys, s_.integer(0), queries_.keys);
    queries.share(memory_, tile_.rows, 0);
    s_.loop(s_.integer(0), blocks, s_.integer(1), [&](Value block) {
      const Value first = block * std::int64_t{keys}, next = block + 1;
      all_keys.share(memory_, keys, tile_.keys_at());
      s_.barrier();
      values.fetch(keys, first, queries_.keys);
      const std::vector<Vector> products = multiply_keys();
      std::vector<Quad> scores = finished_scores(products, first);
      share_numbers([&](std::size_t r) { return folded(scores[r], larger_score); });
      s_.barrier();
      values.share(memory_, keys, tile_.keys_at());
      make_weights(scores);
      s_.when(next < blocks, [&] { all_keys.fetch(keys, first + std::int64_t{keys}, queries_.keys); });
      s_.barrier();
      weigh_values();
      s_.barrier();
    });
  }

  TileAccumulators results() {
    share_numbers([&](std::size_t r) { return sums_[r].get(); });
    s_.barrier();
    const std::uint32_t pitch = tile_.width / 4;
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
      Value sum = all_of_row(r, sum_of);
      if (rows_may_be_empty_) sum = s_.select(sum < s_.real(1), s_.real(1), sum);
      const Value part = reciprocal(sum);
      for (std::uint32_t v = 0; v < tile_.own_vectors(); ++v)
        s_.store(memory_, line(r) * pitch + place_.column + std::int64_t{v * across}, weighted(r, v).get() * part);
    }
    s_.barrier();
    return {memory_, Kind::real, tile_.rows, tile_.width, 1, pitch, tile_.invocations()};
  }

 private:
  // Rows, keys and vectors of values of an invocation lie as far apart as there are invocations along them.
  Value line(std::uint32_t r) { return place_.row + std::int64_t{r * tile_.down()}; }
  const VectorVariable& weighted(std::size_t r, std::size_t v) { return weighted_[r * tile_.own_vectors() + v]; }

  // By rows, of the invocation's four keys.
  std::vector<Vector> multiply_keys() {
    std::vector<VectorVariable> sums;
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) sums.push_back(s_.variable(s_.splat(s_.real(0))));
    const std::uint32_t pitch = tile_.factor_pitch(), deep = tile_.width / 4;
    s_.loop(
        s_.integer(0), s_.integer(deep), s_.integer(1),
        [&](Value counted) {
          const Value k = counted % s_.integer(deep);  // as it is, said so that it is seen
          std::vector<Vector> of_keys;
          for (std::uint32_t c = 0; c < 4; ++c)
            of_keys.push_back(
                s_.load(memory_, place_.column * pitch + k + std::int64_t{tile_.keys_at() + c * across * pitch}));
          for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
            const Vector query = s_.load(memory_, line(r) * pitch + k);
            Vector sum = sums[r].get();
            for (Word q = 0; q < 4; ++q) {
              Quad four;
              for (std::size_t c = 0; c < 4; ++c) four[c] = lane(of_keys[c], q);
              sum = sum + s_.vector(four) * lane(query, q);
            }
            sums[r].set(sum);
          }
        },
        Unrolling::all);
    std::vector<Vector> all;
    for (const VectorVariable& sum : sums) all.push_back(sum.get());
    return all;
  }

  std::vector<Quad> finished_scores(const std::vector<Vector>& products, Value first) {
    std::vector<Quad> scores(products.size());
    s_.repeat(static_cast<int>(products.size() * 4), [&](int n) {
      const auto r = static_cast<std::uint32_t>(n) / 4, c = static_cast<std::uint32_t>(n) % 4;
      scores[r][c] = scores_.finished(lane(products[r], c), line(r), first + place_.column + std::int64_t{c * across});
    });
    return scores;
  }

  // In place of scores. What was summed before is multiplied by as much as a larger score asks for. The device's 2^x is
  // off by a few units of the last place and two more for each x below zero, where so small a part of the sum is.
  void make_weights(std::vector<Quad>& scores) {
    const Value bits_of_e = s_.real(AttentionScores::bits_of_e);
    const auto weight = [&](Value less) { return s_.call(Function::exp2, {less * bits_of_e}); };
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r) {
      const Value before = most_[r].get(), now = larger_score(before, all_of_row(r, larger_score)),
                  base = base_of_scores(now);
      most_[r].set(now);
      const Value rescale = weight(before - base);
      for (Value& score : scores[r]) score = weight(score - base);
      s_.store(memory_, line(r) * Tile::weight_pitch() + place_.column + std::int64_t{tile_.weights_at()},
               s_.vector(scores[r]));
      sums_[r].set(sums_[r].get() * rescale + folded(scores[r], sum_of));
      for (std::uint32_t v = 0; v < tile_.own_vectors(); ++v) weighted(r, v).set(weighted(r, v).get() * rescale);
    }
  }

  // A vector of weights is of the four keys of an invocation.
  void weigh_values() {
    const std::uint32_t pitch = tile_.factor_pitch();
    s_.loop(
        s_.integer(0), s_.integer(across), s_.integer(1),
        [&](Value counted) {
          const Value k = counted % s_.integer(across);
          std::vector<Vector> weights;
          for (std::uint32_t r = 0; r < tile_.own_rows; ++r)
            weights.push_back(s_.load(memory_, line(r) * Tile::weight_pitch() + k + std::int64_t{tile_.weights_at()}));
          for (std::uint32_t v = 0; v < tile_.own_vectors(); ++v) {
            std::vector<Vector> sums;
            for (std::uint32_t r = 0; r < tile_.own_rows; ++r) sums.push_back(weighted(r, v).get());
            for (Word q = 0; q < 4; ++q) {
              const Vector values = s_.load(
                  memory_, k * pitch + place_.column + std::int64_t{tile_.keys_at() + q * across * pitch + v * across});
              for (std::uint32_t r = 0; r < tile_.own_rows; ++r) sums[r] = sums[r] + values * lane(weights[r], q);
            }
            for (std::uint32_t r = 0; r < tile_.own_rows; ++r) weighted(r, v).set(sums[r]);
          }
        },
        Unrolling::all);
  }

  // One of each of the invocation's rows, for those that have the same rows.
  void share_numbers(const std::function<Value(std::size_t r)>& number) {
    const Value four = s_.integer(4);
    for (std::uint32_t r = 0; r < tile_.own_rows; ++r)
      s_.store(memory_, numbers_of(r) + place_.column / four, place_.column % four, number(r));
  }
  Value numbers_of(std::uint32_t r) { return line(r) * (across / 4) + std::int64_t{tile_.numbers_at()}; }
  Value all_of_row(std::uint32_t r, const std::function<Value(Value, Value)>& fold) {
    std::optional<Value> all;
    for (std::uint32_t i = 0; i < across / 4; ++i) {
      const Vector v = s_.load(memory_, numbers_of(r) + std::int64_t{i});
      const Value one = folded({lane(v, 0), lane(v, 1), lane(v, 2), lane(v, 3)}, fold);
      all = all ? fold(*all, one) : one;
    }
    return *all;
  }
  static Value sum_of(Value a, Value b) { return a + b; }
  static Value folded(const Quad& four, const std::function<Value(Value, Value)>& fold) {
    return fold(fold(four[0], four[1]), fold(four[2], four[3]));
  }

  Kernel& s_;
  const Tile tile_;
  const bool rows_may_be_empty_;
  const QueriesOfGroup& queries_;
  const AttentionScores scores_;
  Shared memory_;
  const BlockPlace place_;
  std::vector<Variable> most_, sums_;  // by rows: the largest score, and this invocation's part of the weights
  std::vector<VectorVariable> weighted_;
};

}  // namespace

MadeList make_tiled_attention(const Work& work, const Attention& attention, const Finish& end) {
  const AttentionSizes sizes = sizes_of(work.graph, attention);
  const Tile* tile =
      std::ranges::find_if(tiles, [&](const Tile& t) { return t.width >= std::max(sizes.deep, sizes.columns); });
  const auto operands = find_operands(work, attention, DType::f32, unit);
  if (tile == std::end(tiles) || !operands) return std::nullopt;
  const auto& [q, k, v] = *operands;
  Attention scaled = attention;
  scaled.factor = q.factor * k.factor;

  Kernel s(work, "attention", Groups{QueriesOfGroup::groups(sizes, tile->rows), tile->invocations()});
  const QueriesOfGroup group(s, sizes, tile->rows);
  const AttentionFactor::Lines lines{tile->width / 4, tile->factor_pitch(), tile->invocations()};
  AttentionFactor queries(s, q, group.batch, q.rows, sizes.deep, Fetched::As::floats, lines),
      key_rows(s, k, group.batch, k.columns, sizes.deep, Fetched::As::floats, lines),
      value_rows(s, v, group.batch, v.rows, sizes.columns, Fetched::As::floats, lines);
  queries.fetch(tile->rows, group.first, group.all);
  TiledAttention tiled(s, *tile, scaled, group);
  tiled.go_over(queries, key_rows, value_rows, s.param((sizes.keys + keys - 1) / keys));
  group.store(end, tiled.results());
  return one(s);
}

}  // namespace tosaic::shaders
