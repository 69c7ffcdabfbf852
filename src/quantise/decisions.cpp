// SPDX-License-Identifier: Apache-2.0
// From what a request says to what it means for the calls and tensors of one program, and whether a target can do it.
#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "lower/lower.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/plan.h"
#include "quantise/successors.h"

namespace tosaic {
namespace {

Decisions nothing_decided(const Graph& graph) {
  return {std::vector<Form>(graph.nodes.size(), Form::unset),
          std::vector<Form>(graph.values.size(), Form::unset),
          std::vector<const Override*>(graph.nodes.size(), nullptr),
          {}};
}

void by_overrides(const Graph& graph, const Deciding& deciding, Decisions& decisions) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Override* last = deciding_of(graph.nodes[n], deciding);
    if (!last) continue;
    decisions.of_node[n] = last->form;
    decisions.by[n] = last;
  }
}

std::string first_word(std::string_view line) { return std::string(line.substr(0, line.find(' '))); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The line of a plan that begins as this one of ours does.
Place line_like(const PlanRequest& request, std::string_view ours) {
  const bool tensor = ours.starts_with('%');
  const std::string begin =
      tensor ? first_word(ours) + " " : std::string(ours.substr(0, ours.find(' ', ours.find('%')))) + " ";
  const auto lines = lines_of(request.whole);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].starts_with(begin)) return {request.source, static_cast<std::int64_t>(i) + 1, lines[i]};
  return {request.source, 0, ""};
}

// What the lines say has to be what follows from them. Of tensors and calls there is one line each; a weight may have
// one too many or lack it.
Status as_written(const std::string& written, const std::string& follows, const PlanRequest& request) {
  const auto theirs = lines_of(written), ours = lines_of(follows);
  const auto impossible = [](std::string what) {
    return error("plan.impossible", std::move(what))
        .hint(
            "a call is made float, int8 or int16x8 by that word at the end of its line; a tensor is i8 affine or i16 "
            "symmetric; who shares a scale follows from the operators");
  };
  const auto has = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  const auto [our, their] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (our == ours.end() && their == theirs.end()) return {};
  if (their == theirs.end() || (our != ours.end() && has(ours, *their)))
    return impossible("a line is missing").at({request.source, 0, ""}).note(fmt::format("it would be: {}", *our));
  const bool extra = our == ours.end() || has(theirs, *our);
  return impossible("the line does not follow from the rest of the plan")
      .at(line_like(request, *their))
      .note(extra ? "the plan is whole without it" : fmt::format("it would be: {}", *our));
}

// Where a whole plan differs from the usual one.
Result<Decisions> by_whole_plan(const Expanded& program, const PlanRequest& request, const QuantiseOptions& options) {
  TOSAIC_TRY(const QuantisationPlan written, parse_plan(request.whole, program, request.source));
  Decisions decisions = nothing_decided(program.graph);
  if (!written.forms.empty()) decisions.of_node = written.forms;
  const QuantisationPlan usual = plan_quantisation(program, options, {}, decisions);
  for (ValueId v = 0; v < program.graph.values.size(); ++v) {
    if (!written.quantised[v] || !usual.quantised[v]) continue;
    const bool narrowed = !written.wide[v] && usual.may_widen[usual.group[v]] && !written.may_widen[v];
    if (written.wide[v] != usual.wide[v] || narrowed)
      decisions.of_value[v] = written.wide[v] ? Form::int16x8 : Form::int8;
  }
  for (const PlannedWeight& weight : written.weights)
    decisions.weights[{program.graph.nodes[weight.node].outputs[0], weight.operand}] = {weight.axis, weight.four_bits};
  const QuantisationPlan follows = plan_quantisation(program, options, {}, decisions);
  TOSAIC_CHECK(as_written(print(written, program.graph), print(follows, program.graph), request));
  return decisions;
}

// A typed program, and which of its calls the target takes. Calls are known by their first result.
class Tried {
 public:
  Tried(const Expanded& program, const QuantisationPlan& plan, const tosa::Spec& spec)
      : graph_(on_nominal_scales(program.graph, plan)), spec_(spec), used_(used_values(graph_)) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!graph_.nodes[n].outputs.empty()) nodes_[graph_.nodes[n].outputs[0]] = n;
  }
  Status takes(ValueId result) const {
    const auto it = nodes_.find(result);
    if (it == nodes_.end()) return {};
    return can_lower(graph_, graph_.nodes[it->second], used_, spec_);
  }

 private:
  const Graph graph_;
  const tosa::Spec& spec_;
  const std::vector<char> used_;
  std::map<ValueId, std::size_t> nodes_;
};

// Does the call compute with other widths than it usually does?
bool differs(const Node& node, std::size_t n, const QuantisationPlan& plan, const QuantisationPlan& usual) {
  const auto changed = [&](ValueId v) { return v != no_value && plan.quantised[v] && plan.wide[v] != usual.wide[v]; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), changed) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), changed) ||
         std::any_of(plan.width_changes.begin(), plan.width_changes.end(),
                     [&](const WidthChange& b) { return b.node == n; });
}

// Whose decision it was: the call's own, or that of one which shares a tensor or a scale with it.
const Override* decider(const Graph& graph, std::size_t n, const Decisions& decisions, const QuantisationPlan& plan) {
  if (decisions.by[n]) return decisions.by[n];
  std::set<ValueId> scales;
  const auto each = [&](const Node& node, const auto& f) {
    for (ValueId v : node.inputs)
      if (v != no_value) f(plan.group[v]);
    for (ValueId v : node.outputs)
      if (v != no_value) f(plan.group[v]);
  };
  each(graph.nodes[n], [&](ValueId g) { scales.insert(g); });
  for (std::size_t m = 0; m < graph.nodes.size(); ++m) {
    bool shares = false;
    if (decisions.by[m]) each(graph.nodes[m], [&](ValueId g) { shares |= scales.contains(g); });
    if (shares) return decisions.by[m];
  }
  return nullptr;
}

Diagnostic refused(const Graph& graph, std::size_t n, const Override* given, const Diagnostic& why) {
  const Node& node = graph.nodes[n];
  std::string name = graph[node.outputs[0]].name;
  if (node.loc)
    if (const auto exported = exported_names(*node.loc); !exported.empty()) name = exported[0];
  Diagnostic d = error("plan.refused",
                       given ? fmt::format("the target has no form of {} ('{}') for '{}'", node.op, name, given->text())
                             : fmt::format("the target has no form of {} ('{}') for this plan", node.op, name));
  if (given) d.place = given->place;
  d.notes.push_back(fmt::format("{}: {}", why.code, why.message));
  d.notes.insert(d.notes.end(), why.notes.begin(), why.notes.end());
  if (node.loc && !place_text(node.loc).empty()) d.notes.push_back(fmt::format("it is at {}", place_text(node.loc)));
  d.help = given && given->form == Form::int16x8
               ? fmt::format("a later line '{}: int8' or '{}: float' leaves it out", name, name)
               : fmt::format("a later line '{}: float' leaves it out", name);
  return d;
}

}  // namespace

Result<StaysWhole> stays_whole(const QuantiseOptions& options) {
  if (options.request.empty()) return StaysWhole();
  TOSAIC_TRY(Deciding by_name, deciding(options.request.overrides, options.exported));
  std::set<std::string, std::less<>> calls;  // "aten.softmax.int %softmax" of a line that goes on with these words
  for (const std::string& line : lines_of(options.request.whole))
    if (const std::size_t end = line.find(" inside float"); end != line.npos) calls.insert(line.substr(0, end));
  return StaysWhole([by_name = std::move(by_name), calls = std::move(calls)](const Graph& graph, const Node& node) {
    if (const Override* given = deciding_of(node, by_name)) return given->form == Form::floating;
    return !node.outputs.empty() && node.outputs[0] != no_value &&
           calls.contains(node.op.text() + " %" + graph[node.outputs[0]].name);
  });
}

Diagnostic already_quantised() {
  return error("plan.already-quantised", "the program was quantised by PT2E and keeps the scales that it carries")
      .hint("export the float program to plan its quantisation here, or set the forms with PT2E's quantizer");
}

Result<Decisions> decide(const Expanded& program, const PlanRequest& request, const QuantiseOptions& options) {
  if (request.empty()) return Decisions{};
  Decisions decisions = nothing_decided(program.graph);
  if (!request.whole.empty()) { TOSAIC_TRY(decisions, by_whole_plan(program, request, options)); }
  TOSAIC_TRY(const Deciding by_name, deciding(request.overrides, options.exported));
  by_overrides(program.graph, by_name, decisions);
  return decisions;
}

CarriedOver carried_over(const Decisions& decisions, const PlanRequest& request, const Graph& before, const Graph& now,
                         ValueId kept) {
  if (!decisions.any()) return {decisions, {}};
  CarriedOver out{nothing_decided(now), {}};
  const Successors found(before, now, kept);
  std::map<std::string, std::size_t, std::less<>> by_name;
  for (std::size_t n = 0; n < before.nodes.size(); ++n)
    if (const Node& node = before.nodes[n]; node.loc && decisions.by[n])
      for (std::string_view name : exported_names(*node.loc)) by_name[std::string(name)] = n;
  for (std::size_t n = 0; n < now.nodes.size(); ++n) {
    const Node& node = now.nodes[n];
    std::optional<std::size_t> same = found.node(n);
    for (std::size_t operand = 0; same && operand < node.inputs.size(); ++operand)
      if (auto it = decisions.weights.find({before.nodes[*same].outputs[0], operand}); it != decisions.weights.end())
        out.decisions.weights[{node.outputs[0], operand}] = it->second;
    if (!same && node.loc)
      for (std::string_view name : exported_names(*node.loc))
        if (auto it = by_name.find(name); it != by_name.end()) same = it->second;
    if (!same) continue;
    out.decisions.of_node[n] = decisions.of_node[*same];
    out.decisions.by[n] = decisions.by[*same];
  }
  for (ValueId v = 0; v < now.values.size(); ++v)
    if (const ValueId was = found.value(v); was != no_value) out.decisions.of_value[v] = decisions.of_value[was];
  for (std::size_t n = 0; n < before.nodes.size(); ++n) {
    if (found.stays(n)) continue;
    const Node& node = before.nodes[n];
    if (decisions.of_node[n] != Form::unset && !decisions.by[n])
      out.lost.push_back(line_like(request, name_in_plan(before, node) + " "));
    for (ValueId v : node.outputs)
      if (v != no_value && decisions.of_value[v] != Form::unset)
        out.lost.push_back(line_like(request, name_in_plan(before, v) + " "));
  }
  return out;
}

std::vector<const Override*> without_effect(const Expanded& program, const PlanRequest& request,
                                            const Decisions& decisions) {
  std::set<const Override*> felt;
  for (std::size_t n = 0; n < program.graph.nodes.size(); ++n) {
    const Rule rule = find_aten(program.graph.nodes[n].op).rule;
    if (const Override* given = decisions.by[n])
      if (given->form == Form::floating || rule->quantises()) felt.insert(given);
  }
  std::vector<const Override*> list;
  for (const Override& given : request.overrides)
    if (!felt.contains(&given) && !given.place.file.empty()) list.push_back(&given);
  return list;
}

Status check_decisions(const Expanded& program, const Decisions& decisions, const QuantiseOptions& options,
                       const tosa::Spec& spec) {
  if (!decisions.any()) return {};
  const Graph& graph = program.graph;
  const QuantisationPlan plan = plan_quantisation(program, options, {}, decisions);
  const QuantisationPlan usual = plan_quantisation(program, options);
  const Tried tried(program, plan, spec);
  std::optional<Tried> before;
  struct Tally {
    std::size_t taken = 0;
    std::optional<std::size_t> first_refused;
    Diagnostic why;
  };
  std::map<const Override*, Tally> tallies;
  std::vector<std::size_t> order(graph.nodes.size());  // those that were named first
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t n) { return decisions.by[n] != nullptr; });
  for (std::size_t n : order) {
    const Node& node = graph.nodes[n];
    if (plan.floating(n) || node.outputs.empty() || node.outputs[0] == no_value || !plan.quantised[node.outputs[0]] ||
        (decisions.of_node[n] == Form::unset && !differs(node, n, plan, usual)))
      continue;
    const Status taken = tried.takes(node.outputs[0]);
    Tally& tally = tallies[decider(graph, n, decisions, plan)];
    tally.taken += taken.ok();
    if (taken.ok()) continue;
    if (!before) before.emplace(program, usual, spec);
    if (before->takes(node.outputs[0]).ok())
      return refused(graph, n, decider(graph, n, decisions, plan), taken.error());
    if (!tally.first_refused) tally.first_refused = n, tally.why = taken.error();
  }
  // What no target form has is no fault of a decision about all of a module, but is one about that alone.
  for (const auto& [given, tally] : tallies)
    if (given && given->form != Form::floating && tally.taken == 0 && tally.first_refused)
      return refused(graph, *tally.first_refused, given, tally.why);
  return {};
}

Result<QuantisationPlan> plan_as_asked(const Expanded& program, const QuantiseOptions& options,
                                       const UnlikeRanges& unlike_ranges) {
  TOSAIC_TRY(const Decisions decisions, decide(program, options.request, options));
  if (options.spec) TOSAIC_CHECK(check_decisions(program, decisions, options, *options.spec));
  return plan_quantisation(program, options, unlike_ranges, decisions);
}

}  // namespace tosaic
