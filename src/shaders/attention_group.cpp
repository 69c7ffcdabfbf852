// SPDX-License-Identifier: Apache-2.0
#include "shaders/attention_group.h"

#include <limits>

#include "shaders/elements.h"

namespace tosaic::shaders {

constexpr double infinity = std::numeric_limits<double>::infinity();

AttentionSizes sizes_of(const Graph& graph, const Attention& attention) {
  const Node &scores = graph.nodes[attention.scores], &values = graph.nodes[attention.values];
  const Shape& score = graph[scores.outputs[0]].type.shape;
  return {score.size(0), score.size(1), score.size(2), graph[scores.inputs[0]].type.shape.size(2),
          graph[values.outputs[0]].type.shape.size(2)};
}

std::optional<AttentionOperands> find_operands(const Work& work, const Attention& attention, DType type,
                                               std::int64_t unit) {
  constexpr std::int64_t fewest_queries = 16;
  const Graph& graph = work.graph;
  const std::vector<ValueId>&products = graph.nodes[attention.scores].inputs,
        &sums = graph.nodes[attention.values].inputs;
  const AttentionSizes sizes = sizes_of(graph, attention);
  for (const ValueId v : {products[0], products[1], sums[1]})
    if (graph[v].type.dtype != type) return std::nullopt;
  if (sizes.deep % unit != 0 || sizes.columns % unit != 0 || sizes.rows < fewest_queries) return std::nullopt;
  AttentionOperands found{find_strided_operand(work, products[0], unit, false, true),
                          find_strided_operand(work, products[1], unit, true, true),
                          find_strided_operand(work, sums[1], unit, false)};
  if (!found.keys.is_by_columns()) return std::nullopt;
  return found;
}

static std::int64_t groups_of_batch(const AttentionSizes& sizes, std::uint32_t rows) {
  return (sizes.rows + rows - 1) / rows;
}
std::int64_t QueriesOfGroup::groups(const AttentionSizes& sizes, std::uint32_t rows) {
  return sizes.batches * groups_of_batch(sizes, rows);
}

// There may be more groups than asked for: those have no queries.
QueriesOfGroup::QueriesOfGroup(Kernel& s, const AttentionSizes& of, std::uint32_t rows) : sizes(of), s_(s) {
  const Value of_batch = s.param(groups_of_batch(sizes, rows)), number = s.group() / of_batch,
              exists = number < s.param(sizes.batches);
  batch = s.select(exists, number, s.integer(0));
  all = s.select(exists, s.param(sizes.rows), s.integer(0));
  first = s.group() % of_batch * rows;
  keys = s.param(sizes.keys);
}

void QueriesOfGroup::store(const Finish& end, const TileAccumulators& results) const {
  const std::int64_t rows = sizes.rows, columns = sizes.columns;
  const Finish::Strides apart = end.strides().value_or(Finish::Strides{end.output(), {rows * columns}, columns});
  const bool by_quads = is_multiple(apart.rows, 4) && apart.batches.are_multiples(4);
  const Sink sink(s_, end, nullptr, by_quads, s_.integer(0), all, s_.param(columns), apart.batches.begin(s_, batch),
                  s_.param(apart.rows));
  sink.take(results, first);
}

AttentionScores::AttentionScores(Kernel& s, const Attention& attention, const QueriesOfGroup& queries, double unit)
    : s_(s),
      attention_(attention),
      first_((queries.batch * s.param(queries.sizes.rows) + queries.first) * queries.keys),
      rows_(queries.all - queries.first),
      keys_(queries.keys),
      unit_(unit) {
  const double factor = attention.factor * (attention.before_softmax ? 1 : unit);
  if (factor != 1) factor_ = s.real_param(factor);
}

Value AttentionScores::finished(Value score, Value line, Value key) const {
  const Value exists = key < keys_;
  if (factor_) score = score * *factor_;
  if (attention_.before_softmax) {
    const Value at = s_.select(exists & (line < rows_), first_ + line * keys_ + key, s_.integer(0));
    Known known{{attention_.score, score}};
    if (attention_.least != no_value)  // NaN, too, stays what it is
      known.emplace(attention_.least, s_.select(is_nan(score), score, s_.real(-infinity)));
    score = evaluate(s_, *attention_.before_softmax, at, known);
    if (unit_ != 1) score = score * s_.real(unit_);
  }
  return s_.select(exists, score, s_.real(-infinity));
}

Value larger_score(Value a, Value b) { return a.shader->select(a > b, a, b); }

Value base_of_scores(Value largest) {
  Shader& s = *largest.shader;
  return s.select(largest == s.real(-infinity), s.real(0), largest);
}

}  // namespace tosaic::shaders
