// SPDX-License-Identifier: Apache-2.0
#include "pipeline/steps.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/marks.h"
#include "ir/program_operators.h"
#include "lower/lower.h"
#include "lower/state_variables.h"
#include "ops/inconsistent.h"
#include "pipeline/decided.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// Error: the reason of the first node that stays outside.
Status fully_delegated(const Partition& partition) {
  for (std::size_t n = 0; n < partition.placements.size(); ++n) {
    const Placement& p = partition.placements[n];
    if (p.region >= 0) continue;
    Diagnostic why = p.reason;
    if (why.code == "target.conversion") continue;
    why.severity = Severity::error;
    why.notes.emplace_back("--require-full-delegation allows no node outside the delegate");
    return why;
  }
  return {};
}

// A program that runs on the CPU alone is seldom what the user wanted, and never who gave samples for the delegate.
Status delegated_something(const Context& c, const Partition& partition, bool samples_given) {
  const auto& placements = partition.placements;
  if (!partition.regions.empty() || placements.empty() || !c.request.pack) return {};
  const auto why = std::find_if(placements.begin(), placements.end(),
                                [](const Placement& p) { return p.reason.code != "target.conversion"; });
  if (why == placements.end()) return {};
  Diagnostic nothing =
      warning("target.nothing-delegated",
              fmt::format("no node of the program runs on {}: all stay on the CPU", c.options.target.name));
  nothing.notes.push_back(fmt::format("the first: {}", why->reason.message));
  nothing.notes.insert(nothing.notes.end(), why->reason.notes.begin(), why->reason.notes.end());
  nothing.help = "`tosaic explain` says of each node why";
  nothing.place = why->reason.place;
  nothing.context = why->reason.context;
  if (samples_given) {
    nothing.severity = Severity::error;
    return nothing;
  }
  c.say(std::move(nothing));
  return {};
}

// The call of a region, in bodies, too; nullptr: there is none.
Node* delegate_of(Graph& outer, std::int64_t region) {
  for (Node& node : outer.nodes) {
    if (node.op == op::delegate && *find_mark(node, mark::region) == region) return &node;
    for (Graph& body : node.regions)
      if (Node* found = delegate_of(body, region)) return found;
  }
  return nullptr;
}

// An operand may turn out to be none (what `copy` writes over): its delegate does not take it.
void drop_unread_inputs(Graph& region, Node& delegate) {
  std::vector<char> read(region.values.size(), 0);
  for (const Node& node : region.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value) read[v] = 1;
  for (ValueId v : region.outputs) read[v] = 1;
  if (std::ranges::none_of(region.inputs, [&](ValueId v) { return read[v]; })) return;
  for (std::size_t i = region.inputs.size(); i-- > 0;) {
    if (read[region.inputs[i]]) continue;
    region.inputs.erase(region.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    delegate.inputs.erase(delegate.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  drop_dead(region);
}

// What normalise has left of these are quantised values, of which lowerings may make floats, too.
bool computes_constants(const Graph& graph) {
  constexpr std::size_t matrix = 1 << 14;
  if (std::ranges::any_of(graph.values, [](const Value& v) {
        if (v.type.dtype == DType::f8ue8m0) return v.constant.size() * 32 >= matrix;  // of blocks
        return v.type.dtype == DType::i8 && v.constant.size() >= matrix && !v.type.quantised();
      }))
    return true;
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return !node.inputs.empty() &&
           std::ranges::all_of(node.inputs, [&](ValueId v) { return v == no_value || graph[v].is_constant(); });
  });
}

}  // namespace

Result<Split> split_by_target(Typed program, const Context& c) {
  const tosa::Spec& spec = c.target.spec;
  const Rewrites rewrite = c.rewrites("partition");
  if (c.options.single_delegate) rewrite("compute_outputs", program.graph, compute_outputs);
  Split split{c.target, std::move(program.graph), {}, {}, std::move(program.sample), program.samples};
  if (c.options.single_delegate) {
    TOSAIC_TRY(split.partition, whole(split.quantised, spec));
  } else {
    split.partition = partition(split.quantised, spec);
  }
  const std::vector<ExportedNode> exported = exported_nodes(*c.exported);
  TOSAIC_TRY(const Deciding decided, deciding(c.options.quantise.request.overrides, exported));
  say_decided(split.quantised, decided, spec, split.partition.placements);
  split.verdicts = verdicts(exported, split.quantised, split.partition.placements);
  for (const Placement& p : split.partition.placements)
    if (p.region < 0 && p.reason.code == inconsistent_model) return p.reason;
  rewrite("widen_outside", split.partition.outer, widen_outside, program.narrowed);
  if (c.options.require_full_delegation) TOSAIC_CHECK(fully_delegated(split.partition));
  TOSAIC_CHECK(delegated_something(c, split.partition, program.for_a_delegate));
  TOSAIC_CHECK(c.end("partition", split.partition.outer));
  for (const Graph& region : split.partition.regions) c.note_part("partition", region);
  return split;
}

Result<Lowered> lowered_region(const Graph& region, const Context& c) {
  const bool fold = !(c.options.keeps_quantised_weights() && computes_constants(region));
  return lower(region, {.spec = &c.target.spec, .fold = fold, .rewrite = c.rewrites("lower")});
}

Result<Graph> lower_region(const Graph& region, const Context& c) {
  TOSAIC_TRY(Lowered lowered, lowered_region(region, c));
  return std::move(lowered.graph);
}

Result<Tosa> lower_regions(Split program, const Context& c) {
  Tosa tosa{std::move(program), {}};
  for (const Graph& region : tosa.partition.regions) {
    TOSAIC_TRY(Graph lowered, lower_region(region, c));
    tosa.lowered.push_back(std::move(lowered));
  }
  for (const Graph& region : tosa.lowered) TOSAIC_CHECK(c.note("lower", region));
  c.note_part("lower", tosa.partition.outer);
  TOSAIC_CHECK(c.end("lower"));
  return tosa;
}

void tidy_region(Graph& region, Node* call, const Context& c) {
  const bool keep_quantised_weights = c.options.keeps_quantised_weights();
  const Rewrites rewrite = c.rewrites("tidy");
  tidy(region, {.keep_quantised_weights = keep_quantised_weights,
                .keep_activations = c.target.spec.product != nullptr,
                .rewrite = rewrite});
  rewrite("narrow_weights", region, narrow_weights, c.target.spec);
  if (keep_quantised_weights && c.target.quantised_weights == QuantisedWeights::packed)
    rewrite("pack_int4", region, pack_int4);
  if (call && !c.options.single_delegate) rewrite("drop_unread_inputs", region, drop_unread_inputs, *call);
  if (c.target.shape) c.target.shape(region, rewrite);
}

Result<Tosa> tidy_regions(Tosa program, const Context& c) {
  Graph& outer = program.partition.outer;
  for (std::size_t k = 0; k < program.lowered.size(); ++k)
    tidy_region(program.lowered[k], delegate_of(outer, static_cast<std::int64_t>(k)), c);
  if (c.target.keeps_variables && c.target.spec.has(tosa::Feature::variable))
    c.rewrites("tidy")("states_as_variables", outer, [&](Graph& graph) {
      states_as_variables(graph, program.lowered, c.target.spec, c.request.shared_states);
    });
  for (const Graph& region : program.lowered) {
    TOSAIC_CHECK(tosa::verify_graph(region, c.target.spec));
    TOSAIC_CHECK(c.note("tidy", region));
  }
  c.note_part("tidy", outer);
  TOSAIC_CHECK(c.end("tidy"));
  return program;
}

}  // namespace tosaic
