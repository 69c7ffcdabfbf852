// SPDX-License-Identifier: Apache-2.0
#include "quantise/row_norms.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

bool real(const Graph& graph, ValueId v) {
  return v != no_value && graph[v].type.dtype == DType::f32 && !graph[v].type.quantised();
}
bool computed(const Graph& graph, ValueId v) { return real(graph, v) && !graph[v].is_constant(); }

// Sizes of rows from far below to far above what networks hold, none a power of another's.
std::vector<double> probes() {
  std::vector<double> points;
  for (int k = -10; k <= 8; ++k) points.push_back(static_cast<double>(static_cast<float>(std::pow(10.0, k) * 1.37)));
  return points;
}
bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::max(std::fabs(a), std::fabs(b)); }

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph), made_by_(producers(graph)), read_by_(consumers(graph)) {}

  std::vector<RowNorm> run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (RowNorm& norm : measured(n)) follow(norm, norm.size, norm.degree(), {});
    return std::move(found_);
  }

 private:
  // size -> factor * size^exponent, as far as the way has been followed without eps
  struct Power {
    double factor = 1, exponent = 1;
  };

  const Node* maker(ValueId v) const {
    return v == no_value || made_by_[v] < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(made_by_[v])];
  }

  // sum(x * x), mean(|x|) and their like; or a sum of rows that stand for themselves.
  std::vector<RowNorm> measured(std::size_t n) const {
    static constexpr Operator reductions[] = {aten::op::sum_dim_IntList, aten::op::sum, aten::op::mean_dim,
                                              aten::op::mean, aten::op::amax};
    const Node& node = graph_.nodes[n];
    if (std::find(std::begin(reductions), std::end(reductions), node.op) == std::end(reductions) ||
        node.inputs.size() != 1 || node.outputs.size() != 1 || !computed(graph_, node.outputs[0]) ||
        !computed(graph_, node.inputs[0]))
      return {};
    RowNorm norm;
    norm.rows = norm.source = node.inputs[0];
    norm.reduction = n;
    norm.size = node.outputs[0];
    std::vector<RowNorm> found{norm};
    const Node* inside = maker(node.inputs[0]);
    if (!inside || inside->inputs.empty()) return found;
    norm.kind = kind_of(*inside, static_cast<std::size_t>(made_by_[node.inputs[0]]));
    if (norm.kind == RowNorm::Kind::plain) return found;
    norm.rows = norm.source = inside->inputs[0];
    centre(norm);
    found.push_back(norm);
    return found;
  }

  RowNorm::Kind kind_of(const Node& inside, std::size_t n) const {
    const ValueId x = inside.inputs[0];
    if (!computed(graph_, x)) return RowNorm::Kind::plain;
    if (inside.op == aten::op::mul_Tensor && inside.inputs.size() == 2 && inside.inputs[1] == x)
      return RowNorm::Kind::squares;
    if (inside.op == aten::op::abs) return RowNorm::Kind::magnitudes;
    const auto power = step_of(n, x);
    return power && power->kind == SizeStep::Kind::power && near(power->exponent, 2) && near(power->factor, 1)
               ? RowNorm::Kind::squares
               : RowNorm::Kind::plain;
  }

  // x - mean(x) along the dims of the norm: a factor per row of x is one of its rows, too.
  void centre(RowNorm& norm) const {
    const Node* sub = maker(norm.rows);
    if (!sub || sub->op != aten::op::sub_Tensor || sub->inputs.size() != 2) return;
    const Attr* alpha = sub->attrs.find("alpha");
    if (alpha && *alpha != Attr(std::int64_t{1}) && *alpha != Attr(1.0)) return;
    const ValueId x = sub->inputs[0];
    const Node* mean = maker(sub->inputs[1]);
    const int rank = graph_[norm.rows].type.rank();
    if (!mean || mean->op != aten::op::mean_dim || mean->inputs[0] != x || !mean->attrs.get_or("keepdim", false) ||
        graph_[x].type.rank() != rank || row_dims(*mean, rank) != row_dims(graph_.nodes[norm.reduction], rank))
      return;
    norm.source = x;
    norm.mean = sub->inputs[1];
  }

  // Everything that is made of `v`, a function of the rows' size that is homogeneous (but for eps) of this degree.
  void follow(RowNorm& norm, ValueId v, double degree, Power power) {
    for (const std::size_t n : read_by_[v]) {
      const Node& node = graph_.nodes[n];
      if (near(degree, -1) && multiplies(norm, node, v)) {
        RowNorm done = norm;
        done.product = n;
        done.result = node.outputs[0];
        done.operand = node.inputs[0] == v ? 1 : 0;
        found_.push_back(std::move(done));
        continue;
      }
      const auto step = step_of(n, v);
      if (!step) continue;
      const double floor = norm.floor;
      Power next = power;
      if (step->kind == SizeStep::Kind::power)
        next = {step->factor * std::pow(power.factor, step->exponent), power.exponent * step->exponent};
      if (step->offsets() && !near(degree, 1) && !near(degree, 2)) continue;
      if (step->offsets() && step->added == no_value)
        norm.floor =
            std::max(floor, std::pow(std::fabs(step->offset / step->slope) / power.factor, 1 / power.exponent));
      norm.steps.push_back(*step);
      if (norm.steps.size() < 12)
        follow(norm, node.outputs[0], step->kind == SizeStep::Kind::power ? degree * step->exponent : degree, next);
      norm.steps.pop_back();
      norm.floor = floor;
    }
  }

  bool multiplies(const RowNorm& norm, const Node& node, ValueId v) const {
    if (node.op != aten::op::mul_Tensor || node.inputs.size() != 2) return false;
    const ValueId other = node.inputs[0] == v ? node.inputs[1] : node.inputs[0];
    return other != v && computed(graph_, other) && alike(other, norm.rows, 3);
  }

  // What a call makes of sizes, asked of its own lowering.
  std::optional<SizeStep> step_of(std::size_t n, ValueId v) const {
    const Node& node = graph_.nodes[n];
    SizeStep step;
    step.node = n;
    FoundOp found = find_aten(node.op);
    if (!found.op || node.outputs.size() != 1 || !computed(graph_, node.outputs[0])) return std::nullopt;
    step.operand = static_cast<std::size_t>(std::find(node.inputs.begin(), node.inputs.end(), v) - node.inputs.begin());
    if (step.operand == 0 && found.rule->passes_values && only_moves(graph_, node)) return step;
    if (std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId x) { return computed(graph_, x); }) != 1)
      return beside_tensor(node, step);
    const auto x = probes();
    const auto trial = try_in_shape(graph_, node, Shape{static_cast<std::int64_t>(x.size() + 1)});
    if (!trial.ok() || trial->graph.inputs.size() != 1) return std::nullopt;
    auto with_zero = x;
    with_zero.push_back(0);
    const auto y = computed_at(*trial, {with_zero});
    if (!y.ok() || y->size() != with_zero.size()) return std::nullopt;
    const auto holds = [&](auto f) {
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!near((*y)[i], f(x[i]))) return false;
      return true;
    };
    const double first = (*y)[0], last = (*y)[x.size() - 1], at_zero = y->back();
    step.kind = SizeStep::Kind::power;
    step.exponent = std::nearbyint(2 * std::log(last / first) / std::log(x.back() / x[0])) / 2;
    step.factor = last / std::pow(x.back(), step.exponent);
    if (step.factor > 0 && holds([&](double at) { return step.factor * std::pow(at, step.exponent); })) return step;
    if (!std::isfinite(at_zero) || at_zero == 0) return std::nullopt;
    step.kind = SizeStep::Kind::line;
    step.offset = at_zero;
    step.slope = (last - at_zero) / x.back();
    if (step.slope > 0 && holds([&](double at) { return step.slope * at + step.offset; })) return step;
    step.kind = SizeStep::Kind::at_least;
    step.slope = 1;
    if (step.offset > 0 && holds([&](double at) { return std::max(at, step.offset); })) return step;
    return std::nullopt;
  }

  // v + t, max(v, t) with a computed t: eps that has been scaled before.
  std::optional<SizeStep> beside_tensor(const Node& node, SizeStep step) const {
    const Attr* alpha = node.attrs.find("alpha");
    const bool sum =
        node.op == aten::op::add_Tensor && (!alpha || *alpha == Attr(std::int64_t{1}) || *alpha == Attr(1.0));
    if ((!sum && node.op != aten::op::maximum) || node.inputs.size() != 2 || node.inputs[0] == node.inputs[1] ||
        !computed(graph_, node.inputs[1 - step.operand]))
      return std::nullopt;
    step.kind = sum ? SizeStep::Kind::line : SizeStep::Kind::at_least;
    step.added = node.inputs[1 - step.operand];
    return step;
  }

  // The same tensor, perhaps computed twice: var(x) takes x - mean(x) again.
  bool alike(ValueId a, ValueId b, int depth) const {
    if (a == b) return true;
    if (a == no_value || b == no_value || depth == 0 || graph_[a].type.shape != graph_[b].type.shape) return false;
    const Node *x = maker(a), *y = maker(b);
    if (!x || !y || x->op != y->op || x->inputs.size() != y->inputs.size() || x->outputs.size() != 1) return false;
    for (std::size_t i = 0; i < x->inputs.size(); ++i)
      if (!alike(x->inputs[i], y->inputs[i], depth - 1)) return false;
    return meaning(*x) == meaning(*y);
  }
  // Attributes with negative dims counted from the front.
  Attrs meaning(const Node& node) const {
    Attrs attrs;
    const int rank = graph_[node.inputs[0]].type.rank();
    for (const auto& [name, attr] : node.attrs) {
      Attr value = attr;
      if (auto* dims = std::get_if<std::vector<std::int64_t>>(&value); dims && name == "dim") {
        for (auto& d : *dims) d += d < 0 ? rank : 0;
        std::sort(dims->begin(), dims->end());
      }
      if (!std::holds_alternative<std::monostate>(value)) attrs.set(name, value);
    }
    return attrs;
  }

  const Graph& graph_;
  std::vector<std::int32_t> made_by_;
  std::vector<std::vector<std::uint32_t>> read_by_;
  std::vector<RowNorm> found_;
};

}  // namespace

std::vector<std::int64_t> row_dims(const Node& reduction, int rank) {
  auto dims = reduction.attrs.get_or("dim", std::vector<std::int64_t>{});
  for (auto& d : dims) d += d < 0 ? rank : 0;
  std::sort(dims.begin(), dims.end());
  if (dims.empty())
    for (int i = 0; i < rank; ++i) dims.push_back(i);
  return dims;
}

bool only_moves(const Graph& graph, const Node& node) {
  const auto trial = try_node(graph, node);
  if (!trial.ok() || trial->operands[0] == no_value) return false;
  const auto moving = [](const Node& n) {
    return n.op == tosa::op::reshape || n.op == tosa::op::transpose || n.op == tosa::op::tile ||
           n.op == tosa::op::identity || n.op == tosa::op::const_shape;
  };
  for (std::size_t i = 1; i < trial->operands.size(); ++i)
    for (const Node& n : trial->graph.nodes)
      if (trial->operands[i] != no_value && std::count(n.inputs.begin(), n.inputs.end(), trial->operands[i]))
        return false;
  return std::all_of(trial->graph.nodes.begin(), trial->graph.nodes.end(), moving);
}

std::vector<RowNorm> find_row_norms(const Graph& graph) { return Search(graph).run(); }

RowSizes::RowSizes(std::vector<RowNorm> norms) : norms_(std::move(norms)) {
  for (const RowNorm& norm : norms_) seen_[norm.size].floor = std::max(seen_[norm.size].floor, norm.floor);
}

void RowSizes::see(ValueId v, std::span<const float> elements) {
  auto it = seen_.find(v);
  if (it == seen_.end()) return;
  Sizes& sizes = it->second;
  for (const float x : elements) {
    const auto size = static_cast<double>(x);
    if (!(size > sizes.floor) || !std::isfinite(size)) continue;
    if (sizes.smallest == 0 || size < sizes.smallest) sizes.smallest = size;
    sizes.largest = std::max(sizes.largest, size);
  }
}

double RowSizes::unlikeness(const RowNorm& norm) const {
  const Sizes& sizes = seen_.at(norm.size);
  if (!(sizes.smallest > 0)) return 1;
  const double ratio = sizes.largest / sizes.smallest;
  return norm.kind == RowNorm::Kind::squares ? std::sqrt(ratio) : ratio;
}

}  // namespace tosaic
