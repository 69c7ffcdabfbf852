// SPDX-License-Identifier: Apache-2.0
#include "shaders/attention.h"

#include <algorithm>
#include <limits>
#include <set>

#include "plan/groups.h"
#include "shaders/elements.h"
#include "shaders/factors.h"
#include "shaders/functions.h"
#include "shaders/placed.h"
#include "shaders/steps.h"
#include "shaders/tile_sums.h"

namespace tosaic::shaders {
namespace {

using spirv::MatrixUse;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_nodes = 24;  // between scores and softmax
constexpr std::int64_t unit = 8;        // halves in a vector
constexpr std::int64_t fewest_queries = 16;

// ---- what is attention

class Search {
 public:
  Search(const plan::Uses& uses, const std::function<bool(std::uint32_t)>& can) : uses_(uses), can_(can) {}

  std::optional<Attention> from(std::uint32_t scores) {
    Attention found;
    found.scores = scores;
    const ValueId score = behind_views(uses_.node(scores).outputs[0]);
    const auto ends = [&](ValueId v, const std::vector<std::uint32_t>& between) {
      std::vector<std::uint32_t> nodes{scores};
      nodes.insert(nodes.end(), between.begin(), between.end());
      const auto last = softmax_of(behind_views(v), nodes);
      if (!last) return false;
      found.values = *last;
      nodes.push_back(*last);
      std::ranges::sort(nodes);
      found.nodes = std::move(nodes);
      found.score = score;
      if (!between.empty()) found.before_softmax = plan::expression_of(uses_.graph, between);
      return true;
    };
    const plan::Fusing fusing{can_, most_nodes, true};
    const bool found_any =
        plan::longest_tail(uses_, fusing, score,
                           [&](const auto& tail) { return ends(uses_.node(tail.back()).outputs[0], tail); }) ||
        ends(score, {});
    if (!found_any) return std::nullopt;
    return found;
  }

 private:
  // The same elements in the same order.
  ValueId behind_views(ValueId v) const {
    for (auto user = uses_.only_user(v); user && is_view(uses_.node(*user)); user = uses_.only_user(v))
      v = uses_.node(*user).outputs[0];
    return v;
  }
  ValueId out(std::uint32_t n) const { return uses_.node(n).outputs[0]; }
  bool is(std::uint32_t n, std::string_view op) const { return uses_.node(n).op == op; }
  bool is_of_rows(std::uint32_t n, std::string_view op) const {
    const tosa::View view(uses_.graph, uses_.node(n));
    return is(n, op) && view.integer("axis") == view.in(0).shape.rank() - 1;
  }
  std::optional<std::uint32_t> only_user(ValueId v, std::string_view op) const {
    const auto user = uses_.only_user(v);
    return user && is(*user, op) ? user : std::nullopt;
  }

  // exp(x - max(x)) * (1 / sum(exp(x - max(x)))), and the product that reads it. Its nodes are added.
  std::optional<std::uint32_t> softmax_of(ValueId x, std::vector<std::uint32_t>& nodes) const {
    const auto& readers = uses_.users[x];
    if (uses_.visible[x] || readers.size() != 2) return std::nullopt;
    const auto most = std::ranges::find_if(readers, [&](auto n) { return is_of_rows(n, "tosa.reduce_max"); });
    if (most == readers.end() || uses_.node(*most).attrs.get_or<std::string>("nan_mode", "") == "ignore")
      return std::nullopt;
    const auto less = only_user(out(*most), "tosa.sub");
    if (!less || uses_.node(*less).inputs != std::vector{x, out(*most)}) return std::nullopt;
    const auto power = only_user(out(*less), "tosa.exp");
    if (!power) return std::nullopt;
    const ValueId e = out(*power);
    const auto& weighed = uses_.users[e];
    if (uses_.visible[e] || weighed.size() != 2) return std::nullopt;
    const auto sum = std::ranges::find_if(weighed, [&](auto n) { return is_of_rows(n, "tosa.reduce_sum"); });
    if (sum == weighed.end()) return std::nullopt;
    const auto part = only_user(out(*sum), "tosa.reciprocal");
    const auto weight = part ? only_user(out(*part), "tosa.mul") : std::nullopt;
    if (!weight || std::ranges::find(uses_.node(*weight).inputs, e) == uses_.node(*weight).inputs.end())
      return std::nullopt;
    const ValueId weights = behind_views(out(*weight));
    const auto values = only_user(weights, "tosa.matmul");
    if (!values || uses_.node(*values).inputs[0] != weights || uses_.node(*values).inputs[1] == weights)
      return std::nullopt;
    nodes.insert(nodes.end(), {*most, *less, *power, *sum, *part, *weight});
    return values;
  }

  const plan::Uses& uses_;
  const std::function<bool(std::uint32_t)>& can_;
};

// ---- how it is divided

// A group has `rows` queries, and at each step as many keys; subgroups have 16 rows, of which `across` share the
// columns.
struct AttentionTile {
  std::uint32_t rows, keys, width, across;

  constexpr std::uint32_t down() const { return rows / matrix_side; }
  constexpr std::uint32_t invocations() const { return down() * across * matrix_subgroup; }
  constexpr std::uint32_t lanes() const { return invocations() / rows; }  // invocations of a row
  // In vectors, one more than a row has, so that reads of several rows do not wait for each other.
  constexpr std::uint32_t factor_pitch() const { return width / 8 + 1; }
  constexpr std::uint32_t sum_pitch() const { return std::max(keys, width) / 4 + 1; }
  // What the memory has one behind the other: scores, weights and sums of values in turn; queries, keys and values in
  // turn; a number of each invocation.
  constexpr std::uint32_t sums() const { return rows * sum_pitch(); }
  constexpr std::uint32_t factors() const { return std::max(rows, keys) * factor_pitch(); }
  constexpr std::uint32_t shared() const { return sums() + factors() + invocations() / 4; }
  constexpr std::uint32_t reads_of(std::uint32_t lines) const { return lines * width / 8 / invocations(); }
};

// The narrowest first.
constexpr AttentionTile tiles[] = {{32, 64, 32, 2}, {64, 64, 64, 2}, {32, 64, 96, 2}, {32, 32, 128, 2}};

constexpr bool fits(const AttentionTile& t) {
  const std::uint32_t side = matrix_side * t.across;
  return t.rows * t.width / 8 % t.invocations() == 0 && t.keys * t.width / 8 % t.invocations() == 0 &&
         t.keys % side == 0 && t.width % side == 0 && t.keys / 8 % t.lanes() == 0 && t.width / 4 % t.lanes() == 0 &&
         t.shared() * 16 <= 32 * 1024 && t.invocations() <= 256;
}
static_assert(std::ranges::all_of(tiles, fits));

// ---- the shader

// Rows of halves: of queries, keys or values.
struct Factor {
  Factor(Kernel& s, const Placed& placed, const Dim& pitch, std::int64_t wide)
      : halves(s, DType::f16, std::nullopt, wide, Fetched::As::halves) {
    halves.bind(placed.value);
    begin = s.param(halves.units(placed.offset));
    batches = s.param(halves.units(placed.batches));
    apart = s.param(halves.units(pitch));
    width = s.param(wide / unit);
  }
  Fetched halves;
  Value begin, batches, apart, width;  // in vectors
};

class Online {
 public:
  // Scores from element `first` on, of a tile's rows as many as there are.
  struct Scores {
    Value first, rows, keys;
  };
  Online(Kernel& s, const AttentionTile& tile, const Attention& attention, const Scores& all)
      : s_(s), tile_(tile), attention_(attention), all_(all), memory_(s.shared(Kind::integer, tile.shared())) {
    const Value subgroup = s.subgroup();
    row_ = subgroup / s.integer(tile.across);
    column_ = subgroup % s.integer(tile.across);
    line_ = s.local() / s.integer(tile.lanes());
    lane_ = s.local() % s.integer(tile.lanes());
    if (attention.factor != 1) factor_ = s.real_param(attention.factor);
  }

  void read_queries(Factor& queries, Value batch, Value first, Value all) {
    fetch(queries, tile_.rows, batch, first, all);
    share(queries, tile_.rows);
    s_.barrier();
    const Value begin = row_ * (matrix_side * tile_.factor_pitch()) + std::int64_t{tile_.sums()};
    for (std::uint32_t k = 0; k < tile_.width / matrix_side; ++k)
      queries_.push_back(s_.load_matrix(memory_, begin + k * 2, tile_.factor_pitch(), MatrixUse::left));
    s_.barrier();
  }

  void go_over(Factor& keys, Factor& values, Value batch, Value blocks) {
    const Value all_keys = all_.keys;
    most_ = s_.variable(s_.real(-infinity));
    sum_ = s_.variable(s_.real(0));
    for (std::uint32_t i = 0; i < own_quads(); ++i) weighted_.push_back(s_.variable(s_.splat(s_.real(0))));
    fetch(keys, tile_.keys, batch, s_.integer(0), all_keys);
    s_.loop(s_.integer(0), blocks, s_.integer(1), [&](Value block) {
      const Value first = block * tile_.keys, next = block + 1;
      share(keys, tile_.keys);
      s_.barrier();
      fetch(values, tile_.keys, batch, first, all_keys);
      make_scores();
      s_.barrier();
      share(values, tile_.keys);
      const Value rescale = make_weights(first);
      s_.when(next < blocks, [&] { fetch(keys, tile_.keys, batch, first + tile_.keys, all_keys); });
      weigh_values();
      s_.barrier();
      for (std::uint32_t i = 0; i < own_quads(); ++i)
        weighted_[i].set(weighted_[i].get() * rescale + s_.vector(sums_of(own_quad(i))));
    });
  }

  TileSums results() {
    share_number(sum_->get());
    const Value part = reciprocal(all_of_row([](Value a, Value b) { return a + b; }));
    for (std::uint32_t i = 0; i < own_quads(); ++i) {
      const Vector v = weighted_[i].get() * part;
      Quad bits;
      for (Word q = 0; q < 4; ++q) bits[q] = s_.bits_of(lane(v, q));
      s_.store(memory_, own_quad(i), s_.vector(bits));
    }
    s_.barrier();
    return {memory_, Kind::real, tile_.rows, tile_.width, 1, tile_.sum_pitch(), tile_.invocations()};
  }

 private:
  std::uint32_t own_quads() const { return tile_.width / 4 / tile_.lanes(); }
  std::uint32_t own_eights() const { return tile_.keys / 8 / tile_.lanes(); }
  Value own_eight(std::uint32_t i) { return lane_ + std::int64_t{i * tile_.lanes()}; }
  Value begin_of_line() { return line_ * tile_.sum_pitch(); }
  Value own_quad(std::uint32_t i) { return begin_of_line() + lane_ + std::int64_t{i * tile_.lanes()}; }

  // `first`: of the lines of that many that are there.
  void fetch(Factor& factor, std::uint32_t lines, Value batch, Value first, Value all) {
    const std::uint32_t wide = tile_.width / 8;
    for (std::uint32_t i = 0; i < tile_.reads_of(lines); ++i) {
      const Value place = place_of(i), line = first + place / s_.integer(wide), vector = place % s_.integer(wide);
      const Value inside = (line < all) & (vector < factor.width);
      factor.halves.fetch(i, factor.begin + batch * factor.batches + line * factor.apart + vector, inside,
                          s_.integer(unit));
    }
  }
  void share(Factor& factor, std::uint32_t lines) {
    const std::uint32_t wide = tile_.width / 8;
    for (std::uint32_t i = 0; i < tile_.reads_of(lines); ++i) {
      const Value place = place_of(i);
      s_.store(memory_, place / s_.integer(wide) * tile_.factor_pitch() + place % s_.integer(wide) + tile_.sums(),
               factor.halves.vector(i));
    }
  }
  Value place_of(std::uint32_t i) { return s_.local() + static_cast<std::int64_t>(i * tile_.invocations()); }

  Value begin_of_rows() { return row_ * (matrix_side * tile_.sum_pitch()); }
  // Matrices of this subgroup beside each other, of `columns`.
  void store(const std::vector<Matrix>& sums, std::uint32_t columns) {
    const Value begin = begin_of_rows() + column_ * (columns / tile_.across / 4);
    for (std::size_t c = 0; c < sums.size(); ++c)
      s_.store_matrix(memory_, begin + static_cast<std::int64_t>(c * matrix_side / 4), tile_.sum_pitch(), sums[c]);
  }

  void make_scores() {
    const std::uint32_t own = tile_.keys / tile_.across / matrix_side, side = matrix_side * tile_.factor_pitch();
    const Value begin = column_ * (own * side) + std::int64_t{tile_.sums()};
    std::vector<Matrix> sums(own, s_.zero_sum());
    for (std::uint32_t k = 0; k < queries_.size(); ++k)
      for (std::uint32_t c = 0; c < own; ++c) {
        const Matrix keys =
            s_.load_matrix(memory_, begin + (c * side + k * 2), tile_.factor_pitch(), MatrixUse::right, true);
        sums[c] = s_.multiply_add(queries_[k], keys, sums[c]);
      }
    store(sums, tile_.keys);
  }

  void weigh_values() {
    const std::uint32_t own = tile_.width / tile_.across / matrix_side;
    const Value left = begin_of_rows(), right = column_ * (own * 2) + std::int64_t{tile_.sums()};
    std::vector<Matrix> sums(own, s_.zero_sum());
    for (std::uint32_t k = 0; k < tile_.keys / matrix_side; ++k) {
      const Matrix weights = s_.load_matrix(memory_, left + k * 2, tile_.sum_pitch(), MatrixUse::left);
      for (std::uint32_t c = 0; c < own; ++c) {
        const Value at = right + (k * matrix_side * tile_.factor_pitch() + c * 2);
        const Matrix values = s_.load_matrix(memory_, at, tile_.factor_pitch(), MatrixUse::right);
        sums[c] = s_.multiply_add(weights, values, sums[c]);
      }
    }
    s_.barrier();  // until the others have read the weights that lie where the sums go
    store(sums, tile_.width);
  }

  struct Score {
    Value value, inside;
  };
  // Eight neighbours at a time, as scales and masks leave them.
  std::vector<Score> scores(Value first) {
    std::vector<Score> list;
    for (std::uint32_t i = 0; i < own_eights(); ++i)
      for (std::uint32_t four : {0u, 1u})
        for (const Value& x : sums_of(begin_of_line() + own_eight(i) * 2 + four))
          list.push_back({factor_ ? x * *factor_ : x, {}});
    s_.repeat(static_cast<int>(list.size()), [&](int n) {
      const Value key = first + own_eight(static_cast<std::uint32_t>(n) / unit) * unit + n % unit;
      Score& score = list[static_cast<std::size_t>(n)];
      score.inside = key < all_.keys;
      if (!attention_.before_softmax) return;
      const Value exists = score.inside & (line_ < all_.rows);
      const Value at = s_.select(exists, all_.first + line_ * all_.keys + key, s_.integer(0));
      score.value = evaluate(s_, *attention_.before_softmax, at, {{attention_.score, score.value}});
    });
    return list;
  }

  // Scores become weights in their place. Returns what earlier sums are multiplied by.
  Value make_weights(Value first) {
    const auto larger_one = [](Value a, Value b) { return larger(a, b, false); };
    const std::vector<Score> list = scores(first);
    std::optional<Value> most;
    for (const Score& score : list) {
      const Value counted = s_.select(score.inside, score.value, s_.real(-infinity));
      most = most ? larger_one(*most, counted) : counted;
    }
    share_number(*most);
    const Value before = most_->get(), now = larger_one(before, all_of_row(larger_one));
    most_->set(now);
    // Rows that have seen nothing but -inf have no weights; in the end these become NaN, as softmax makes them.
    const Value base = s_.select(now == s_.real(-infinity), s_.real(0), now), rescale = exponential(before - base);
    Value sum = sum_->get() * rescale;
    for (std::uint32_t i = 0; i < own_eights(); ++i) {
      std::array<Value, unit> weights;
      for (std::size_t q = 0; q < unit; ++q) {
        const Score& score = list[i * unit + q];
        weights[q] = s_.select(score.inside, exponential(score.value - base), s_.real(0));
        sum = sum + weights[q];
      }
      Quad words;
      for (std::size_t q = 0; q < 4; ++q) words[q] = s_.packed_halves(weights[2 * q], weights[2 * q + 1]);
      s_.store(memory_, begin_of_line() + own_eight(i), s_.vector(words));
    }
    sum_->set(sum);
    s_.barrier();
    return rescale;
  }

  Quad sums_of(Value at) {
    const Vector v = s_.load(memory_, at);
    Quad numbers;
    for (Word q = 0; q < 4; ++q) numbers[q] = s_.real_of(lane(v, q));
    return numbers;
  }
  // What the invocations of a row have, for each of them.
  void share_number(Value number) {
    const Value four = s_.integer(4);
    s_.store(memory_, s_.local() / four + numbers(), s_.local() % four, s_.bits_of(number));
    s_.barrier();
  }
  Value all_of_row(const std::function<Value(Value, Value)>& fold) {
    const Value first = line_ * std::int64_t{tile_.lanes()}, four = s_.integer(4);
    std::optional<Value> all;
    for (std::uint32_t i = 0; i < tile_.lanes(); ++i) {
      const Value at = first + std::int64_t{i};
      const Value x = s_.real_of(s_.load(memory_, at / four + numbers(), at % four));
      all = all ? fold(*all, x) : x;
    }
    return *all;
  }
  std::int64_t numbers() const { return tile_.sums() + tile_.factors(); }

  Kernel& s_;
  const AttentionTile tile_;
  const Attention& attention_;
  const Scores all_;
  Shared memory_;
  Value row_, column_;  // of a subgroup
  Value line_, lane_;   // of an invocation, among rows
  std::optional<Value> factor_;
  std::vector<Matrix> queries_;
  std::optional<Variable> most_, sum_;    // of the row: the largest score, and this invocation's part of the weights
  std::vector<VectorVariable> weighted_;  // of the row's quads that are this invocation's
};

}  // namespace

std::optional<Attention> attention_at(const plan::Uses& uses, const std::function<bool(std::uint32_t node)>& can,
                                      std::uint32_t scores) {
  const Node& node = uses.node(scores);
  if (node.op != "tosa.matmul" || !uses.type(node.outputs[0]).shape.is_static()) return std::nullopt;
  return Search(uses, can).from(scores);
}

MadeList make_attention(const Work& work, const Attention& attention, const Finish& end) {
  const Graph& graph = work.graph;
  const Node &scores = graph.nodes[attention.scores], &values = graph.nodes[attention.values];
  const Shape &score = graph[scores.outputs[0]].type.shape, &out = graph[values.outputs[0]].type.shape;
  const std::int64_t batches = score.size(0), rows = score.size(1), keys = score.size(2),
                     deep = graph[scores.inputs[0]].type.shape.size(2), columns = out.size(2);
  const auto tile =
      std::ranges::find_if(tiles, [&](const AttentionTile& t) { return t.width >= std::max(deep, columns); });
  const auto is_half = [&](ValueId v) { return graph[v].type.dtype == DType::f16; };
  if (!packs_halves(work) || tile == std::end(tiles) || deep % unit != 0 || columns % unit != 0 ||
      rows < fewest_queries || !is_half(scores.inputs[0]) || !is_half(scores.inputs[1]) || !is_half(values.inputs[1]))
    return std::nullopt;
  const Placed q = placed_operand(work, scores.inputs[0], unit, false, true),
               k = placed_operand(work, scores.inputs[1], unit, true, true),
               v = placed_operand(work, values.inputs[1], unit, false);
  if (!k.is_by_columns()) return std::nullopt;
  Attention scaled = attention;
  scaled.factor = q.factor * k.factor;

  const std::int64_t down = (rows + tile->rows - 1) / tile->rows;
  Kernel s(work, "attention", Groups{batches * down, tile->invocations()});
  const Value tiles_down = s.param(down), number = s.group() / tiles_down, exists = number < s.param(batches);
  // There may be more groups than tiles: those have no rows.
  const Value batch = s.select(exists, number, s.integer(0)), own_rows = s.select(exists, s.param(rows), s.integer(0));
  const Value first_row = s.group() % tiles_down * tile->rows, all_keys = s.param(keys);
  Factor queries(s, q, q.rows, deep), key_rows(s, k, k.columns, deep), value_rows(s, v, v.rows, columns);
  Online online(s, *tile, scaled, {(batch * s.param(rows) + first_row) * all_keys, own_rows - first_row, all_keys});
  online.read_queries(queries, batch, first_row, own_rows);
  online.go_over(key_rows, value_rows, batch, s.param((keys + tile->keys - 1) / tile->keys));
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{rows * columns, columns});
  const bool by_quads = is_multiple(apart.rows, 4) && is_multiple(apart.batches, 4);
  const Sink sink(s, end, nullptr, by_quads, s.integer(0), own_rows, s.param(columns), batch * s.param(apart.batches),
                  s.param(apart.rows));
  sink.take(online.results(), first_row);
  return one(s);
}

}  // namespace tosaic::shaders
