// SPDX-License-Identifier: Apache-2.0
// The plan for those who quantise the program themselves (PT2E): with each call its operands and results, and of the
// calls that stand for composites everything that rebuilds them as PyTorch's operators.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/diagnostic.h"
#include "ir/text.h"
#include "ops/op.h"
#include "quantise/plan.h"
#include "quantise/quantise_weight.h"
#include "quantise/scaled_values.h"

namespace tosaic {
namespace {

template <class List, class F>
std::string json_list(const List& list, const F& text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ", ") + text(item);
  return "[" + out + "]";
}

// Infinities as Python's json reads them.
std::string number(double value) {
  if (value != value) return "NaN";
  if (value - value != 0) return value > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

// Null: only known when the program runs.
struct AttrText {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(std::int64_t x) const { return fmt::format("{}", x); }
  std::string operator()(double x) const { return number(x); }
  std::string operator()(const std::string& x) const { return json_quote(x); }
  std::string operator()(DType x) const { return fmt::format("{{\"dtype\": \"{}\"}}", name_of(x)); }
  std::string operator()(const SymbolicArgument&) const { return ""; }
  std::string operator()(const std::vector<SymbolicArgument>&) const { return ""; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return json_list(list, [this](const T& item) { return (*this)(item); });
  }
};

// Empty where one of them is symbolic.
std::string attributes(const Attrs& attrs) {
  std::string out;
  for (const auto& [name, value] : attrs) {
    const std::string text = std::visit(AttrText(), value);
    if (text.empty()) return "";
    out += (out.empty() ? "" : ", ") + json_quote(name) + ": " + text;
  }
  return "{" + out + "}";
}

class Annotation {
 public:
  Annotation(const QuantisationPlan& plan, const Expanded& program, const Graph& normal, const Graph& exported)
      : plan_(plan),
        graph_(program.graph),
        inner_(program.inner),
        certain_(program.certain),
        clamped_(program.graph.values.size()) {
    for (const Node& node : graph_.nodes)
      if (!node.inputs.empty() && node.inputs[0] != no_value && plan.hidden[node.inputs[0]])
        clamped_[node.inputs[0]] = clamps(graph_, node);
    for (const Node& node : normal.nodes) whole_.insert(key(node));
    for (const ScaledGroup& scaled : scaled_groups(program.graph, plan)) scaled_.emplace(scaled.group, scaled);
    for (ValueId v = 0; v < exported.values.size(); ++v)
      if (exported[v].is_constant()) exported_.try_emplace(exported[v].constant.data(), exported[v].name);
  }

  std::string text() {
    for (ValueId v : graph_.inputs) tell(v, false);
    std::size_t n = 0;
    const std::string calls = json_list(graph_.nodes, [&](const Node& node) { return "\n    " + call(node, n++); });
    for (ValueId v : graph_.outputs) tell(v, false);
    return fmt::format("\"calls\": {},\n  \"values\": [{}]", calls, values_);
  }

 private:
  using Key = std::tuple<std::string_view, std::vector<ValueId>, std::vector<ValueId>>;
  static Key key(const Node& node) { return {node.op.name(), node.inputs, node.outputs}; }

  std::string call(const Node& node, std::size_t n) {
    const bool is_decomposed = !whole_.contains(key(node));
    const auto ids = [&](const std::vector<ValueId>& list) {
      return json_list(list, [&](ValueId v) {
        if (v == no_value) return std::string("null");
        tell(v, is_decomposed);
        return fmt::format("{}", v);
      });
    };
    std::string out =
        fmt::format("{{\"op\": {}, \"operands\": {}, \"results\": {}, \"codes\": {}", json_quote(node.op.name()),
                    ids(node.inputs), ids(node.outputs), !plan_.floating(n) && computes_quantised(graph_, node));
    if (node.loc)
      out += fmt::format(", \"exported\": {}",
                         json_list(exported_names(*node.loc), [](std::string_view name) { return json_quote(name); }));
    if (is_decomposed) out += fmt::format(", \"rebuilt_with\": {}", rebuilt_with(node));
    out += weights(n) + reads(n);
    return out + "}";
  }

  static std::string rebuilt_with(const Node& node) {
    const std::string given = node.regions.empty() ? attributes(node.attrs) : "";
    return given.empty() ? "null" : given;
  }

  // A fixed scale where all channels have one that is not the largest weight's: such weights are exact.
  std::string weights(std::size_t n) const {
    std::string list;
    for (const PlannedWeight& weight : plan_.weights) {
      if (weight.node != n) continue;
      const ValueId w = graph_.nodes[n].inputs[weight.operand];
      list += fmt::format("{}\"{}\": {{\"axis\": {}, \"matrix\": {}", list.empty() ? "" : ", ", weight.operand,
                          weight.axis, weight.matrix);
      if (!weight.matrix && !exported_.contains(graph_[w].constant.data())) {
        const Tensor quantised_value =
            quantise_weight({graph_[w].type, graph_[w].constant}, weight.axis, weight.four_bits);
        const std::vector<double>& scales = quantised_value.type.scales->scale;
        if (std::all_of(scales.begin(), scales.end(), [&](double s) { return s == scales[0]; }))
          list += fmt::format(", \"scale\": {}", number(scales[0]));
      }
      list += "}";
    }
    return list.empty() ? "" : fmt::format(", \"weights\": {{{}}}", list);
  }

  std::string reads(std::size_t n) const {
    std::string list;
    for (const WidthChange& change : plan_.width_changes)
      if (change.node == n)
        list += fmt::format("{}\"{}\": \"{}\"", list.empty() ? "" : ", ", change.operand, change.wide ? "i16" : "i8");
    return list.empty() ? "" : fmt::format(", \"reads\": {{{}}}", list);
  }

  // Constants with their content where a call is rebuilt of them: those of the program by name.
  void tell(ValueId v, bool with_content) {
    const Value& value = graph_[v];
    if (value.is_constant() && !with_content) return;
    if (!told_.insert(v).second) return;
    const bool floats = value.type.dtype == DType::f32 && !value.type.quantised();
    values_ += fmt::format("{}\n    {{\"id\": {}, \"name\": {}, \"dtype\": \"{}\"", values_.empty() ? "" : ",", v,
                           json_quote(value.name), name_of(value.type.dtype));
    if (inner_[v]) values_ += ", \"inner\": true";
    if (value.is_constant()) {
      values_ += fmt::format(", \"shape\": {}", AttrText()(value.type.shape.sizes()));
      if (auto it = exported_.find(value.constant.data()); it != exported_.end())
        values_ += fmt::format(", \"like\": {}", json_quote(it->second));
      else
        values_ += fmt::format(", \"content\": \"{:02x}\"", fmt::join(content(value.constant), ""));
    } else if (floats && plan_.quantised[v]) {
      values_ += fmt::format(", \"codes\": \"{}\", \"group\": {}, \"held\": {}", plan_.wide[v] ? "i16" : "i8",
                             plan_.group[v], clamped_[v] != 0);
      if (const auto it = scaled_.find(plan_.group[v]); it != scaled_.end())
        values_ += fmt::format(", \"scaled\": [{}, {}]", it->second.of, number(it->second.by));
      if (const auto it = certain_.find(v); it != certain_.end()) {
        const CertainRange& range = it->second;
        values_ += fmt::format(", \"certain\": [{}, {}, {}]", range.lowest, range.highest,
                               std::isinf(range.most) ? "null" : fmt::format("{}", range.most));
      }
    }
    values_ += "}";
  }

  static std::vector<unsigned> content(const Bytes& bytes) {
    std::vector<unsigned> out;
    for (std::size_t i = 0; i < bytes.size(); ++i) out.push_back(std::to_integer<unsigned>(bytes.data()[i]));
    return out;
  }

  const QuantisationPlan& plan_;
  const Graph& graph_;
  const std::vector<char>& inner_;
  const CertainRanges& certain_;
  std::set<Key> whole_;                               // calls as they stood before composites were decomposed
  std::map<const std::byte*, std::string> exported_;  // constants of the program by where their content lies
  std::map<ValueId, ScaledGroup> scaled_;             // by group
  std::vector<char> clamped_;                         // by a reader: PT2E's patterns are that, and no slices
  std::set<ValueId> told_;
  std::string values_;
};

}  // namespace

std::string print_annotation(const QuantisationPlan& plan, const Expanded& program, const Graph& normal,
                             const Graph& exported) {
  return Annotation(plan, program, normal, exported).text();
}

}  // namespace tosaic
