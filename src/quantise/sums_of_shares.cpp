// SPDX-License-Identifier: Apache-2.0
#include "quantise/sums_of_shares.h"

#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/function_in_parts.h"
#include "quantise/row_norms.h"

namespace tosaic {
namespace {

// By how much the ends of a part differ. In 16 bits the lowest knot of its table is the 8th (32nd) from 0, where the
// line to the next leaves 1/x by 0.4 (0.02) percent at most.
constexpr double ratio_int8 = 32, ratio_int16 = 8, ratio_narrow = 4;
// What a program of varying sizes has, whatever a size is: it is one program at all of them.
constexpr double most_elements = 1 << 15;
constexpr double largest_half = 65504;  // a bound that only infinities notice
// In 16 bits that feed 8, a factor may be so much larger than the samples' and still be fine enough.
constexpr double room_int8 = 16;

bool computed(const Graph& graph, ValueId v) {
  return v != no_value && graph[v].type.dtype == DType::f32 && !graph[v].type.quantised() && !graph[v].is_constant();
}

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph), made_by_(producers(graph)), read_by_(consumers(graph)) {}

  std::vector<Way> run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if ((node.op != aten::op::sum_dim_IntList && node.op != aten::op::sum) || node.inputs.size() != 1 ||
          !computed(graph_, node.outputs[0]) || !graph_[node.inputs[0]].type.shape.is_static() ||
          !share(node.inputs[0]))
        continue;
      Way way{n, {}, {}, {}};
      const std::size_t first = found_.size();
      follow(node.outputs[0], way, 0);
      scores_.resize(found_.size(), found_.size() > first ? scores(node.inputs[0]) : no_value);
    }
    return std::move(found_);
  }
  // What the shares of each way are made of.
  const std::vector<ValueId>& scores() const { return scores_; }

 private:
  const Node* maker(ValueId v) const {
    return v == no_value || made_by_[v] < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(made_by_[v])];
  }

  // Is each element exp of something that is never positive, or a number between 0 and 1 in its place?
  bool share(ValueId v) const {
    const Node* node = maker(v);
    if (!node || !computed(graph_, v)) return false;
    if (node->op == aten::op::exp) return never_positive(node->inputs[0]);
    if (node->op == aten::op::where_self)
      return (share(node->inputs[1]) && small(node->inputs[2])) || (share(node->inputs[2]) && small(node->inputs[1]));
    if (node->op == aten::op::masked_fill_Scalar) {
      const double value = number(*node, "value", NAN);
      return value >= 0 && value <= 1 && share(node->inputs[0]);
    }
    return false;
  }
  ValueId scores(ValueId share_of) const {
    const Node* node = maker(share_of);
    if (node->op == aten::op::exp) return maker(node->inputs[0])->inputs[0];
    return scores(node->op == aten::op::where_self && !share(node->inputs[1])
                      ? node->inputs[2]
                      : node->inputs[node->op == aten::op::where_self]);
  }
  bool small(ValueId v) const {
    if (v == no_value || !graph_[v].is_constant() || graph_[v].type.shape.elements() != 1) return false;
    const double value = element_as_double(graph_[v].type.dtype, graph_[v].constant.data(), 0);
    return value >= 0 && value <= 1;
  }
  static double number(const Node& node, std::string_view name, double otherwise) {
    const Attr* attr = node.attrs.find(name);
    if (const auto* i = attr ? std::get_if<std::int64_t>(attr) : nullptr) return static_cast<double>(*i);
    const auto* d = attr ? std::get_if<double>(attr) : nullptr;
    return d ? *d : otherwise;
  }

  // x - m, where m is a maximum of x.
  bool never_positive(ValueId v) const {
    const Node* node = maker(v);
    if (!node || node->op != aten::op::sub_Tensor || node->inputs.size() != 2 || number(*node, "alpha", 1) != 1)
      return false;
    return maximum_of(node->inputs[1], node->inputs[0], graph_[node->inputs[1]].type.shape, 6);
  }
  // Is m, seen as `shape`, at least the greatest of x along some dims?
  bool maximum_of(ValueId m, ValueId x, const Shape& shape, int depth) const {
    const Node* node = maker(m);
    if (!node || depth == 0) return false;
    const auto of = [&](std::size_t i) { return maximum_of(node->inputs[i], x, shape, depth - 1); };
    if (node->op == aten::op::amax || node->op == aten::op::max_dim)
      return node->inputs[0] == x && node->outputs[0] == m && shape == kept(*node, graph_[x].type.shape);
    if (node->op == aten::op::clamp) return number(*node, "max", INFINITY) >= largest_half && of(0);
    if (node->op == aten::op::maximum) return of(0) || of(1);
    // logsumexp puts 0 in place of infinite maxima, which quantised values do not have.
    if (node->op == aten::op::where_self) return (of(1) && small(node->inputs[2])) || (of(2) && small(node->inputs[1]));
    return node->inputs.size() == 1 && only_moves(graph_, *node) && of(0);
  }
  static Shape kept(const Node& reduction, Shape shape) {
    std::vector<std::int64_t> dims;
    if (const Attr* one = reduction.attrs.find("dim"); one && std::holds_alternative<std::int64_t>(*one)) {
      const auto dim = std::get<std::int64_t>(*one);
      dims.push_back(dim < 0 ? dim + shape.rank() : dim);
    } else {
      dims = row_dims(reduction, shape.rank());
    }
    for (std::int64_t dim : dims) shape.set(static_cast<int>(dim), 1);
    return shape;
  }

  // Every way from v on, as far as its last function.
  void follow(ValueId v, Way& way, std::size_t functions) {
    bool any = false;
    for (const std::size_t n : read_by_[v]) {
      const Node& node = graph_.nodes[n];
      if (way.calls.size() > 8 || !of_one(node, v)) continue;
      any = true;
      way.calls.push_back(n);
      follow(node.outputs[0], way, find_aten(node.op).rule->tabulates ? way.calls.size() : functions);
      way.calls.pop_back();
    }
    if (any || functions == 0) return;
    Way done{way.reduction, {way.calls.begin(), way.calls.begin() + static_cast<std::ptrdiff_t>(functions)}, {}, {}};
    if (std::none_of(found_.begin(), found_.end(), [&](const Way& w) { return w.calls.back() == done.calls.back(); }))
      found_.push_back(std::move(done));
  }

  // A function of each element of v, or a move.
  bool of_one(const Node& node, ValueId v) const {
    const Rule rule = find_aten(node.op).rule;
    if (node.outputs.size() != 1 || !computed(graph_, node.outputs[0]) || node.inputs[0] != v ||
        std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId x) { return computed(graph_, x); }) != 1)
      return false;
    if (rule->passes_values && only_moves(graph_, node)) return true;
    return (rule->maps_values() || rule->is_linear) && graph_[node.outputs[0]].type.shape == graph_[v].type.shape &&
           results_at(graph_, node, {1, 2, 7}).has_value();
  }

 private:
  const Graph& graph_;
  std::vector<std::int32_t> made_by_;
  std::vector<std::vector<std::uint32_t>> read_by_;
  std::vector<Way> found_;
  std::vector<ValueId> scores_;
};

std::vector<double> ends_of(const Graph& graph, const Node& reduction, ValueId scores, const QuantiseOptions& options) {
  const Shape& shape = graph[reduction.inputs[0]].type.shape;
  double elements = 1;
  bool vary = false;
  for (std::int64_t dim : row_dims(reduction, shape.rank())) {
    elements *= static_cast<double>(shape.size(static_cast<int>(dim)));
    vary |= (!options.varying.empty() && graph[scores].type.rank() != shape.rank()) ||
            !size_stays(options, graph, scores, static_cast<int>(dim));
  }
  const double most = vary ? most_elements : std::max(elements, 2.0);
  const double ratio = options.scheme == Scheme::int16x8 ? ratio_int16
                       : options.wide_inside             ? ratio_int8
                                                         : ratio_narrow;
  std::vector<double> ends{1};
  while (ends.back() * ratio < most) ends.push_back(ends.back() * ratio);
  ends.push_back(most);
  return ends;
}

}  // namespace

void hold_sums_of_shares(Graph& graph, std::vector<char>& inner, CertainRanges& certain,
                         const QuantiseOptions& options) {
  Search search(graph);
  const std::vector<Way> ways = search.run();
  if (ways.empty()) return;
  InParts parts(graph, inner, certain, options.scheme == Scheme::int16x8 ? 0 : room_int8, false);
  for (std::size_t i = 0; i < ways.size(); ++i)
    parts.hold(ways[i], {ends_of(graph, parts.nodes()[ways[i].reduction], search.scores()[i], options)});
  parts.finish();
}

}  // namespace tosaic
