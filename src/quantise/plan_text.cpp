// SPDX-License-Identifier: Apache-2.0
// The plan as text and back; plan.h shows the form.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "ir/text.h"
#include "ops/op.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

// What the text calls the graph's values and calls. Pieces of composites may share a name: then it is numbered.
class Names {
 public:
  explicit Names(const Graph& graph) {
    std::map<std::string_view, int> seen;
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      const std::string& name = graph[v].name;
      const int count = ++seen[name];
      const std::string numbered = count == 1 ? name : fmt::format("{}~{}", name, count);
      names_.push_back("%" + (text::is_plain_name(name) && count == 1 ? name : text::quoted(numbered)));
    }
  }
  const std::string& of(ValueId v) const { return names_[v]; }
  std::string call(const Node& node) const {
    const bool named = !node.outputs.empty() && node.outputs[0] != no_value;
    return named ? fmt::format("{} {}", node.op, of(node.outputs[0])) : node.op;
  }

 private:
  std::vector<std::string> names_;
};

bool is_float_tensor(const Value& v) { return v.type.dtype == DType::f32 && !v.type.quantised(); }

std::string_view kind_text(bool wide) { return wide ? "i16 symmetric" : "i8 affine"; }

std::string weight_text(const Graph& graph, const Names& names, const QuantisationPlan& plan,
                        const PlannedWeight& weight) {
  const Node& node = graph.nodes[weight.node];
  const ValueId x = node.inputs[1 - weight.operand];
  const bool wide = weight.matrix && x != no_value && plan.wide[x];
  const std::string scales = weight.axis < 0 ? "" : fmt::format(" per dim {}", weight.axis);
  return fmt::format("{} {} symmetric{} in {}\n", names.of(node.inputs[weight.operand]), wide ? "i16" : "i8", scales,
                     names.call(node));
}

// Reads one line after another, word by word.
class Reader {
 public:
  Reader(std::string_view text, const Expanded& program) : text_(text), program_(program), names_(program.graph) {
    const Graph& graph = program.graph;
    const std::size_t n = graph.values.size();
    plan_.coded.assign(n, 0);
    plan_.wide.assign(n, 0);
    plan_.may_widen.assign(n, 0);
    plan_.hidden.assign(n, 0);
    for (ValueId v = 0; v < n; ++v) {
      plan_.group.push_back(v);
      values_.emplace(names_.of(v), v);
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) calls_.emplace(names_.call(graph.nodes[i]), i);
    told_.assign(n, 0);
  }

  Result<QuantisationPlan> read() {
    std::istringstream lines{std::string(text_)};
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (line.empty() || line[0] == '#') continue;
      TOSAIC_CHECK(line[0] == '%' ? tensor(line) : call(line));
    }
    for (const Node& node : program_.graph.nodes)
      for (ValueId v : node.outputs)
        if (v != no_value && is_float_tensor(program_.graph[v]) && !told_[v])
          return wrong("plan.incomplete", fmt::format("the plan says nothing of {}", names_.of(v)));
    return std::move(plan_);
  }

 private:
  Diagnostic wrong(std::string code, std::string what) const {
    return error(std::move(code), std::move(what))
        .at({"plan", line_, ""})
        .hint("a plan is read for the program that it was printed from, with the same options");
  }

  // The next word; a quoted name is one.
  static std::string word(std::string_view& line) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    std::size_t end = 0;
    bool quoted = false;
    for (; end < line.size() && (quoted || line[end] != ' '); ++end) {
      if (line[end] == '\\' && quoted)
        ++end;
      else if (line[end] == '"')
        quoted = !quoted;
    }
    end = std::min(end, line.size());
    std::string out(line.substr(0, end));
    line.remove_prefix(end);
    return out;
  }

  Result<ValueId> value(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) return wrong("plan.unknown-tensor", fmt::format("the program has no tensor {}", name));
    return it->second;
  }

  // "aten.conv2d.default %conv accumulate": the rule is the operator's, which a plan does not change.
  Status call(std::string_view line) const {
    std::string name = word(line), next = word(line);
    if (next.starts_with('%')) name += " " + std::exchange(next, word(line));
    const auto it = calls_.find(name);
    if (it == calls_.end()) return wrong("plan.not-this-program", fmt::format("the program has no call {}", name));
    const FoundOp found = find_aten(program_.graph.nodes[it->second].op);
    const std::string_view rule = found.op ? name_of(found.rule) : "unknown";
    if (next != rule)
      return wrong("plan.not-this-program", fmt::format("the rule of {} is {}, not {}", name, rule, next));
    return {};
  }

  Status tensor(std::string_view line) {
    TOSAIC_TRY(const ValueId v, value(word(line)));
    const std::string type = word(line), kind = type == "float" ? "" : word(line);
    if (type == "float") {
      told_[v] = 1;
    } else if (kind == "symmetric" && program_.graph[v].is_constant() && line.find(" in ") != line.npos) {
      return weight(v, line);
    } else if ((type == "i8" && kind == "affine") || (type == "i16" && kind == "symmetric")) {
      told_[v] = 1;
      if (!program_.graph[v].is_constant()) plan_.coded[v] = 1;
      plan_.wide[v] = type == "i16";
      return details(v, line);
    } else {
      return wrong("plan.syntax",
                   fmt::format("'{} {}' is none of: float, i8 affine, i16 symmetric, i8 symmetric", type, kind));
    }
    return {};
  }

  Status details(ValueId v, std::string_view line) {
    for (std::string next = word(line); !next.empty(); next = word(line)) {
      if (next == "or-i16") {
        plan_.may_widen[v] = 1;
      } else if (next == "held") {
        plan_.hidden[v] = 1;
      } else if (next == "as") {
        TOSAIC_TRY(const ValueId like, value(word(line)));
        if (program_.graph[v].is_constant()) {
          plan_.chosen_from.emplace_back(v, like);
        } else {
          plan_.group[v] = plan_.group[like];
          if (plan_.wide[v] != plan_.wide[like])
            return wrong("plan.syntax", fmt::format("{} shares the scale of a tensor of other width", names_.of(v)));
        }
      } else {
        return wrong("plan.syntax", fmt::format("'{}' is none of: as, held, or-i16", next));
      }
    }
    return {};
  }

  // "per dim 0 in aten.conv2d.default %conv", behind the weight's name and type.
  Status weight(ValueId w, std::string_view line) {
    PlannedWeight planned{0, 0, -1, false};
    std::string next = word(line);
    if (next == "per") {
      word(line);
      planned.axis = std::atoi(word(line).c_str());
      next = word(line);
    }
    std::string call = word(line);
    if (const std::string result = word(line); !result.empty()) call += " " + result;
    const auto it = calls_.find(call);
    if (next != "in" || it == calls_.end())
      return wrong("plan.not-this-program", fmt::format("the program has no call {}", call));
    const Node& node = program_.graph.nodes[it->second];
    const auto at = std::find(node.inputs.rbegin(), node.inputs.rend(), w);
    if (at == node.inputs.rend()) return wrong("plan.not-this-program", fmt::format("{} does not take it", call));
    planned.node = it->second;
    planned.operand = static_cast<std::size_t>(node.inputs.rend() - at) - 1;
    if (planned.operand > 1 || !find_aten(node.op).op || planned.axis >= program_.graph[w].type.rank())
      return wrong("plan.syntax", "a weight is one of the first two operands, and has the dim of its scales");
    planned.matrix = planned.operand != 1 || !find_aten(node.op).schema->argument("weight");
    plan_.weights.push_back(planned);
    return {};
  }

  std::string_view text_;
  const Expanded& program_;
  const Names names_;
  QuantisationPlan plan_;
  std::map<std::string, ValueId> values_;
  std::map<std::string, std::size_t> calls_;
  std::vector<char> told_;
  int line_ = 0;
};

}  // namespace

std::string print(const QuantisationPlan& plan, const Graph& graph) {
  const Names names(graph);
  std::string out;
  std::vector<char> said(graph.values.size(), 0);
  std::map<ValueId, ValueId> first;  // of each group
  const auto tensor = [&](ValueId v) {
    if (v == no_value || said[v] || graph[v].is_constant() || !is_float_tensor(graph[v])) return;
    said[v] = 1;
    out += names.of(v) + " ";
    if (!plan.coded[v]) return void(out += "float\n");
    out += kind_text(plan.wide[v]);
    if (!plan.wide[v] && plan.may_widen[plan.group[v]]) out += " or-i16";
    if (plan.hidden[v]) out += " held";
    if (auto [it, fresh] = first.try_emplace(plan.group[v], v); !fresh) out += " as " + names.of(it->second);
    out += "\n";
  };
  for (ValueId v : graph.inputs) tensor(v);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const FoundOp found = find_aten(node.op);
    out += fmt::format("{} {}\n", names.call(node), found.op ? name_of(found.rule) : "unknown");
    for (ValueId v : node.inputs) tensor(v);
    for (ValueId v : node.outputs) tensor(v);
    for (const PlannedWeight& weight : plan.weights)
      if (weight.node == n) out += weight_text(graph, names, plan, weight);
  }
  for (auto [table, result] : plan.chosen_from)
    out += fmt::format("{} {} as {}\n", names.of(table), kind_text(plan.wide[result]), names.of(result));
  return out;
}

Result<QuantisationPlan> parse_plan(std::string_view text, const Expanded& program) {
  return Reader(text, program).read();
}

}  // namespace tosaic
