// SPDX-License-Identifier: Apache-2.0
// Calibration runs the program. A call that cannot be run hides what comes after it; the rest is observed all the
// same.
#include <fmt/format.h>
#include <algorithm>

#include "execute/executable.h"
#include "lower/lower.h"
#include "ops/op.h"
#include "quantise/observable.h"

namespace tosaic {
namespace {

void warn(const Graph& graph, std::size_t node, const Diagnostic& why, std::size_t behind, const Sink& sink) {
  if (!sink) return;
  const Node& first = graph.nodes[node];
  Diagnostic d = warning("quantise.unobserved",
                         fmt::format("{} cannot be run for calibration: {} of {} nodes stay float, it and what reads "
                                     "its results",
                                     first.op, behind, graph.nodes.size()));
  d.notes.push_back(why.message);
  d.help = why.help;
  sink(located(std::move(d), first.loc));
}

// For any target, and such that the CPU can run it: a program may give operators what PyTorch would not take.
Result<Lowered> lower_runnable(const Graph& graph) {
  TOSAIC_TRY(Lowered lowered, lower(graph));
  TOSAIC_CHECK(execute::Executable::check_lowering(lowered.graph));
  return lowered;
}

Status runs(const Graph& graph, const Node& node, const std::vector<char>& used) {
  TOSAIC_TRY(const Trial trial, try_lowering(graph, node, used, nullptr));
  return execute::Executable::check_lowering(trial.graph);
}

}  // namespace

Result<Lowered> lower_observable(const Graph& graph, std::vector<char>& hidden, const Sink& sink) {
  hidden.assign(graph.values.size(), 0);
  auto whole = lower_runnable(graph);
  if (whole.ok() || whole.error().internal) return whole;
  const std::vector<char> used = used_values(graph);
  Graph rest = graph;
  rest.nodes.clear();
  std::optional<std::pair<std::size_t, Diagnostic>> first;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool blind =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && hidden[v]; });
    if (!blind) {
      auto status = runs(graph, node, used);
      blind = !status.ok();
      if (blind && (status.error().internal || status.error().code == inconsistent_model)) return whole;
      if (blind && !first) first.emplace(n, std::move(status.error()));
    }
    if (!blind) {
      rest.nodes.push_back(node);
      continue;
    }
    for (ValueId v : node.outputs)
      if (v != no_value) hidden[v] = 1;
  }
  if (!first) return whole;  // each node runs, all together do not
  std::erase_if(rest.outputs, [&](ValueId v) { return hidden[v]; });
  warn(graph, first->first, first->second, graph.nodes.size() - rest.nodes.size(), sink);
  return lower_runnable(rest);
}

}  // namespace tosaic
