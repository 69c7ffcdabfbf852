// SPDX-License-Identifier: Apache-2.0
#include "quantise/norms_in_parts.h"

#include "ir/aten_operators.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tosaic {
namespace {

// The lowest knot of a part's table is the second from 0: the line from there leaves 1/sqrt(x) by 2 percent, where the
// row's own quantised values are off by more.
constexpr double most_ratio = 128;
constexpr double room_above = 1.5;  // for sizes beyond the samples'

// Of scaled rows. Where parts of their squares meet, below the most that there can be: usual rows have a 20th to a 4th
// of the squares that rows of signs have, and are to be where a table's lines are short: closer for tables behind
// squares, which ask for roots, too. From a 32nd (a 64th) on down, rows have spikes.
constexpr double meet_squares[] = {4, 16, 128, 2048}, meet_int16[] = {4, 32, 256, 2048}, meet_int8[] = {64, 4096};
constexpr std::size_t usual_int16 = 2, usual_int8 = 1;
constexpr double little_more =
    8;  // so many times fewer squares cost the quantised values less than another factor does
constexpr double least_largest = 0.5;     // the largest element of rows that are well above what was added to it
constexpr double least_alone = 0.0625;    // of rows that are not, down to a step of their quantised values
constexpr double most_largest = 1.03125;  // 1, and what the factor's rounding adds
constexpr double beside_eps = 1.0625;     // what an eps adds at most: it is scaled with rows that it was no less than

// A size behind steps of which none adds anything.
double after(const std::vector<SizeStep>& steps, std::size_t count, double size) {
  for (std::size_t i = 0; i < count; ++i) {
    const SizeStep& step = steps[i];
    if (step.kind == SizeStep::Kind::power) size = step.factor * std::pow(size, step.exponent);
    if (step.kind == SizeStep::Kind::line) size *= step.slope;
  }
  return size;
}

// How many steps there are up to the last one that adds a scaled eps.
std::size_t with_eps(const RowNorm& norm) {
  std::size_t count = norm.steps.size();
  while (count > 0 && norm.steps[count - 1].added == no_value && norm.steps[count - 1].operand == 0) --count;
  return count;
}

struct Sizes {
  double lowest, highest;  // of scaled rows
};
Sizes sizes_of(const Graph& graph, const RowNorm& norm) {
  const Node& reduction = graph.nodes[norm.reduction];
  const Shape& shape = graph[reduction.inputs[0]].type.shape;
  double terms = 1;
  for (std::int64_t dim : row_dims(reduction, shape.rank()))
    terms *= static_cast<double>(shape.size(static_cast<int>(dim)));
  const bool sum = reduction.op.overload_of(aten::op::sum), mean = reduction.op.overload_of(aten::op::mean);
  const double degree = norm.degree();
  // Sums have room for these: they are as small for a spike above as for all elements of usual rows below.
  const double least = sum || mean ? least_largest : least_alone;
  return {std::pow(least, degree) / (mean ? terms : 1), std::pow(most_largest, degree) * (sum ? terms : 1)};
}

Ends ends_of_scaled(const Graph& graph, const RowNorm& norm, const QuantiseOptions& options) {
  const std::size_t eps = with_eps(norm);
  const Sizes sizes = sizes_of(graph, norm);
  const double highest = after(norm.steps, eps, sizes.highest) * (eps > 0 ? beside_eps : 1);
  const double lowest = after(norm.steps, eps, sizes.lowest);
  double degree = norm.degree();
  for (std::size_t i = 0; i < eps; ++i)
    if (norm.steps[i].kind == SizeStep::Kind::power) degree *= norm.steps[i].exponent;
  const auto below = [&](double squares) { return highest / std::pow(squares, degree / 2); };
  const bool all = options.scheme == Scheme::int16x8;
  const std::span<const double> meet =
      all ? std::span<const double>(norm.kind == RowNorm::Kind::squares ? meet_squares : meet_int16) : meet_int8;
  std::size_t usual = all ? usual_int16 : usual_int8;
  std::vector<double> down{highest};
  for (std::size_t i = 0; i < meet.size() && down.back() > lowest; ++i)
    down.push_back(std::max(lowest, below(meet[i])));
  if (lowest >= below(meet[usual - 1] * little_more)) usual = meet.size();
  usual = std::min(usual, down.size() - 1);
  return {{down.rbegin(), down.rend()}, down.size() - 1 - usual};
}

// None: its factors are computed of more than sizes.
std::optional<Way> way_of_scaled(const RowNorm& norm) {
  const std::size_t eps = with_eps(norm);
  if (eps == norm.steps.size()) return std::nullopt;
  Way way{norm.reduction, {}, {}, {}};
  // after(k, size) is a power of it: two points say which one.
  const double one = after(norm.steps, eps, 1), exponent = std::log2(after(norm.steps, eps, 2) / one);
  for (std::size_t i = 0; i < eps; ++i) {
    const double here = after(norm.steps, i, 1), to = std::log2(after(norm.steps, i, 2) / here) / exponent;
    way.base.push_back({norm.steps[i].node, here / std::pow(one, to), to});
  }
  for (std::size_t i = eps; i < norm.steps.size(); ++i) way.calls.push_back(norm.steps[i].node);
  return way;
}

}  // namespace

bool fits_parts(const Graph& graph, const RowNorm& norm, const std::vector<char>& wide, const std::vector<char>& inner,
                const QuantiseOptions& options) {
  const bool sums =
      !graph.nodes[norm.reduction].op.overload_of(aten::op::amax);  // a maximum has the quantised values of its operand
  return options.varying.empty() && options.scheme == Scheme::int8 && norm.alike && norm.kind != RowNorm::Kind::plain &&
         sums && inner[norm.size] && !wide[norm.source] && !norm.steps.empty() &&
         // 8 bits, as an output that shows it has, do not hold the factors of quiet rows together with those of the
         // samples.
         wide[graph.nodes[norm.steps.back().node].outputs[0]] &&
         std::all_of(norm.steps.begin(), norm.steps.end(),
                     [](const SizeStep& step) { return step.operand == 0 && step.added == no_value; });
}

Ends parts_of(const Graph& graph, const RowNorm& norm, double step, double largest_size) {
  const Node& reduction = graph.nodes[norm.reduction];
  const Shape& shape = graph[reduction.inputs[0]].type.shape;
  double terms = 1;
  if (reduction.op.overload_of(aten::op::sum))
    for (std::int64_t dim : row_dims(reduction, shape.rank()))
      terms *= static_cast<double>(shape.size(static_cast<int>(dim)));
  const double half = step / 2;  // elements of that size are quantised values of 0 and 1
  const double lowest = std::max(terms * (norm.kind == RowNorm::Kind::squares ? half * half : half), norm.floor);
  const double highest = largest_size * room_above;
  if (!(lowest > 0) || !(highest > lowest)) return {};
  const double parts = std::max(1.0, std::ceil(std::log(highest / lowest) / std::log(most_ratio)));
  const double ratio = std::pow(highest / lowest, 1 / parts);
  std::vector<double> ends{lowest};
  for (int i = 1; i < static_cast<int>(parts); ++i) ends.push_back(ends.back() * ratio);
  ends.push_back(highest);
  return {ends};
}

void hold_in_parts(Graph& graph, const std::vector<RowNorm>& norms, const std::vector<Ends>& ends,
                   std::vector<char>& inner, CertainRanges& certain, std::set<ValueId>& refused) {
  InParts parts(graph, inner, certain, std::numeric_limits<double>::infinity(), true);
  std::set<std::size_t> done;  // several products may read one factor
  for (std::size_t i = 0; i < norms.size(); ++i) {
    Way way{norms[i].reduction, {}, {}, {}};
    for (const SizeStep& step : norms[i].steps) way.calls.push_back(step.node);
    if (!done.insert(way.calls.back()).second) continue;
    if (ends[i].empty() || !parts.hold(way, ends[i])) refused.insert(norms[i].size);
  }
  parts.finish();
}

void hold_scaled_in_parts(Graph& graph, const ScaledRows& scaled, const QuantiseOptions& options,
                          std::vector<char>& inner, CertainRanges& certain, std::vector<Ends>& ends) {
  struct Found {
    RowNorm norm;
    Way way;
  };
  std::map<std::size_t, Found> found;  // by the call that gives the factor
  for (RowNorm& norm : find_row_norms(graph)) {
    if (!scaled.done.contains(norm.rows) || norm.steps.empty() || certain.contains(norm.size)) continue;
    const std::size_t last = norm.steps.back().node, product = norm.product;
    auto way = way_of_scaled(norm);
    if (way)
      found.try_emplace(last, Found{std::move(norm), std::move(*way)}).first->second.way.products.push_back(product);
  }
  const auto readers = consumers(graph);
  std::erase_if(found, [&](const auto& entry) {
    const ValueId factor = graph.nodes[entry.first].outputs[0];
    return readers[factor].size() != entry.second.way.products.size() ||
           std::count(graph.outputs.begin(), graph.outputs.end(), factor);
  });
  if (found.empty()) return;
  const bool known = !ends.empty();
  for (const auto& [last, f] : found)
    if (!known) ends.push_back(ends_of_scaled(graph, f.norm, options));
  InParts parts(graph, inner, certain, std::numeric_limits<double>::infinity(), true);
  std::size_t i = 0;
  for (const auto& [last, f] : found) parts.hold(f.way, ends.at(i++));
  parts.finish();
}

}  // namespace tosaic
