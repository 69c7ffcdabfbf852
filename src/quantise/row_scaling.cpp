// SPDX-License-Identifier: Apache-2.0
// With p = 1 / (max|x| + d) for each row, and n = x * p:
//   x * rsqrt(mean(x^2) + eps)       is  n * rsqrt(mean(n^2) + eps * p^2)
//   x / max(sqrt(sum(x^2)), eps)     is  n / max(sqrt(sum(n^2)), eps * p)
// whatever p is, so nothing of its rounding is left in the result.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"
#include "quantise/row_norms.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

// An eps below this, compared with sizes of rows whose largest element is about 1, is nothing in 16 bits. What floats
// make of rows of zeros needs it: calibration would meet 0 * rsqrt(0) there, and NaN in all that follows.
constexpr double least_offset = 1e-6, least_float = 1e-30;

// The largest element of a scaled row: 1, and what the factor's rounding adds (1.6 percent where it is smallest).
constexpr double most_scaled = 1.03125;

class Scaling {
 public:
  Scaling(Graph& graph, std::vector<char>& inner, CertainRanges& certain, const std::vector<double>& largest,
          const std::vector<char>& wide, ScaledRows& scaled)
      : graph_(graph),
        inner_(inner),
        certain_(certain),
        largest_(largest),
        wide_(wide),
        scaled_(scaled),
        out_(graph),
        before_(nodes_.size()),
        b_(graph) {}

  void rewrite(const RowNorm& norm) {
    Node& product = nodes_[norm.product];
    b_.set_loc(product.loc);
    const Rows& rows = rows_of(norm);
    Val size = rows.size, factor = rows.size_factor;
    double degree = norm.degree();
    std::vector<std::size_t> way{norm.rows, norm.reduction};
    for (const SizeStep& step : norm.steps) {
      way.push_back(step.node);
      auto [it, fresh] = sizes_.try_emplace(way);
      if (fresh) it->second = taken(step, size, factor, rows.most, degree, norm.alike);
      std::tie(size, factor) = it->second;
      if (step.kind == SizeStep::Kind::power) degree *= step.exponent;
    }
    product.inputs[norm.operand] = rows.scaled.id();
    product.inputs[1 - norm.operand] = size.id();
    auto& place = before_[norm.product];
    std::move(graph_.nodes.begin(), graph_.nodes.end(), std::back_inserter(place));
    graph_.nodes.clear();
    inner_.resize(graph_.values.size(), 1);
  }

  void finish() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (Node& node : before_[n]) out_.keep(std::move(node));
      out_.keep(std::move(nodes_[n]));
    }
    drop_dead_nodes(graph_);  // what measured the rows before has lost its readers
  }

 private:
  struct Rows {
    Val scaled, factor;     // the rows, times their factors
    Val size, size_factor;  // their size, and the factors in its shape
    double most = 0;        // the largest factor
  };

  const Rows& rows_of(const RowNorm& norm) {
    auto [it, fresh] = rows_.try_emplace({norm.size, norm.rows});
    if (!fresh) return it->second;
    // x is scaled before its quantised values are rounded again, where x - mean(x) would not have finer ones than x.
    const bool centre = norm.mean != no_value && !norm.alike && !scaled_.done.contains(norm.source) &&
                        (wide_[norm.source] || !inner_[norm.rows]);
    const Val x = b_.value(centre ? norm.source : norm.rows);
    const Node& reduction = nodes_[norm.reduction];
    const auto dims = row_dims(reduction, x.rank());
    const std::vector<int> axes(dims.begin(), dims.end());
    Rows& r = it->second;
    const double least = least_size(norm, x, axes);
    r.most = 1 / least;
    r.factor = calls::reciprocal(calls::add(calls::amax(calls::abs(x), axes, true), least));
    r.scaled = calls::mul(x, r.factor);
    if (norm.alike) {  // else the samples show more of what may come
      certain_[r.factor.id()] = {0, r.most};
      certain_[r.scaled.id()] = {-most_scaled, most_scaled};
    }
    scaled_.done.insert(r.scaled.id());
    if (centre) {
      const Val mean = calls::mean(r.scaled, axes, true);
      scaled_.means[mean.id()] = r.scaled.id();
      r.scaled = calls::sub(r.scaled, mean);
    } else if (norm.mean != no_value) {
      scaled_.means.try_emplace(norm.mean, norm.source);
    }
    const Val measured = norm.kind == RowNorm::Kind::squares      ? calls::mul(r.scaled, r.scaled)
                         : norm.kind == RowNorm::Kind::magnitudes ? calls::abs(r.scaled)
                                                                  : r.scaled;
    r.size = b_.aten(reduction.op, {measured}, reduction.attrs);
    r.size_factor = calls::view(r.factor, r.size.shape());
    if (norm.alike) certain_[r.size_factor.id()] = {0, r.most};
    return r;
  }

  // Added to every row's largest element: a quarter of the way to the first knot of the table of 1/x, so that the
  // steepest part of that function is where the table has quantised values for it; and no less than where eps takes
  // over.
  double least_size(const RowNorm& norm, Val x, const std::vector<int>& axes) const {
    const double knot = largest_.at(x.id()) * int16_headroom / 256;
    double terms = 1;
    if (nodes_[norm.reduction].op.overload_of(aten::op::sum))
      for (int axis : axes) terms *= static_cast<double>(x.dim(axis));
    const double floor = norm.floor / terms;
    return std::max({knot / 4, norm.kind == RowNorm::Kind::squares ? std::sqrt(floor) : floor, 1e-30});
  }

  // The step taken by sizes of scaled rows; what is added is scaled with them, by `most` at most.
  std::pair<Val, Val> taken(const SizeStep& step, Val size, Val factor, double most, double degree, bool alike) {
    const Node& node = nodes_[step.node];
    const auto same = [&](Val v) {
      auto operands = b_.values(node.inputs);
      operands[step.operand] = v;
      return b_.aten(node.op, std::move(operands), node.attrs);
    };
    const bool shows = step.added != no_value || std::fabs(step.offset) * std::pow(most, degree) > least_offset;
    if (step.offsets() && !shows) {
      const double of_zeros = std::max(std::fabs(step.offset) * std::pow(most, degree), least_float);
      return {calls::add(calls::mul(size, step.slope), of_zeros), factor};
    }
    const auto offset = [&] {
      const Val power = degree == 2 ? calls::mul(factor, factor) : factor;
      // A number takes no finer quantised values than its sum with the size; a tensor may be as large as that.
      if (degree == 2 && step.added == no_value && alike) certain_[power.id()] = {0, most * most};
      return step.added == no_value ? calls::mul(power, step.offset) : calls::mul(power, b_.value(step.added));
    };
    switch (step.kind) {
      case SizeStep::Kind::moves: {
        const Val moved = same(factor);
        if (alike) certain_[moved.id()] = {0, most};
        return {same(size), moved};
      }
      case SizeStep::Kind::power: return {same(size), factor};
      case SizeStep::Kind::line: return {calls::add(calls::mul(size, step.slope), offset()), factor};
      case SizeStep::Kind::at_least: return {b_.aten(aten::op::maximum, {size, offset()}), factor};
    }
    return {size, factor};
  }

  Graph& graph_;
  std::vector<char>& inner_;
  CertainRanges& certain_;
  const std::vector<double>& largest_;
  const std::vector<char>& wide_;
  ScaledRows& scaled_;
  Rewriter out_;
  std::vector<Node>& nodes_ = out_.nodes();
  std::vector<std::vector<Node>> before_;  // new calls, by the old one that they stand before
  Composer b_;
  std::map<std::pair<ValueId, ValueId>, Rows> rows_;  // by their size, and themselves
  std::map<std::vector<std::size_t>, std::pair<Val, Val>> sizes_;
};

}  // namespace

void scale_rows(Graph& graph, std::vector<RowNorm> norms, const std::vector<double>& largest,
                const std::vector<char>& wide, std::vector<char>& inner, CertainRanges& certain, ScaledRows& scaled) {
  std::sort(norms.begin(), norms.end(), [](const auto& a, const auto& b) { return a.product < b.product; });
  Scaling scaling(graph, inner, certain, largest, wide, scaled);
  for (const RowNorm& norm : norms) scaling.rewrite(norm);
  scaling.finish();
}

}  // namespace tosaic
