// SPDX-License-Identifier: Apache-2.0
#include "pipeline/supports.h"

#include <fmt/format.h>
#include <algorithm>

#include "pipeline/decided.h"
#include "pipeline/steps.h"
#include "quantise/control_flow.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

bool folds_quantisation(const SupportQuestion& question) {
  return question.integer || question.spec.has(tosa::Feature::pro_int);
}

bool takes_loops(const SupportQuestion& question) { return question.spec.has(tosa::Feature::controlflow); }

FormFor form_for(const SupportQuestion& q) {
  const bool quantised = q.keeps_quantised_weights && !q.integer;
  const WeightQuantisation weights = quantised ? q.weight_quantisation : WeightQuantisation{};
  return {.spec = q.spec,
          .integer = q.integer,
          .keeps_quantised_weights = quantised,
          .weight_quantisation = weights,
          .most_unlike_gains = most_unlike_gains(q.integer, q.quantise, weights)};
}

// What of a question decides about the form of weights, as text.
std::string weight_form(const SupportQuestion& question) {
  const FormFor form = form_for(question);
  return fmt::format("{} {} {} {} {}", form.keeps_quantised_weights, form.weight_quantisation.bits,
                     form.weight_quantisation.group, form.weight_quantisation.dynamic, form.most_unlike_gains);
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
  return nominal_types(std::move(graph), by_pt2e, question.quantised_io, options, question.spec);
}

const Supports::Form& Supports::form_of(const SupportQuestion& question) {
  const bool folded = folds_quantisation(question);
  const Kind kind{question.integer,
                  folded,
                  folded && question.spec.has(tosa::Feature::int16),
                  takes_loops(question),
                  !question.integer || question.quantise.per_channel,
                  question.quantised_io,
                  question.integer ? question.quantise.scheme : Scheme::int8,
                  most_weight_bytes(question),
                  quantises_control_flow(question.spec) ? question.spec.text() : "",
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
