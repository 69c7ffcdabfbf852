// SPDX-License-Identifier: Apache-2.0
#include "pipeline/supports.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/program_operators.h"
#include "ir/states.h"
#include "quantise/coded_bodies.h"
#include "quantise/pieces.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

// The types that `quantise` would give.
Result<Graph> planned(Graph graph, const QuantiseOptions& options) {
  QuantiseOptions inside = options;
  inside.request = {};
  for (Node& node : graph.nodes) {
    if (!node.attrs.find("kept")) continue;
    const bool loop = node.op == higher_order::op::while_loop;  // whose condition stays float
    inside.numbers_stay = loop || options.numbers_stay;
    for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b) {
      TOSAIC_TRY(node.regions[b], planned(std::move(node.regions[b]), inside));
      insert_boundaries(node.regions[b], Io::floats);
    }
  }
  widen_halves(graph);
  const StatesAsTensors states(graph);
  TOSAIC_TRY(Expanded program, expanded(std::move(graph), options));
  Pieces pieces;
  if (options.numbers_stay) keep_numbers(program.graph, pieces.floats);
  TOSAIC_TRY(const QuantisationPlan plan, plan_as_asked(program, options, pieces));
  graph = on_nominal_scales(std::move(program.graph), plan);
  drop_dead(graph);
  states.restore(graph);
  return graph;
}

bool folds_quantisation(const SupportQuestion& question) {
  return question.integer || question.spec.has(tosa::Feature::pro_int);
}

bool takes_loops(const SupportQuestion& question) { return question.spec.has(tosa::Feature::controlflow); }

FormFor form_for(const SupportQuestion& q) {
  const bool codes = q.keeps_codes && !q.integer;
  return {q.spec, q.integer, codes, codes ? q.coded : CodedWeights{}};
}

// What of a question decides about the form of weights, as text.
std::string weight_form(const SupportQuestion& question) {
  const FormFor form = form_for(question);
  return fmt::format("{} {} {} {}", form.keeps_codes, form.coded.bits, form.coded.group, form.coded.dynamic);
}

}  // namespace

Supports::Supports(Graph exported) : Supports(exported, exported_nodes(exported)) {}

Supports::Supports(Graph at_sizes, std::vector<ExportedNode> nodes)
    : exported_(std::move(at_sizes)), nodes_(std::move(nodes)) {
  has_conversions_ = std::any_of(exported_.nodes.begin(), exported_.nodes.end(),
                                 [](const Node& n) { return n.op.name().find("quantize") != std::string_view::npos; });
}

const Result<Graph>& Supports::normalised(const SupportQuestion& question) {
  const bool folds = folds_quantisation(question) || !has_conversions_, loops = takes_loops(question);
  auto& graph =
      normalised_[fmt::format("{} {} {} {}", folds, loops, most_weight_bytes(question), weight_form(question))];
  if (!graph) graph = normal_form(exported_, form_for(question));
  return *graph;
}

std::uint64_t Supports::most_weight_bytes(const SupportQuestion& question) const {
  const std::uint64_t most = question.spec.most_weight_bytes(question.integer);
  const bool some = most > 0 && std::ranges::any_of(exported_.values, [&](const Value& v) {
                      return v.is_constant() && v.constant.size() > most;
                    });
  return some ? most : 0;
}

Result<Graph> Supports::typed(const SupportQuestion& question) {
  TOSAIC_TRY(Graph graph, normalised(question));
  const bool by_pt2e = is_quantised(graph);
  if (!question.integer && !by_pt2e) return graph;
  if (by_pt2e && !question.quantise.request.empty()) return already_quantised();
  QuantiseOptions options = question.quantise;
  options.wide_inside = question.spec.has(tosa::Feature::int16);
  if (!by_pt2e) { TOSAIC_TRY(graph, planned(std::move(graph), options)); }
  insert_boundaries(graph, by_pt2e ? Io::as_written : Io::floats);
  if (codes_cross_bodies(question.spec)) code_control_flow(graph, question.spec);
  return graph;
}

const Supports::Form& Supports::form_of(const SupportQuestion& question) {
  const bool folded = folds_quantisation(question);
  const Kind kind{question.integer,
                  folded,
                  folded && question.spec.has(tosa::Feature::int16),
                  takes_loops(question),
                  !question.integer || question.quantise.per_channel,
                  question.integer ? question.quantise.scheme : Scheme::int8,
                  most_weight_bytes(question),
                  codes_cross_bodies(question.spec) ? question.spec.text() : "",
                  weight_form(question)};
  for (const Form& form : forms_)
    if (form.kind == kind) return form;
  forms_.push_back({kind, typed(question), nullptr});
  if (forms_.back().graph.ok()) forms_.back().placer = std::make_unique<Placer>(*forms_.back().graph, true);
  return forms_.back();
}

// What somebody decides is asked once, for the target that the question is about.
Result<std::vector<Verdict>> Supports::about_decided(const SupportQuestion& question) {
  TOSAIC_TRY(const Graph graph, typed(question));
  TOSAIC_TRY(const Deciding decided, deciding(question.quantise.request.overrides, nodes_));
  auto placements = Placer(graph).place(question.spec);
  say_decided(graph, decided, question.spec, placements);
  return verdicts(nodes_, graph, placements);
}

Result<std::vector<Verdict>> Supports::about(const SupportQuestion& question) {
  if (!question.quantise.request.empty()) return about_decided(question);
  const Form& form = form_of(question);
  if (!form.graph.ok()) return form.graph.error();
  const std::string spec = question.spec.text();
  for (const Answer& answer : answers_)
    if (answer.form == &form && answer.spec == spec && answer.product == question.spec.product) return answer.verdicts;
  const auto placements = form.placer->place(question.spec);
  answers_.push_back({&form, spec, question.spec.product, verdicts(nodes_, *form.graph, placements)});
  return answers_.back().verdicts;
}

}  // namespace tosaic
