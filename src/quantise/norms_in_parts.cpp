// SPDX-License-Identifier: Apache-2.0
#include "quantise/norms_in_parts.h"

#include <algorithm>
#include <cmath>

#include "quantise/function_in_parts.h"

namespace tosaic {
namespace {

// The lowest knot of a part's table is the second from 0: the line from there leaves 1/sqrt(x) by 2 percent, where the
// row's own codes are off by more.
constexpr double most_ratio = 128;
constexpr double room_above = 1.5;  // for sizes beyond the samples'

}  // namespace

bool fits_parts(const Graph& graph, const RowNorm& norm, const std::vector<char>& wide, const std::vector<char>& inner,
                const QuantiseOptions& options) {
  const bool sums = !graph.nodes[norm.reduction].op.starts_with("aten.amax");  // a maximum has the codes of its operand
  return options.scheme == Scheme::int8 && norm.alike && norm.kind != RowNorm::Kind::plain && sums &&
         inner[norm.size] && !wide[norm.source] && !norm.steps.empty() &&
         // 8 bits, as an output that shows it has, do not hold the factors of quiet rows beside those of the samples.
         wide[graph.nodes[norm.steps.back().node].outputs[0]] &&
         std::all_of(norm.steps.begin(), norm.steps.end(),
                     [](const SizeStep& step) { return step.operand == 0 && step.added == no_value; });
}

std::vector<double> parts_of(const Graph& graph, const RowNorm& norm, double step, double largest_size) {
  const Node& reduction = graph.nodes[norm.reduction];
  const Shape& shape = graph[reduction.inputs[0]].type.shape;
  double terms = 1;
  if (reduction.op.starts_with("aten.sum"))
    for (std::int64_t dim : row_dims(reduction, shape.rank()))
      terms *= static_cast<double>(shape.size(static_cast<int>(dim)));
  const double half = step / 2;  // elements of that size are codes of 0 and 1
  const double lowest = std::max(terms * (norm.kind == RowNorm::Kind::squares ? half * half : half), norm.floor);
  const double highest = largest_size * room_above;
  if (!(lowest > 0) || !(highest > lowest)) return {};
  const double parts = std::max(1.0, std::ceil(std::log(highest / lowest) / std::log(most_ratio)));
  const double ratio = std::pow(highest / lowest, 1 / parts);
  std::vector<double> ends{lowest};
  for (int i = 1; i < static_cast<int>(parts); ++i) ends.push_back(ends.back() * ratio);
  ends.push_back(highest);
  return ends;
}

void hold_in_parts(Graph& graph, const std::vector<RowNorm>& norms, const std::vector<std::vector<double>>& ends,
                   std::vector<char>& inner, CertainRanges& certain, std::set<ValueId>& refused) {
  InParts parts(graph, inner, certain, std::numeric_limits<double>::infinity(), true);
  std::set<std::size_t> done;  // several products may read one factor
  for (std::size_t i = 0; i < norms.size(); ++i) {
    Way way{norms[i].reduction, {}};
    for (const SizeStep& step : norms[i].steps) way.calls.push_back(step.node);
    if (!done.insert(way.calls.back()).second) continue;
    if (ends[i].empty() || !parts.hold(way, ends[i])) refused.insert(norms[i].size);
  }
  parts.finish();
}

}  // namespace tosaic
