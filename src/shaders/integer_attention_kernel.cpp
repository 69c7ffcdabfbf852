// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "plan/views.h"
#include "shaders/attention_factor.h"
#include "shaders/elements.h"
#include "shaders/integer_attention.h"
#include "shaders/matrix_zero_points.h"
#include "shaders/reduction.h"
#include "shaders/rows.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {
namespace {

using spirv::MatrixUse;

constexpr std::uint32_t unit = 16;   // bytes in a vector
constexpr std::uint32_t eight = 8;   // elements of a row in a vector
constexpr std::uint32_t block = 32;  // keys that a matrix of weights has, in two vectors
constexpr std::int64_t fewest_queries = 16;
// What every device binds at once.
constexpr std::int64_t most_scratch_bytes = std::int64_t{128} << 20;

// A group has `rows` queries, and at each step `keys` keys or their values, of `width` bytes. Its subgroups have 16
// rows each; those of the same rows divide the keys of a step while scores are made, and later are teams, each with its
// own keys of a step, of which `across` subgroups share the columns.
struct IntegerAttentionTile {
  std::uint32_t rows, keys, width, subgroups, across;

  constexpr std::uint32_t down() const { return rows / matrix_side; }
  constexpr std::uint32_t sharing_rows() const { return subgroups / down(); }  // subgroups of the same rows
  constexpr std::uint32_t teams() const { return sharing_rows() / across; }
  constexpr std::uint32_t invocations() const { return subgroups * matrix_subgroup; }
  constexpr std::uint32_t lanes() const { return invocations() / rows; }  // invocations of a row
  // Matrices of a subgroup: of scores, of weights that it multiplies at a step, and of the result.
  constexpr std::uint32_t own_scores() const { return keys / matrix_side / sharing_rows(); }
  constexpr std::uint32_t own_blocks() const { return keys / block / teams(); }
  constexpr std::uint32_t own_columns() const { return width / matrix_side / across; }
  // Eights of scores of a step that an invocation finishes.
  constexpr std::uint32_t own_eights() const { return keys / eight / lanes(); }
  // In vectors, one more than a row has, so that reads of several rows do not wait for each other.
  constexpr std::uint32_t factor_pitch() const { return width / unit + 1; }
  constexpr std::uint32_t sum_pitch() const { return keys / 4 + 1; }
  constexpr std::uint32_t result_pitch() const { return width / 4 + 1; }
  constexpr std::uint32_t weight_pitch() const { return keys / unit + 1; }
  // What the memory has one behind the other: keys, before them queries, later values; sums of scores, then numbers of
  // the invocations, later weights. In the end results, from the beginning on.
  constexpr std::uint32_t sums_at() const { return std::max(rows, keys) * factor_pitch(); }
  constexpr std::uint32_t shared() const {
    return std::max(sums_at() + rows * sum_pitch(), teams() * rows * result_pitch());
  }
  constexpr std::int64_t steps_for(std::int64_t all_keys) const { return (all_keys + keys - 1) / keys; }
  // Vectors of a group's elements in scratch memory.
  constexpr std::int64_t kept_for(std::int64_t all_keys) const { return steps_for(all_keys) * keys / eight * rows; }
};

// The narrowest first, and of those of the same width the one with longer steps.
constexpr IntegerAttentionTile tiles[] = {
    {16, 128, 32, 8, 2}, {16, 64, 32, 4, 2}, {16, 128, 64, 8, 4},
    {16, 64, 64, 4, 4},  {16, 64, 96, 4, 2}, {16, 64, 128, 4, 4},
};
// From so many keys on small groups are faster, of which more run at once (measured with 577 keys and with 901).
constexpr std::int64_t many_keys = 768;
constexpr std::uint32_t short_step = 64;

constexpr bool fits(const IntegerAttentionTile& t) {
  return t.own_scores() * t.sharing_rows() * matrix_side == t.keys && t.own_blocks() * t.teams() * block == t.keys &&
         t.own_columns() * t.across * matrix_side == t.width && t.teams() * t.across == t.sharing_rows() &&
         t.sharing_rows() * t.down() == t.subgroups && t.own_eights() * t.lanes() * eight == t.keys &&
         t.lanes() % 4 == 0 && t.keys * t.width / unit % t.invocations() == 0 && t.width % block == 0 &&
         t.invocations() <= 256 && 2 * t.invocations() / 4 <= t.rows * t.sum_pitch() &&
         t.weight_pitch() <= t.sum_pitch();
}
static_assert(std::ranges::all_of(tiles, fits));

const IntegerAttentionTile* tile_for(const Work& work, std::int64_t width, std::int64_t keys) {
  const std::uint32_t most_vectors = row_of(work.tier).most_shared_bytes / unit - MatrixOnes::vectors;
  for (const IntegerAttentionTile& t : tiles)
    if (t.width >= width && t.shared() <= most_vectors && (keys < many_keys || t.keys == short_step)) return &t;
  return nullptr;
}

class GroupAttention {
 public:
  // The first row's number among all rows and in its batch, and how many there are of it in the batch.
  struct Place {
    Value batch, row, first_row, own_rows, all_keys;
  };
  // Where elements are kept: the group's begin at vector `begin`.
  struct Kept {
    Buffer buffer;
    Value begin;
  };
  GroupAttention(Kernel& s, const IntegerAttentionTile& tile, const IntegerAttention& attention, std::int64_t keys,
                 const Place& place, const Kept& kept)
      : s_(s),
        tile_(tile),
        attention_(attention),
        place_(place),
        kept_(kept),
        memory_(s.shared(Kind::integer, tile.shared())),
        ones_(s) {
    const Value subgroup = s.subgroup(), sharing = s.integer(tile.sharing_rows()), across = s.integer(tile.across);
    row_ = subgroup / sharing;
    sharer_ = subgroup % sharing;
    team_ = sharer_ / across;
    column_ = sharer_ % across;
    line_ = s.local() / s.integer(tile.lanes());
    lane_ = s.local() % s.integer(tile.lanes());
    exists_ = place.first_row + line_ < place.own_rows;
    own_row_ = s.select(exists_, place.row + line_, s.integer(0));
    steps_ = s.param(tile.steps_for(keys));
  }

  void read_queries(AttentionFactor& queries, AttentionFactor& keys, const ProductZeroPoints& zero_points) {
    zero_points_ = zero_points;
    queries.fetch(tile_.rows, place_.first_row, place_.own_rows);
    fetch_step(keys, s_.integer(0));
    queries.share(memory_, tile_.rows, 0);
    s_.barrier();
    load_ones();
    const Value begin = row_ * (matrix_side * tile_.factor_pitch());
    Matrix sums = s_.zero_sum(MatrixOf::int8);
    for (std::uint32_t k = 0; k < tile_.width / block; ++k) {
      queries_.push_back(load(begin + std::int64_t{k * 2}, tile_.factor_pitch(), MatrixUse::left));
      if (zero_points.right) sums = s_.multiply_add(queries_.back(), *ones_right_, sums);
    }
    begin_ = centred_rows(sums, zero_points);
    s_.barrier();
  }

  // Memory that is written was read before the last barrier but one: two of them are enough for a step.
  void make_scores(AttentionFactor& keys) {
    partial_.push_back(s_.variable(reduction(0).of_nothing(s_)));
    over_steps([&](Value step) {
      keys.share(memory_, tile_.keys, 0);
      s_.barrier();
      const Value next = step + 1;
      s_.when(next < steps_, [&] { fetch_step(keys, next); });
      multiply_by_keys();
      s_.barrier();
      finish_scores(step);
    });
    s_.barrier();
  }

  // All that weights need of their row. Meanwhile the first values are read.
  void reduce_rows(AttentionFactor& values) {
    const Kernel::MoreParams more(s_);
    const Graph& graph = s_.graph();
    std::size_t done = 0;
    for (std::uint32_t n : attention_.nodes) {
      if (n == attention_.scores || n == attention_.values) continue;
      const Node& node = graph.nodes[n];
      const ValueId result = node.outputs[0];
      if (done < attention_.reductions.size() && n == attention_.reductions[done]) {
        if (done > 0) go_over(done);
        rows_[result] = all_of_row(done++);
      } else if (!is_element(result)) {
        rows_[result] = evaluate(s_, plan::expression_of(graph, {n}), own_row_, operands(node, rows_));
      }
    }
    fetch_step(values, s_.integer(0));
    s_.barrier();
  }

  void weigh(AttentionFactor& values, const ProductZeroPoints& zero_points) {
    zero_points_ = zero_points;
    load_ones();
    for (std::uint32_t c = 0; c < tile_.own_columns(); ++c) {
      weighted_.push_back(s_.zero_matrix(MatrixOf::int8));
      if (zero_points.left) column_sums_.push_back(s_.zero_matrix(MatrixOf::int8));
    }
    if (zero_points.right) row_sums_ = s_.zero_matrix(MatrixOf::int8);
    over_steps([&](Value step) {
      values.share(memory_, tile_.keys, 0);
      store_weights(step);
      s_.barrier();
      const Value next = step + 1;
      s_.when(next < steps_, [&] { fetch_step(values, next); });
      multiply_by_values();
      s_.barrier();
    });
  }

  TileAccumulators results() {
    const Value begin = team_ * (tile_.rows * tile_.result_pitch()) + row_ * (matrix_side * tile_.result_pitch()) +
                        column_ * (tile_.own_columns() * (matrix_side / 4));
    ProductZeroPoints once = zero_points_;  // of all teams, that is
    once.depth = s_.select(team_ == 0, zero_points_.depth, s_.integer(0));
    const Matrix of_rows = centred_rows(row_sums_ ? row_sums_->get() : s_.zero_sum(MatrixOf::int8), once);
    for (std::uint32_t c = 0; c < tile_.own_columns(); ++c) {
      Matrix sum = weighted_[c].get() + of_rows;
      if (zero_points_.left) sum = sum + column_sums_[c].get() * less(*zero_points_.left);
      s_.store_matrix(memory_, begin + std::int64_t{c * (matrix_side / 4)}, tile_.result_pitch(), sum);
    }
    s_.barrier();
    return {memory_, Kind::integer, tile_.rows, tile_.width, tile_.teams(), tile_.result_pitch(), tile_.invocations()};
  }

 private:
  using Numbers = std::vector<Value>;

  // Written out once: several times it is slower, by a sixth of all, and drivers compile it for three times as long.
  void over_steps(const std::function<void(Value step)>& body) {
    s_.loop(s_.integer(0), steps_, s_.integer(1), body, Unrolling::none);
  }

  // ---- factors
  void fetch_step(AttentionFactor& factor, Value step) { factor.fetch(tile_.keys, step * tile_.keys, place_.all_keys); }
  Matrix load(Value first, std::uint32_t pitch, MatrixUse use, bool by_columns = false) {
    return s_.load_matrix(memory_, first, pitch, use, by_columns, MatrixOf::int8);
  }

  // ---- zero points
  void load_ones() {
    if (zero_points_.left) ones_left_ = ones_.load(MatrixUse::left);
    if (zero_points_.right) ones_right_ = ones_.load(MatrixUse::right);
  }
  Matrix less(Value zero_point) { return s_.filled_sum(s_.integer(0) - zero_point); }
  // What sums of the same rows of x are to begin with.
  Matrix centred_rows(Matrix of_rows, const ProductZeroPoints& zero_points) {
    if (!zero_points.right) return s_.zero_sum(MatrixOf::int8);
    const Matrix rows = of_rows * less(*zero_points.right);
    if (!zero_points.left) return rows;
    return rows + s_.filled_sum(zero_points.product());
  }

  // ---- scores
  void multiply_by_keys() {
    const std::uint32_t own = tile_.own_scores(), side = matrix_side * tile_.factor_pitch();
    const Value keys_at = sharer_ * (own * side);
    const Value to =
        row_ * (matrix_side * tile_.sum_pitch()) + sharer_ * (own * (matrix_side / 4)) + std::int64_t{tile_.sums_at()};
    for (std::uint32_t c = 0; c < own; ++c) {
      Matrix sum = *begin_, columns = s_.zero_sum(MatrixOf::int8);
      for (std::uint32_t k = 0; k < queries_.size(); ++k) {
        const Matrix keys =
            load(keys_at + std::int64_t{c * side + k * 2}, tile_.factor_pitch(), MatrixUse::right, true);
        sum = s_.multiply_add(queries_[k], keys, sum);
        if (zero_points_.left) columns = s_.multiply_add(*ones_left_, keys, columns);
      }
      if (zero_points_.left) sum = sum + columns * less(*zero_points_.left);
      s_.store_matrix(memory_, to + std::int64_t{c * (matrix_side / 4)}, tile_.sum_pitch(), sum);
    }
  }

  // What is kept of a step's scores.
  void finish_scores(Value step) {
    const Kernel::MoreParams more(s_);
    const std::uint32_t own = tile_.own_eights();
    std::vector<Value> eights, sums;
    for (std::uint32_t i = 0; i < own; ++i) {
      const Value of_step = lane_ + std::int64_t{i * tile_.lanes()};
      eights.push_back(step * (tile_.keys / eight) + of_step);
      for (std::uint32_t half = 0; half < 2; ++half) {
        const Vector four =
            s_.load(memory_, line_ * tile_.sum_pitch() + of_step * 2 + std::int64_t{tile_.sums_at() + half});
        for (Word q = 0; q < 4; ++q) sums.push_back(lane(four, q));
      }
    }
    const Numbers kept = reduced(0, eights, [&](std::size_t i) { return Known{{score(), sums[i]}}; });
    for (std::uint32_t i = 0; i < own; ++i) store_eight(eights[i], &kept[std::size_t{i} * eight]);
  }

  // ---- rows
  const Node& reduction_node(std::size_t i) const { return s_.graph().nodes[attention_.reductions[i]]; }
  Reduction reduction(std::size_t i) const { return Reduction(reduction_node(i)); }

  // The row's elements once more, for reduction `i`.
  void go_over(std::size_t i) {
    partial_.push_back(s_.variable(reduction(i).of_nothing(s_)));
    const Value eights = s_.param(ceil_div(s_.type(score()).shape[2], std::int64_t{eight}));
    const auto eight_of_row = [&](Value number) {
      const Numbers before = load_eight(number);
      const Numbers kept = reduced(i, {number}, [&](std::size_t e) {
        return Known{{attention_.kept[i - 1], before[e]}};
      });
      if (attention_.kept[i] != attention_.kept[i - 1]) store_eight(number, kept.data());
    };
    s_.loop(lane_, eights, s_.integer(tile_.lanes()), eight_of_row, Unrolling::none);
  }
  ValueId score() const { return s_.graph().nodes[attention_.scores].outputs[0]; }

  // Adds elements of these eights to this invocation's part of reduction `i`. What is kept of each.
  Numbers reduced(std::size_t i, const std::vector<Value>& eights,
                  const std::function<Known(std::size_t element)>& known) {
    Numbers kept;
    const Reduction fold = reduction(i);
    s_.repeat(static_cast<int>(eights.size() * eight), [&](int e) {
      const auto element = static_cast<std::size_t>(e);
      const Value key = eights[element / eight] * eight + std::int64_t{e % int{eight}};
      const Value inside = key < place_.all_keys, at = element_at(key, inside);
      Known values = known(element);
      const Value before = partial_[i].get(), x = value_of(reduction_node(i).inputs[0], values, at);
      partial_[i].set(s_.select(inside, fold(before, x), before));
      kept.push_back(value_of(attention_.kept[i], values, at));
    });
    return kept;
  }

  // What all invocations of a row have made of reduction `i`. Numbers that are written were read before the last
  // barrier: they have two places.
  Value all_of_row(std::size_t i) {
    const std::uint32_t begin = tile_.sums_at() + i % 2 * (tile_.invocations() / 4), vectors = tile_.lanes() / 4;
    const Value four = s_.integer(4);
    s_.store(memory_, s_.local() / four + std::int64_t{begin}, s_.local() % four, partial_[i].get());
    s_.barrier();
    const Reduction fold = reduction(i);
    std::optional<Value> all;
    for (std::uint32_t v = 0; v < vectors; ++v) {
      const Vector numbers = s_.load(memory_, line_ * vectors + std::int64_t{begin + v});
      for (Word q = 0; q < 4; ++q) all = all ? fold(*all, lane(numbers, q)) : lane(numbers, q);
    }
    return *all;
  }

  // Of a step, in place of its sums; those of keys that there are not are 0.
  void store_weights(Value step) {
    const Kernel::MoreParams more(s_);
    const ValueId weights = s_.graph().nodes[attention_.values].inputs[0];
    s_.repeat(static_cast<int>(tile_.own_eights()), [&](int i) {
      const Value of_step = lane_ + std::int64_t{i} * tile_.lanes(), number = step * (tile_.keys / eight) + of_step;
      const Numbers before = load_eight(number);
      Numbers words;
      s_.repeat(eight, [&](int e) {
        const Value key = number * eight + e, inside = key < place_.all_keys;
        Known values{{attention_.kept.back(), before[static_cast<std::size_t>(e)]}};
        const Value weight = value_of(weights, values, element_at(key, inside));
        const Value byte = s_.select(inside, weight, s_.integer(0)) & 0xff;
        if (e % 4 == 0)
          words.push_back(byte);
        else
          words.back() = words.back() | byte << s_.integer(e % 4 * 8);
      });
      const Value at = line_ * tile_.weight_pitch() + shift_right_unsigned(of_step, s_.integer(1)) +
                       std::int64_t{tile_.sums_at()},
                  half = (of_step & 1) * 2;
      for (std::size_t w = 0; w < words.size(); ++w)
        s_.store(memory_, at, half + static_cast<std::int64_t>(w), words[w]);
    });
  }

  // Eight elements of 16 bits are a vector, in scratch memory. Neighbouring invocations have neighbouring ones, and
  // each reads what it has stored itself.
  Value at_of_eight(Value number) const {
    return kept_.begin + number / s_.integer(tile_.lanes()) * tile_.invocations() + s_.local();
  }
  Numbers load_eight(Value number) {
    const Value half = s_.integer(16);
    Numbers elements;
    for (const Value& pair : s_.load_quad(kept_.buffer, at_of_eight(number))) {
      elements.push_back(shift_right_signed(pair << half, half));
      elements.push_back(shift_right_signed(pair, half));
    }
    return elements;
  }
  void store_eight(Value number, const Value* elements) {
    Quad words;
    for (std::size_t q = 0; q < 4; ++q) words[q] = (elements[2 * q] & 0xffff) | elements[2 * q + 1] << s_.integer(16);
    s_.store_quad(kept_.buffer, at_of_eight(number), words);
  }

  // ---- what elementwise nodes make
  Value element_at(Value key, Value inside) {
    return s_.select(exists_ & inside, own_row_ * place_.all_keys + key, s_.integer(0));
  }
  ValueId origin(ValueId v) const { return plan::skip_views(s_.graph(), s_.work().uses.producer, v); }
  bool is_element(ValueId v) const { return s_.type(v).shape.elements() == s_.type(score()).shape.elements(); }
  // Of those that are known, by what they are views of.
  Known operands(const Node& node, const Known& known) const {
    Known found;
    for (ValueId v : node.inputs) {
      if (v == no_value) continue;
      if (const auto at = known.find(origin(v)); at != known.end()) found.insert_or_assign(v, at->second);
      if (const auto at = rows_.find(origin(v)); at != rows_.end()) found.insert_or_assign(v, at->second);
    }
    return found;
  }
  Value value_of(ValueId wanted, Known& known, Value at) {
    const Graph& graph = s_.graph();
    std::set<ValueId> missing{origin(wanted)};
    std::vector<std::uint32_t> needed;
    for (auto n = attention_.nodes.rbegin(); n != attention_.nodes.rend(); ++n) {
      const Node& node = graph.nodes[*n];
      const ValueId made = node.outputs[0];
      if (!missing.contains(made) || known.contains(made) || rows_.contains(made)) continue;
      needed.push_back(*n);
      for (ValueId v : node.inputs)
        if (v != no_value) missing.insert(origin(v));
    }
    for (auto n = needed.rbegin(); n != needed.rend(); ++n)
      known[graph.nodes[*n].outputs[0]] =
          evaluate(s_, plan::expression_of(graph, {*n}), at, operands(graph.nodes[*n], known));
    return known.at(origin(wanted));
  }

  // ---- the second product
  void multiply_by_values() {
    const std::uint32_t pitch = tile_.factor_pitch(), own = tile_.own_columns();
    const Value first = team_ * tile_.own_blocks(),
                left = row_ * (matrix_side * tile_.weight_pitch()) + first * 2 + std::int64_t{tile_.sums_at()},
                right = first * (block * pitch) + column_ * own;
    std::vector<Matrix> sums, columns;
    for (const MatrixVariable& v : weighted_) sums.push_back(v.get());
    for (const MatrixVariable& v : column_sums_) columns.push_back(v.get());
    for (std::uint32_t k = 0; k < tile_.own_blocks(); ++k) {
      const Matrix weights = load(left + std::int64_t{k * 2}, tile_.weight_pitch(), MatrixUse::left);
      if (row_sums_) row_sums_->set(s_.multiply_add(weights, *ones_right_, row_sums_->get()));
      for (std::uint32_t c = 0; c < own; ++c) {
        const Matrix values = load(right + std::int64_t{k * block * pitch + c}, pitch, MatrixUse::right);
        sums[c] = s_.multiply_add(weights, values, sums[c]);
        if (!columns.empty()) columns[c] = s_.multiply_add(*ones_left_, values, columns[c]);
      }
    }
    for (std::size_t c = 0; c < sums.size(); ++c) weighted_[c].set(sums[c]);
    for (std::size_t c = 0; c < columns.size(); ++c) column_sums_[c].set(columns[c]);
  }

  Kernel& s_;
  const IntegerAttentionTile tile_;
  const IntegerAttention& attention_;
  const Place place_;
  const Kept kept_;
  const Shared memory_;
  const MatrixOnes ones_;
  Value row_, sharer_, team_, column_;  // of a subgroup; sharer_: among those of the same rows
  Value line_, lane_;                   // of an invocation, among rows
  Value exists_, own_row_, steps_;
  ProductZeroPoints zero_points_;  // of the product at hand
  std::optional<Matrix> ones_left_, ones_right_;
  std::vector<Matrix> queries_;
  std::optional<Matrix> begin_;    // what sums of scores begin with
  std::vector<Variable> partial_;  // this invocation's parts of reductions
  Known rows_;                     // numbers of the row
  std::vector<MatrixVariable> weighted_, column_sums_;
  std::optional<MatrixVariable> row_sums_;
};

}  // namespace

MadeList make_integer_attention(const Work& work, const IntegerAttention& attention, const Finish& end) {
  const Graph& graph = work.graph;
  const Node &scores = graph.nodes[attention.scores], &values = graph.nodes[attention.values];
  const tosa::View first(graph, scores), second(graph, values);
  const Shape &score = first.out().shape, &out = second.out().shape;
  if (!second.in(1).shape.is_static() || !takes_int8_matrix_matmul(second)) return std::nullopt;
  const std::int64_t batches = score.size(0), rows = score.size(1), keys = score.size(2),
                     deep = first.in(0).shape.size(2), columns = out.size(2);
  const IntegerAttentionTile* tile = tile_for(work, std::max(deep, columns), keys);
  if (!tile || deep % unit != 0 || columns % unit != 0 || rows < fewest_queries) return std::nullopt;
  const StridedMatrices q = find_strided_operand(work, scores.inputs[0], unit, false),
                        k = find_strided_operand(work, scores.inputs[1], unit, true),
                        v = find_strided_operand(work, values.inputs[1], unit, false);
  if (!k.is_by_columns()) return std::nullopt;

  const std::int64_t down = (rows + tile->rows - 1) / tile->rows;
  if (batches * down >= most_scratch_bytes / unit / tile->kept_for(keys)) return std::nullopt;
  Kernel s(work, "int8_attention", Groups{batches * down, tile->invocations()});
  const Value tiles_down = s.param(down), number = s.group() / tiles_down, exists = number < s.param(batches);
  // There may be more groups than tiles: those have no rows.
  const Value batch = s.select(exists, number, s.integer(0)), all_rows = s.param(rows),
              own_rows = s.select(exists, all_rows, s.integer(0)), all_keys = s.param(keys),
              first_row = s.group() % tiles_down * tile->rows;
  const AttentionFactor::Lines lines{tile->width / unit, tile->factor_pitch(), tile->invocations()};
  AttentionFactor queries(s, q, batch, q.rows, deep, Fetched::As::int8, lines),
      key_rows(s, k, batch, k.columns, deep, Fetched::As::int8, lines),
      value_rows(s, v, batch, v.rows, columns, Fetched::As::int8, lines);
  const ProductZeroPoints of_scores(s, first, s.param(deep)), of_values(s, second, all_keys);
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{end.output(), {rows * columns}, columns});
  const bool by_quads = is_multiple(apart.rows, 4) && apart.batches.are_multiples(4);
  const Sink sink(s, end, nullptr, by_quads, s.integer(0), own_rows, s.param(columns), apart.batches.begin(s, batch),
                  s.param(apart.rows));
  // Groups without rows have one place for all of them, where all store the same.
  const std::int64_t groups = batches * down, of_group = tile->kept_for(keys);
  const Scratch scratch{0, static_cast<std::uint64_t>((groups + 1) * of_group * unit)};
  const GroupAttention::Kept kept{s.write_scratch(DType::i32, scratch),
                                  s.select(exists, s.group(), s.param(groups)) * s.param(of_group)};
  GroupAttention group(s, *tile, attention, keys, {batch, batch * all_rows + first_row, first_row, own_rows, all_keys},
                       kept);
  group.read_queries(queries, key_rows, of_scores);
  group.make_scores(key_rows);
  group.reduce_rows(value_rows);
  group.weigh(value_rows, of_values);
  sink.take(group.results(), first_row);
  return one(s);
}

}  // namespace tosaic::shaders
