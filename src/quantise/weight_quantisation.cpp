// SPDX-License-Identifier: Apache-2.0
#include "quantise/weight_quantisation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <map>
#include <set>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/dynamic_rows.h"
#include "quantise/quantise_weight.h"

namespace tosaic {
namespace {

// What smaller matrices would save is not worth their steps.
constexpr std::int64_t least_elements = 1 << 14;

bool is_large(const Value& weight) { return weight.type.shape.elements() >= least_elements; }
bool is_matrix(const Value& weight) {
  return weight.is_constant() && weight.type.dtype == DType::f32 && weight.type.rank() == 2;
}
// A product with a constant matrix whose rows its operand's last dim meets.
bool multiplies_matrix(const Graph& graph, const Node& node) {
  const FoundOp found = find_aten(node.op);
  if (!found.rule->accumulates || node.inputs.size() < 2) return false;
  if (found.schema->arguments.size() < 2 || found.schema->arguments[1].name != "weight") return false;
  const Value& x = graph[node.inputs[0]];
  return !x.is_constant() && x.type.dtype == DType::f32 && is_matrix(graph[node.inputs[1]]);
}
// Rows of a constant matrix by their numbers.
bool looks_up_rows(const Graph& graph, const Node& node) {
  return node.op == aten::op::embedding && !graph[node.inputs[1]].is_constant() && is_matrix(graph[node.inputs[0]]);
}

// The calls are those that torchao's quantize_ leaves in a program.
class Coding {
 public:
  Coding(Graph& graph, const WeightQuantisation& how, std::vector<std::string>& small)
      : graph_(graph), how_(how), out_(graph), c_(graph), small_(small) {
    c_.fold(false);
  }

  Status run() {
    Status status;
    for (const Node& node : out_.nodes())
      if (is_layer(node)) of_layers_.insert(node.inputs[1]);
    out_.each([&](Node& node) {
      if (status.ok() && is_layer(node)) status = code(node);
      if (status.ok() && is_look_up(node)) status = read_quantised(node, 0);
      out_.keep(std::move(node));
    });
    drop_dead(graph_);
    make_names_unique(graph_);
    return status;
  }

 private:
  Graph& graph_;
  const WeightQuantisation& how_;
  Rewriter out_;
  Composer c_;
  std::set<ValueId> of_layers_;
  std::map<ValueId, ValueId> reals_;    // of quantised values of a weight
  std::map<ValueId, ValueId> rounded_;  // activations as their quantised values
  std::vector<std::string>& small_;     // what is too small to be quantised

  bool is_layer(const Node& node) {
    if (!multiplies_matrix(graph_, node)) return false;
    return is_large(graph_[node.inputs[1]]);
  }
  bool is_look_up(const Node& node) { return looks_up_rows(graph_, node) && is_large(graph_[node.inputs[0]]); }
  bool is_large(const Value& weight) {
    if (tosaic::is_large(weight)) return true;
    std::string what = fmt::format("'{}' ({})", weight.name, to_string(weight.type.shape));
    if (std::ranges::find(small_, what) == small_.end()) small_.push_back(std::move(what));
    return false;
  }

  Val named(Val made, std::string name) {
    graph_[made.id()].name = std::move(name);
    return made;
  }

  Status code(Node& node) {
    TOSAIC_CHECK(read_quantised(node, 1));
    if (how_.dynamic) node.inputs[0] = rounded(node.inputs[0]);
    return {};
  }

  Status read_quantised(Node& node, std::size_t at) {
    c_.set_loc(node.loc);
    const ValueId weight = node.inputs[at];
    if (const auto found = reals_.find(weight); found != reals_.end()) {
      node.inputs[at] = found->second;
      return {};
    }
    TOSAIC_TRY(node.inputs[at], quantised_weight(weight, node.loc));
    reals_[weight] = node.inputs[at];
    return {};
  }

  // What is looked up alone is not read as a whole, so it may have 8 bits, a scale for each row.
  Result<ValueId> quantised_weight(ValueId weight, const LocRef& loc) {
    const Value whole = graph_[weight];
    const bool multiplied = of_layers_.contains(weight);
    const std::int64_t n = whole.type.shape.size(0), k = whole.type.shape.size(1);
    const std::int64_t group = multiplied && how_.group ? how_.group : k;
    if (k % group != 0)
      return located(error("quantise.group-size",
                           fmt::format("rows of '{}' have {} weights, which are no groups of {}", whole.name, k, group))
                         .hint("give --group-size a divisor"),
                     loc);
    const TensorType by_group{DType::f32, Shape{n * (k / group), group}, {}};
    const Tensor* better = multiplied && how_.rounded ? how_.rounded(whole) : nullptr;
    const Tensor quantised =
        better ? *better : quantise_weight({by_group, whole.constant}, 0, multiplied && how_.bits == 4);
    const std::vector<double>& scales = quantised.type.scales->scale;
    const ValueId content = graph_.add_value(whole.name + ".codes", {DType::i8, whole.type.shape, {}}, quantised.data);
    const ValueId scale = graph_.add_value(whole.name + ".scales", {DType::f32, Shape{n, k / group}, {}},
                                           constant_bytes(DType::f32, std::span<const double>(scales)));
    return named(reals_of(c_, content, scale, no_value, {1, group}), whole.name + ".real").id();
  }

  ValueId rounded(ValueId v) {
    if (const auto found = rounded_.find(v); found != rounded_.end()) return found->second;
    const Val x = c_.value(v);
    const std::string name = graph_[v].name;
    const RowsWithScales rows = quantise_dynamically(c_, x, false);
    const Val scale = named(rows.scale, name + ".scale"), zero = named(*rows.zero, name + ".zero");
    const Val quantised = named(rows.quantised, name + ".codes");
    return rounded_[v] =
               named(reals_of(c_, quantised.id(), scale.id(), zero.id(), row_block(x.type())), name + ".real").id();
  }
};

Status code(Graph& graph, const WeightQuantisation& how, std::vector<std::string>& small) {
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) TOSAIC_CHECK(code(body, how, small));
  return unless_refused([&] { return Coding(graph, how, small).run(); });
}

Diagnostic stay_floats(std::vector<std::string> small) {
  constexpr std::size_t shown = 3;
  const std::size_t all = small.size();
  small.resize(std::min(all, shown));
  Diagnostic note = warning(
      "quantise.small-weights",
      fmt::format("{}{} stay{} float: quantising fewer than {} weights would save little", fmt::join(small, ", "),
                  all > shown ? fmt::format(" and {} more", all - shown) : "", all == 1 ? "s" : "", least_elements));
  note.severity = Severity::note;
  return note;
}

}  // namespace

std::vector<std::size_t> layers_to_quantise(const Graph& graph) {
  std::vector<std::size_t> layers;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (multiplies_matrix(graph, graph.nodes[n]) && is_large(graph[graph.nodes[n].inputs[1]])) layers.push_back(n);
  return layers;
}

Status quantise_weights(Graph& graph, const WeightQuantisation& how, const std::function<void(Diagnostic)>& sink) {
  if (how.bits == 0) return {};
  std::vector<std::string> small;
  TOSAIC_CHECK(code(graph, how, small));
  if (sink && !small.empty()) sink(stay_floats(std::move(small)));
  return {};
}

}  // namespace tosaic
