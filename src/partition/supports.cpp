// SPDX-License-Identifier: Apache-2.0
#include "partition/supports.h"

#include <algorithm>

#include "ir/states.h"
#include "normalise/normalise.h"
#include "normalise/split_weights.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

// The types that `quantise` would give.
Result<Graph> planned(Graph graph, const QuantiseOptions& options) {
  widen_halves(graph);
  const StatesAsTensors states(graph);
  TOSAIC_TRY(Expanded program, expanded(std::move(graph), options));
  TOSAIC_TRY(const Decisions decisions, decide(program, options.request, options));
  if (options.spec) TOSAIC_CHECK(check_decisions(program, decisions, options, *options.spec));
  const QuantisationPlan plan = plan_quantisation(program, options, {}, decisions);
  graph = on_nominal_scales(std::move(program.graph), plan);
  drop_dead(graph);
  states.restore(graph);
  return graph;
}

bool folds_quantisation(const SupportQuestion& question) {
  return question.integer || question.spec.has(tosa::Feature::pro_int);
}

}  // namespace

Supports::Supports(Graph exported) : exported_(std::move(exported)), nodes_(exported_nodes(exported_)) {
  has_conversions_ = std::any_of(exported_.nodes.begin(), exported_.nodes.end(),
                                 [](const Node& n) { return n.op.find("quantize") != std::string::npos; });
}

const Result<Graph>& Supports::normalised(bool fold_quantisation, std::uint64_t most_weight_bytes) {
  auto& graph = normalised_[{fold_quantisation || !has_conversions_, most_weight_bytes}];
  if (!graph) {
    graph = normalise(exported_, {.fold_quantisation = fold_quantisation}, {});
    if (graph->ok()) split_weights(**graph, most_weight_bytes);
  }
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
  TOSAIC_TRY(Graph graph, normalised(folds_quantisation(question), most_weight_bytes(question)));
  const bool by_pt2e = is_quantised(graph);
  if (!question.integer && !by_pt2e) return graph;
  if (by_pt2e && !question.quantise.request.empty()) return already_quantised();
  QuantiseOptions options = question.quantise;
  options.wide_inside = question.spec.has(tosa::Feature::int16);
  if (!by_pt2e) { TOSAIC_TRY(graph, planned(std::move(graph), options)); }
  insert_boundaries(graph, by_pt2e ? Io::as_written : Io::floats);
  return graph;
}

const Supports::Form& Supports::form_of(const SupportQuestion& question) {
  const bool folded = folds_quantisation(question);
  const bool wide_inside = folded && question.spec.has(tosa::Feature::int16);
  const Scheme scheme = question.integer ? question.quantise.scheme : Scheme::int8;
  const std::uint64_t most = most_weight_bytes(question);
  const bool per_channel = !question.integer || question.quantise.per_channel;
  for (const Form& form : forms_)
    if (form.integer == question.integer && form.folded == folded && form.wide_inside == wide_inside &&
        form.most_weight_bytes == most && form.per_channel == per_channel && form.scheme == scheme)
      return form;
  forms_.push_back({question.integer, folded, wide_inside, per_channel, most, scheme, typed(question), nullptr});
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
