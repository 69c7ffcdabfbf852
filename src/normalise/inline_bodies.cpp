// SPDX-License-Identifier: Apache-2.0
// Control flow as calls of its bodies, which any target takes: of a branch both sides, of which one result is chosen;
// of a loop each turn, where their number is known. Bodies are pure: torch.export takes no others. What is not worth
// that, or cannot be, stays a branch or a loop.
#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "ir/aten_operators.h"
#include "ir/inlined_body.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"
#include "normalise/body_work.h"
#include "normalise/normalise.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"

namespace tosaic {
namespace {

constexpr std::size_t most_nodes = 20000;  // that a program may have for its loops to be written out

using Operands = std::vector<ValueId>;

Diagnostic too_long(const Node& node, std::size_t turns) {
  return located(error("model.control-flow", fmt::format("{} takes {} iterations, too many to unroll", node.op, turns))
                     .hint("export the model for fewer, or keep the loop outside of the model"),
                 node.loc);
}

class Inliner {
 public:
  explicit Inliner(Graph& graph) : graph_(graph), c_(graph, [this](Operator) { return result_name(); }) {
    c_.fold(false);
  }

  Status run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) TOSAIC_CHECK(add(std::move(node)));
    for (ValueId& v : graph_.outputs) v = now(v);
    for (State& s : graph_.states) s.output = now(s.output);
    return {};
  }

 private:
  ValueId now(ValueId v) const {
    const auto found = replaced_.find(v);
    return found == replaced_.end() ? v : found->second;
  }

  Status add(Node node) {
    for (ValueId& v : node.inputs)
      if (v != no_value) v = now(v);
    if (has_mark(node, mark::kept)) node.attrs = said_by_others(node.attrs);
    if (node.regions.empty() || !bodies_fit(node)) {
      graph_.nodes.push_back(std::move(node));
      return {};
    }
    for (Graph& body : node.regions) TOSAIC_CHECK(functionalise(body));
    if (node.op == higher_order::op::cond) return branch(std::move(node));
    if (node.op == higher_order::op::map_impl) return loop_over_rows(node, 0);
    if (node.op == higher_order::op::scan) return loop_over_rows(node, operands(node, 0).size());
    if (node.op == higher_order::op::while_loop) return counted_loop(std::move(node));
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // That a node may stay is for this stage to say.
  static Attrs said_by_others(const Attrs& attrs) {
    Attrs others;
    for (const auto& [name, attr] : attrs)
      if (name != mark::kept.name) others.set(name, attr);
    return others;
  }

  // How many tensors each argument has, see mark::operands; null: not known.
  static const std::vector<std::int64_t>* operand_counts(const Node& node) { return find_mark(node, mark::operands); }

  // The tensors of one argument, in order.
  static Operands operands(const Node& node, std::size_t argument) {
    const auto* list = operand_counts(node);
    if (!list || argument >= list->size()) return {};
    std::size_t begin = 0;
    for (std::size_t i = 0; i < argument; ++i) begin += static_cast<std::size_t>((*list)[i]);
    const auto first = node.inputs.begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>((*list)[argument])};
  }

  bool bodies_fit(const Node& node) const {
    const auto* list = operand_counts(node);
    if (!list || std::ranges::count(node.inputs, no_value) > 0 || std::ranges::count(node.outputs, no_value) > 0)
      return false;
    std::size_t all = 0;
    for (std::int64_t n : *list) {
      if (n < 0 || n > static_cast<std::int64_t>(node.inputs.size())) return false;
      all += static_cast<std::size_t>(n);
    }
    const bool loop = node.op == higher_order::op::while_loop, cond = node.op == higher_order::op::cond;
    const std::size_t taken = node.inputs.size() - (cond ? 1 : 0);
    return all == node.inputs.size() && node.regions.size() == (loop || cond ? 2u : 1u) &&
           (!cond || graph_[node.inputs[0]].type.shape.elements() == 1) &&
           std::ranges::all_of(node.regions,
                               [&](const Graph& b) { return b.inputs.size() == taken && b.states.empty(); });
  }

  ValueId fresh(const std::string& name, const TensorType& type) {
    return graph_.add_value(fmt::format("{}.{}", name, ++names_), type);
  }

  std::string result_name() {
    const LocRef& loc = c_.loc();
    return fmt::format("{}.{}", loc && !loc->name.empty() ? loc->name : "body", ++names_);
  }
  ValueId call(Operator op, const Operands& inputs, Attrs attrs, const Node& by) {
    c_.set_loc(by.loc);
    return c_.aten(op, c_.values(inputs), std::move(attrs)).id();
  }

  // The body's nodes with these operands; its results.
  Result<Operands> inlined(const Graph& body, const Operands& given, const Node& holder) {
    InlinedBody made = inlined_body(graph_, body, given, holder.loc,
                                    [this](const std::string& name) { return fmt::format("{}.{}", name, ++names_); });
    for (Node& node : made.nodes) TOSAIC_CHECK(add(std::move(node)));
    Operands results;
    for (ValueId v : made.results) results.push_back(now(v));
    return results;
  }

  Status same_types(const Operands& a, const Operands& b, const Node& node, std::string_view of_what) const {
    bool same = a.size() == b.size();
    for (std::size_t i = 0; same && i < a.size(); ++i) same = graph_[a[i]].type == graph_[b[i]].type;
    return same ? Status() : differ(node, of_what);
  }
  static Status differ(const Node& node, std::string_view of_what) {
    return located(error("model.control-flow", fmt::format("{} differ in their types in {}", of_what, node.op))
                       .hint("let both give tensors of one shape and dtype"),
                   node.loc);
  }

  Status branch(Node node) {
    const ValueId condition = node.inputs[0];
    const Operands given(node.inputs.begin() + 1, node.inputs.end());
    if (graph_[condition].is_constant()) {
      const bool yes = element_as_integer(graph_[condition].type.dtype, graph_[condition].constant.data(), 0) != 0;
      TOSAIC_TRY(const Operands results, inlined(node.regions[yes ? 0 : 1], given, node));
      return give(node, results);
    }
    for (const Graph& body : node.regions)
      if (auto why = not_worth_computing_both(body)) return keep(std::move(node), *why);
    TOSAIC_TRY(const Operands yes, inlined(node.regions[0], given, node));
    TOSAIC_TRY(const Operands no, inlined(node.regions[1], given, node));
    TOSAIC_CHECK(same_types(yes, no, node, "the branches' results"));
    Operands chosen;
    c_.set_loc(node.loc);
    for (std::size_t i = 0; i < yes.size(); ++i)
      chosen.push_back(yes[i] == no[i] ? yes[i] : one_of(condition, yes[i], no[i]));
    return give(node, chosen);
  }

  // The dims of the one element that decides are none of the result's.
  ValueId one_of(ValueId condition, ValueId yes, ValueId no) {
    Val decides = c_.value(condition);
    if (decides.rank() > graph_[yes].type.rank()) decides = calls::view(decides, {});
    return calls::where(decides, c_.value(yes), c_.value(no)).id();
  }

  // map: (rows, others); scan: (carried, rows, others). Rows are the slices along dim 0, results are stacked there.
  Status loop_over_rows(const Node& node, std::size_t carried) {
    const bool scan = node.op == higher_order::op::scan;
    Operands state = scan ? operands(node, 0) : Operands();
    const Operands rows = operands(node, scan ? 1 : 0), others = operands(node, scan ? 2 : 1);
    if (rows.empty() || std::ranges::any_of(rows, [&](ValueId v) { return graph_[v].type.rank() == 0; }))
      return keep(node);
    const std::int64_t turns = graph_[rows[0]].type.shape.size(0);
    for (ValueId r : rows)
      if (graph_[r].type.shape.size(0) != turns) return keep(node);
    const Graph& body = node.regions[0];
    if (turns < 1 || static_cast<std::size_t>(turns) > most_nodes)
      return too_long(node, static_cast<std::size_t>(turns));
    std::vector<Operands> stacked(body.outputs.size() - std::min(carried, body.outputs.size()));
    for (std::int64_t i = 0; i < turns; ++i) {
      Operands given = state;
      for (ValueId r : rows)
        given.push_back(call(aten::op::select_int, {r}, {{"dim", std::int64_t{0}}, {"index", i}}, node));
      given.insert(given.end(), others.begin(), others.end());
      TOSAIC_TRY(Operands results, inlined(body, given, node));
      if (graph_.nodes.size() > most_nodes) return too_long(node, static_cast<std::size_t>(turns));
      const auto middle = results.begin() + static_cast<std::ptrdiff_t>(std::min(carried, results.size()));
      const Operands next(results.begin(), middle);
      TOSAIC_CHECK(same_types(state, next, node, "what is carried from turn to turn and what a turn makes of it"));
      state = next;
      for (std::size_t k = 0; k < stacked.size(); ++k) stacked[k].push_back(*(middle + static_cast<std::ptrdiff_t>(k)));
    }
    Operands results = state;
    for (const Operands& list : stacked)
      results.push_back(call(aten::op::stack, list, {{"dim", std::int64_t{0}}}, node));
    return give(node, results);
  }

  // What a body gives that follows from constants alone.
  std::vector<Bytes> known_results(Graph body, const Operands& given) const {
    for (std::size_t i = 0; i < given.size(); ++i)
      if (graph_[given[i]].is_constant()) body[body.inputs[i]].constant = graph_[given[i]].constant;
    std::erase_if(body.inputs, [&](ValueId v) { return body[v].is_constant(); });
    fold_constants(body);
    std::vector<Bytes> known;
    for (ValueId v : body.outputs) known.push_back(body[v].constant);
    return known;
  }

  // A loop whose condition needs nothing but constants: regions {condition, turn}, operands (carried, others). Where
  // that ends, or where the turns are too many, the loop stays one.
  Status counted_loop(Node node) {
    const std::size_t nodes_before = graph_.nodes.size();
    Operands state = operands(node, 0);
    const Operands others = operands(node, 1);
    const Graph &condition = node.regions[0], &turn = node.regions[1];
    const auto stays = [&](std::string why) {
      graph_.nodes.resize(nodes_before);
      return keep(std::move(node), std::move(why));
    };
    for (std::size_t turns = 0;; ++turns) {
      Operands given = state;
      given.insert(given.end(), others.begin(), others.end());
      const std::vector<Bytes> goes_on = known_results(condition, given);
      if (goes_on.size() != 1 || goes_on[0].size() != 1) return stays("its number of iterations depends on data");
      if (goes_on[0].as<std::uint8_t>()[0] == 0) return give(node, state);
      const std::vector<Bytes> known = known_results(turn, given);
      TOSAIC_TRY(Operands next, inlined(turn, given, node));
      TOSAIC_CHECK(same_types(state, next, node, "what is carried from turn to turn and what a turn makes of it"));
      for (std::size_t i = 0; i < next.size(); ++i)
        if (i < known.size() && !known[i].null()) {
          const ValueId number = fresh(graph_[next[i]].name, graph_[next[i]].type);
          graph_[number].constant = known[i];
          next[i] = number;
        }
      state = next;
      if (graph_.nodes.size() > most_nodes || turns >= most_nodes)
        return stays(fmt::format("it unrolls to more than {} iterations or nodes", most_nodes));
    }
  }

  Status keep(Node node) {
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // A branch or a loop that stays one. Constants (weights, mostly, quantised values too) belong to the bodies that read
  // them; what is carried from turn to turn changes.
  Status keep(Node node, std::string why) {
    const bool loop = node.op == higher_order::op::while_loop;
    for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b)
      TOSAIC_CHECK(gives_declared(node, node.regions[b]));
    for (const Graph& body : node.regions) TOSAIC_CHECK(takes_given(node, body));
    const std::size_t before = loop ? 0 : 1, fixed = loop ? operands(node, 0).size() : 1;
    if ((loop && fixed != node.outputs.size()) || !decides(node)) return keep(std::move(node));
    for (std::size_t i = node.inputs.size(); i-- > fixed;) {
      const Value& operand = graph_[node.inputs[i]];
      const Node* made = operand.is_constant() ? nullptr : dequantised(node.inputs[i]);
      if (!operand.is_constant() && !made) continue;
      for (Graph& body : node.regions) {
        const ValueId v = body.inputs[i - before];
        if (made)
          make_inside(body, *made, v);
        else
          body[v].constant = operand.constant;
        body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(i - before));
      }
      node.inputs.erase(node.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    set_mark(node, mark::operands, {count(fixed), count(node.inputs.size() - fixed)});
    set_mark(node, mark::kept, std::move(why));
    return keep(std::move(node));
  }

  // The node that makes reals of constant quantised values (PT2E's weights).
  const Node* dequantised(ValueId v) const {
    const auto constant = [&](ValueId operand) { return operand == no_value || graph_[operand].is_constant(); };
    for (const Node& node : graph_.nodes)
      if (node.op.is_conversion() && node.op.base().starts_with("dequantize") && node.outputs[0] == v)
        return std::ranges::all_of(node.inputs, constant) ? &node : nullptr;
    return nullptr;
  }
  void make_inside(Graph& body, Node made, ValueId result) const {
    for (ValueId& v : made.inputs)
      if (v != no_value) v = body.add_value(graph_[v].name + ".given", graph_[v].type, graph_[v].constant);
    made.outputs = {result};
    body.nodes.insert(body.nodes.begin(), std::move(made));
    make_names_unique(body);
  }

  // By one boolean.
  bool decides(const Node& node) const {
    if (node.op == higher_order::op::cond) return graph_[node.inputs[0]].type.dtype == DType::boolean;
    const Graph& condition = node.regions[0];
    if (condition.outputs.size() != 1) return false;
    const TensorType& type = condition[condition.outputs[0]].type;
    return type.dtype == DType::boolean && type.shape.is_static() && type.shape.elements() == 1;
  }

  Status takes_given(const Node& node, const Graph& body) const {
    const std::size_t before = node.inputs.size() - body.inputs.size();
    for (std::size_t i = 0; i < body.inputs.size(); ++i)
      if (body[body.inputs[i]].type != graph_[node.inputs[before + i]].type)
        return differ(node, fmt::format("the inputs of the subgraph '{}' and the operands of the call", body.name));
    return {};
  }

  Status gives_declared(const Node& node, const Graph& body) const {
    bool same = body.outputs.size() == node.outputs.size();
    for (std::size_t i = 0; same && i < body.outputs.size(); ++i)
      same = body[body.outputs[i]].type == graph_[node.outputs[i]].type;
    return same ? Status()
                : differ(node, fmt::format("the results of the subgraph '{}' and those that the program declares",
                                           body.name));
  }

  Status give(const Node& node, const Operands& results) {
    TOSAIC_CHECK(same_types(node.outputs, results, node, "the results, and those that the program declares,"));
    for (std::size_t i = 0; i < results.size(); ++i) replaced_[node.outputs[i]] = results[i];
    return {};
  }

  Graph& graph_;
  Composer c_;
  std::map<ValueId, ValueId> replaced_;
  std::size_t names_ = 0;
};

}  // namespace

void name_bodies_apart(Graph& graph, bool is_body) {
  std::map<std::string, int> taken;
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) {
      const int times = taken[body.name]++;
      if (times > 0) body.name += fmt::format("_{}", times);
      if (is_body) body.name = graph.name + "." + body.name;
      std::map<std::string, std::string> names;
      for (Value& value : body.values) {
        std::string apart = body.name + "." + value.name;
        names.emplace(std::exchange(value.name, apart), apart);
      }
      for (Node& inner : body.nodes)
        for (const auto& [name, attr] : Attrs(inner.attrs)) inner.attrs.set(name, renamed(attr, names));
    }
}

Result<bool> inline_bodies(Graph& graph) {
  const bool any = std::ranges::any_of(graph.nodes, [](const Node& n) { return !n.regions.empty(); });
  if (!any) return false;
  TOSAIC_CHECK(unless_refused([&] { return Inliner(graph).run(); }));
  make_names_unique(graph);
  drop_dead(graph);
  return true;
}

}  // namespace tosaic
