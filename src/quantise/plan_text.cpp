// SPDX-License-Identifier: Apache-2.0
// The plan as text and back; plan.h shows the form.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "base/diagnostic.h"
#include "ir/text.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

// What the text calls the graph's values and calls. Nodes of decomposed composites may share a name: then it is
// numbered.
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
    return named ? fmt::format("{} {}", node.op, of(node.outputs[0])) : node.op.text();
  }

 private:
  std::vector<std::string> names_;
};

// Has it 16 bits, as what it is multiplied with?
bool is_wide(const Graph& graph, const QuantisationPlan& plan, const PlannedWeight& weight) {
  const ValueId x = graph.nodes[weight.node].inputs[1 - weight.operand];
  return weight.matrix && x != no_value && plan.wide[x];
}

std::string_view type_text(const Graph& graph, const QuantisationPlan& plan, const PlannedWeight& weight) {
  return is_wide(graph, plan, weight) ? "i16" : weight.four_bits ? "i4" : "i8";
}

bool is_float_tensor(const Value& v) { return v.type.dtype == DType::f32 && !v.type.quantised(); }

std::string_view kind_text(bool wide) { return wide ? "i16 symmetric" : "i8 affine"; }

// 0.1, not 0.10000000149011612, for what is an f32.
std::string bound_text(double x) {
  const auto f32 = static_cast<float>(x);
  return static_cast<double>(f32) == x ? fmt::format("{}", f32) : fmt::format("{}", x);
}
std::string bounds_text(const tosa::Bounds& bounds) {
  if (!std::isfinite(bounds.lowest) && !std::isfinite(bounds.highest)) return "";
  return fmt::format(" in [{}, {}]", bound_text(bounds.lowest), bound_text(bounds.highest));
}

std::string weight_text(const Graph& graph, const Names& names, const QuantisationPlan& plan,
                        const PlannedWeight& weight) {
  const Node& node = graph.nodes[weight.node];
  const std::string scales = weight.axis < 0 ? "" : fmt::format(" per dim {}", weight.axis);
  return fmt::format("{} {} symmetric{} in {}\n", names.of(node.inputs[weight.operand]), type_text(graph, plan, weight),
                     scales, names.call(node));
}

// For people: where a call stands, and which operands it reads as rescaled copies.
std::string remark(const Graph& graph, const Names& names, const QuantisationPlan& plan, std::size_t n) {
  const Node& node = graph.nodes[n];
  std::vector<std::string> parts;
  if (node.loc && !node.loc->module_path.empty()) parts.push_back(node.loc->module_path);
  if (const std::string place = place_text(node.loc); !place.empty()) parts.push_back(place);
  for (const WidthChange& change : plan.width_changes)
    if (change.node == n)
      parts.push_back(fmt::format("reads {} in {} bits", names.of(node.inputs[change.operand]), change.wide ? 16 : 8));
  return parts.empty() ? "" : fmt::format("  # {}", fmt::join(parts, ", "));
}

// Reads one line after another, word by word.
class Reader {
 public:
  Reader(std::string_view text, const Expanded& program, std::string source)
      : text_(text), source_(std::move(source)), program_(program), names_(program.graph) {
    const Graph& graph = program.graph;
    const std::size_t n = graph.values.size();
    plan_.quantised.assign(n, 0);
    plan_.wide.assign(n, 0);
    plan_.may_widen.assign(n, 0);
    plan_.hidden.assign(n, 0);
    for (ValueId v = 0; v < n; ++v) {
      plan_.group.push_back(v);
      values_.emplace(names_.of(v), v);
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) calls_.emplace(names_.call(graph.nodes[i]), i);
    plan_.forms.assign(graph.nodes.size(), Form::unset);
    plan_.bounds = known_bounds(program);
  }

  Result<QuantisationPlan> read() {
    std::istringstream lines{std::string(text_)};
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (const std::size_t comment = line.find("  #"); comment != line.npos) line.resize(comment);
      while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t')) line.pop_back();
      line_text_ = line;
      const std::size_t begin = line.find_first_not_of(' ');
      if (begin == line.npos || line[begin] == '#') continue;
      TOSAIC_CHECK(line[begin] == '%' ? tensor(line) : call(line));
    }
    line_ = 0;
    line_text_ = {};
    TOSAIC_CHECK(complete());
    if (std::all_of(plan_.forms.begin(), plan_.forms.end(), [](Form f) { return f == Form::unset; }))
      plan_.forms.clear();
    return std::move(plan_);
  }

 private:
  Status complete() const {
    const auto nothing = [&](const std::string& name) {
      return wrong("plan.incomplete", fmt::format("the plan does not mention {}", name));
    };
    const auto untold = [&](ValueId v) { return v != no_value && is_float_tensor(program_.graph[v]) && !told_[v]; };
    for (ValueId v : program_.graph.inputs)
      if (untold(v)) return nothing(names_.of(v));
    for (const auto& [name, n] : calls_)
      if (!called_[n] && !program_.graph.nodes[n].outputs.empty()) return nothing(name);
    for (const Node& node : program_.graph.nodes)
      for (ValueId v : node.outputs)
        if (untold(v)) return nothing(names_.of(v));
    for (const PlannedWeight& weight : plan_.weights) {
      const bool wide = is_wide(program_.graph, plan_, weight);
      const Weight& said = weighed_.at({weight.node, weight.operand});
      if (said.wide != wide)
        return wrong("plan.impossible",
                     fmt::format("line {}: {} has {} bits, as what it is multiplied with", said.line,
                                 names_.of(program_.graph.nodes[weight.node].inputs[weight.operand]), wide ? 16 : 8));
    }
    return {};
  }

  // A line that says again what `before`, another line, has said; it is remembered.
  Status once(int& before, const std::string& name) const {
    if (before)
      return wrong("plan.syntax", fmt::format("line {} has spoken of {} already", before, name))
          .hint("keep one of the two lines");
    before = line_;
    return {};
  }

  Diagnostic wrong(std::string code, std::string what) const {
    Diagnostic why = error(std::move(code), std::move(what))
                         .at({source_, line_, std::string(line_text_)})
                         .hint("a plan is read for the program that it was printed from, with the same options");
    // Its title names that program.
    if (text_.starts_with("# ")) why.notes.push_back(fmt::format("it begins: {}", text_.substr(0, text_.find('\n'))));
    return why;
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
  // After it may stand what is decided: float, int8 or int16x8.
  Status call(std::string_view line) {
    std::string name = word(line), next = word(line);
    if (next.starts_with('%')) name += " " + std::exchange(next, word(line));
    const auto it = calls_.find(name);
    if (it == calls_.end()) return wrong("plan.not-this-program", fmt::format("the program has no call {}", name));
    const FoundOp found = find_aten(program_.graph.nodes[it->second].op);
    const std::string_view rule = found.op ? found.rule->name : "unknown";
    if (next != rule)
      return wrong("plan.not-this-program", fmt::format("the rule of {} is {}, not {}", name, rule, next));
    if (name.find(" %") == name.npos)
      called_[it->second] = line_;  // without results, calls of one operator go by one name
    else
      TOSAIC_CHECK(once(called_[it->second], name));
    const std::string form = word(line);
    if (form.empty()) return {};
    const auto decided = form_named(form);
    if (!decided || !word(line).empty()) return unknown_word(line, form, "float, int8, int16x8");
    plan_.forms[it->second] = *decided;
    return {};
  }

  // `rest`: the line behind the word.
  std::size_t column(std::string_view rest, const std::string& word) const {
    const std::size_t end = line_text_.size() - rest.size();
    return end >= word.size() ? end - word.size() + 1 : 1;
  }
  Diagnostic unknown_word(std::string_view rest, const std::string& word, std::string_view known) const {
    return wrong("plan.syntax", fmt::format("column {}: '{}' is none of: {}", column(rest, word), word, known));
  }

  Status tensor(std::string_view line) {
    const std::string name = word(line);
    TOSAIC_TRY(const ValueId v, value(name));
    const std::string type = word(line), kind = type == "float" ? "" : word(line);
    const bool constant = program_.graph[v].is_constant();
    const bool known = type == "i8" || type == "i16";
    if ((known || type == "i4") && kind == "symmetric" && constant && line.find(" in ") != line.npos)
      return weight(v, type, line);
    const bool is_quantised = known && kind == (type == "i8" ? "affine" : "symmetric");
    if (!is_quantised && type != "float")
      return unknown_word(line, kind.empty() ? type : type + " " + kind,
                          "float, i8 affine, i16 symmetric, i8 symmetric and i4 symmetric (of a weight)");
    if (!is_float_tensor(program_.graph[v]) || (constant && (!is_quantised || line.find(" as ") == line.npos)))
      return wrong(
          "plan.not-this-program",
          constant ? fmt::format("{} is a constant: it is quantised 'as' a tensor or 'in' a call", name)
                   : fmt::format("{} is {}: there is nothing to quantise", name, to_string(program_.graph[v].type)));
    if (!constant) TOSAIC_CHECK(once(told_[v], name));  // a table may serve several calls
    if (!is_quantised) return ends(line);
    if (!constant) plan_.quantised[v] = 1;
    plan_.wide[v] = type == "i16";
    return details(v, line);
  }

  // Nothing stands after what was read.
  Status ends(std::string_view line) const {
    const std::string next = word(line);
    if (next.empty()) return {};
    return wrong("plan.syntax",
                 fmt::format("column {}: '{}' is too much: the line ends before it", column(line, next), next));
  }

  Status details(ValueId v, std::string_view line) {
    for (std::string next = word(line); !next.empty(); next = word(line)) {
      if (next == "or-i16") {
        plan_.may_widen[v] = 1;
      } else if (next == "held") {
        plan_.hidden[v] = 1;
      } else if (next == "in") {
        TOSAIC_CHECK(bounds(v, line));
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
        return unknown_word(line, next, "as, held, in, or-i16");
      }
    }
    return {};
  }

  // "[0, 1]": what is known of the tensor, which a plan does not change.
  Status bounds(ValueId v, std::string_view& line) {
    std::string text = word(line);
    text += " " + word(line);
    const std::string ours = bounds_text(plan_.bounds[v]);
    if (" in " + text == ours) return {};
    return wrong("plan.not-this-program", ours.empty() ? fmt::format("nothing bounds {}", names_.of(v))
                                                       : fmt::format("{} lies{}, not in {}", names_.of(v), ours, text));
  }

  // "per dim 0 in aten.conv2d.default %conv", behind the weight's name and type.
  Status weight(ValueId w, std::string_view type, std::string_view line) {
    PlannedWeight planned{0, 0, -1, false, type == "i4"};
    std::string next = word(line);
    if (next == "per") {
      const std::string dim = word(line), number = word(line);
      const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), planned.axis);
      if (dim != "dim" || failed != std::errc() || end != number.data() + number.size() || planned.axis < 0)
        return wrong("plan.syntax",
                     fmt::format("column {}: '{} {}' is no dim: 'per dim 0' has a scale per index of dim 0",
                                 column(line, dim + " " + number), dim, number));
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
    TOSAIC_CHECK(ends(line));
    planned.node = it->second;
    planned.operand = static_cast<std::size_t>(node.inputs.rend() - at) - 1;
    if (planned.operand > 1 || node.inputs.size() < 2 || !find_aten(node.op).op ||
        planned.axis >= program_.graph[w].type.rank())
      return wrong("plan.syntax", "a weight is one of the first two operands, and has the dim of its scales");
    planned.matrix = planned.operand != 1 || !find_aten(node.op).schema->argument("weight");
    if (planned.matrix && planned.four_bits)
      return wrong("plan.syntax", fmt::format("{} has the bits of what it is multiplied with, 8 or 16", names_.of(w)));
    Weight& said = weighed_[{planned.node, planned.operand}];
    TOSAIC_CHECK(once(said.line, names_.of(w)));
    said.wide = type == "i16";
    plan_.weights.push_back(planned);
    return {};
  }

  const std::string_view text_;
  const std::string source_;
  std::string_view line_text_;
  const Expanded& program_;
  const Names names_;
  QuantisationPlan plan_;
  std::map<std::string, ValueId> values_;
  std::map<std::string, std::size_t> calls_;
  struct Weight {
    int line = 0;
    bool wide = false;
  };
  // The lines that have spoken of each value, call, and operand of a call; 0: none has.
  std::vector<int> told_ = std::vector<int>(program_.graph.values.size(), 0);
  std::vector<int> called_ = std::vector<int>(program_.graph.nodes.size(), 0);
  std::map<std::pair<std::size_t, std::size_t>, Weight> weighed_;
  int line_ = 0;
};

}  // namespace

std::string name_in_plan(const Graph& graph, ValueId v) { return Names(graph).of(v); }
std::string name_in_plan(const Graph& graph, const Node& node) { return Names(graph).call(node); }

std::string print(const QuantisationPlan& plan, const Graph& graph, bool with_places) {
  const Names names(graph);
  std::string out;
  std::vector<char> said(graph.values.size(), 0);
  std::map<ValueId, ValueId> first;  // of each group
  const auto tensor = [&](ValueId v) {
    if (v == no_value || said[v] || graph[v].is_constant() || !is_float_tensor(graph[v])) return;
    said[v] = 1;
    out += names.of(v) + " ";
    if (!plan.quantised[v]) return void(out += "float\n");
    out += kind_text(plan.wide[v]);
    if (!plan.wide[v] && plan.may_widen[plan.group[v]]) out += " or-i16";
    if (plan.hidden[v]) out += " held";
    out += bounds_text(plan.bounds[v]);
    if (auto [it, fresh] = first.try_emplace(plan.group[v], v); !fresh) out += " as " + names.of(it->second);
    out += "\n";
  };
  for (ValueId v : graph.inputs) tensor(v);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const FoundOp found = find_aten(node.op);
    out += fmt::format("{} {}", names.call(node), found.op ? found.rule->name : "unknown");
    if (n < plan.forms.size() && plan.forms[n] != Form::unset) out += fmt::format(" {}", name_of(plan.forms[n]));
    if (with_places) out += remark(graph, names, plan, n);
    out += "\n";
    for (ValueId v : node.inputs) tensor(v);
    for (ValueId v : node.outputs) tensor(v);
    for (const PlannedWeight& weight : plan.weights)
      if (weight.node == n) out += weight_text(graph, names, plan, weight);
  }
  for (auto [table, result] : plan.chosen_from)
    out += fmt::format("{} {} as {}\n", names.of(table), kind_text(plan.wide[result]), names.of(result));
  return out;
}

std::string print_json(const QuantisationPlan& plan, const Graph& graph) {
  const Names names(graph);
  std::vector<char> said(graph.values.size(), 0);
  std::string calls, tensors, weights;
  const auto next = [](std::string& list) { list += list.empty() ? "\n    " : ",\n    "; };
  const auto tensor = [&](ValueId v) {
    if (v == no_value || said[v] || graph[v].is_constant() || !is_float_tensor(graph[v])) return;
    said[v] = 1;
    next(tensors);
    tensors += fmt::format("{{\"name\": {}, \"type\": \"{}\"", json_quote(graph[v].name),
                           !plan.quantised[v] ? "f32"
                           : plan.wide[v]     ? "i16"
                                              : "i8");
    if (plan.quantised[v])
      tensors += fmt::format(", \"symmetric\": {}, \"may_widen\": {}, \"held\": {}, \"scale_of\": {}",
                             plan.wide[v] != 0, !plan.wide[v] && plan.may_widen[plan.group[v]], plan.hidden[v] != 0,
                             json_quote(graph[plan.group[v]].name));
    const auto number = [](double x) { return std::isfinite(x) ? bound_text(x) : std::string("null"); };
    tensors += fmt::format(", \"lowest\": {}, \"highest\": {}}}", number(plan.bounds[v].lowest),
                           number(plan.bounds[v].highest));
  };
  for (ValueId v : graph.inputs) tensor(v);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const FoundOp found = find_aten(node.op);
    next(calls);
    calls += fmt::format(
        "{{\"op\": {}, \"result\": {}, \"rule\": \"{}\", \"decided\": \"{}\", \"exported\": [",
        json_quote(node.op.name()),
        json_quote(node.outputs.empty() || node.outputs[0] == no_value ? "" : graph[node.outputs[0]].name),
        found.op ? found.rule->name : "unknown", name_of(n < plan.forms.size() ? plan.forms[n] : Form::unset));
    if (node.loc)
      for (std::size_t i = 0; std::string_view name : exported_names(*node.loc))
        calls += fmt::format("{}{}", i++ ? ", " : "", json_quote(name));
    calls += fmt::format("], \"module\": {}, \"place\": {}}}", json_quote(node.loc ? node.loc->module_path : ""),
                         json_quote(place_text(node.loc)));
    for (ValueId v : node.inputs) tensor(v);
    for (ValueId v : node.outputs) tensor(v);
  }
  for (const PlannedWeight& weight : plan.weights) {
    const Node& node = graph.nodes[weight.node];
    next(weights);
    weights += fmt::format("{{\"name\": {}, \"type\": \"{}\", \"axis\": {}, \"of\": {}}}",
                           json_quote(graph[node.inputs[weight.operand]].name), type_text(graph, plan, weight),
                           weight.axis, json_quote(graph[node.outputs[0]].name));
  }
  return fmt::format("\"calls\": [{}],\n  \"tensors\": [{}],\n  \"weights\": [{}]", calls, tensors, weights);
}

Result<QuantisationPlan> parse_plan(std::string_view text, const Expanded& program, const std::string& source) {
  return Reader(text, program, source).read();
}

}  // namespace tosaic
