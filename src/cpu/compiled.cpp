// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiled.h"

#include <fmt/format.h>
#include <algorithm>

#include "cpu/elementwise/row_groups.h"
#include "cpu/matrix/attention.h"
#include "cpu/matrix/computed_weights.h"
#include "cpu/matrix/packed_once.h"
#include "cpu/rows/rows.h"
#include "cpu/widen.h"
#include "cpu/window/window.h"
#include "ir/aligned.h"
#include "ops/definitions/extension.h"
#include "plan/raise_definitions.h"
#include "plan/raise_grouped_convolutions.h"
#include "plan/transposed_convolutions.h"

namespace tosaic::cpu {

Status Compiled::plan_steps(const Options& options) {
  pool = &ThreadPool::shared(options.threads);
  Planning planning(graph, options.observed, pool->threads());
  planning.lasting_weights = options.lasting_weights;
  static PackedWeights of_all;
  PackedWeights of_this;
  planning.packed_weights = options.lasting_weights ? &of_all : &of_this;
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (const KernelRow& row : kernel_rows())
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = row.backward ? count - 1 - i : i;
      if (!planning.taken[n]) row.take(planning, n);
    }
  for (std::uint32_t n = 0; n < count; ++n)
    if (!planning.taken[n])
      return located(error("cpu.unsupported", fmt::format("no kernel runs {}", graph.nodes[n].op)), graph.nodes[n].loc);

  // Kernels have them, and give them back when they are packed.
  for (const auto& [values, scales] : planning.packed_operands) graph[values].constant = graph[scales].constant = {};

  // A step stands where its last node stood: everything it reads was then computed, and only its last value is
  // read by others.
  steps = std::move(planning.steps);
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });

  group_rows(planning, steps);

  std::vector<bool> observed(graph.values.size(), false);
  for (ValueId v : options.observed)
    if (v < graph.values.size()) observed[v] = true;
  for (const Step& step : steps) {
    auto& list = observed_after.emplace_back();
    for (ValueId v : step.writes)
      if (observed[v]) list.push_back(v);
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (observed[v] && planning.producer[v] < 0) observed_at_start.push_back(v);
  std::vector<plan::StepMemory> needs;
  for (const Step& step : steps) {
    const std::size_t threads_scratch = step.scratch_per_thread * static_cast<std::size_t>(pool->threads());
    needs.push_back({step.reads, step.writes, threads_scratch + step.shared_scratch});
  }
  memory = plan::place_values(graph, planning.aliases, needs, 64);
  find_in_place();
  return {};
}

void Compiled::find_in_place() {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    if (step.written_over == no_value) continue;
    const plan::Location &before = memory.location[step.written_over], &after = memory.location[step.writes[0]];
    const auto within = [&](const plan::Location& of) {
      return [&, root = of.root](ValueId v) { return v != no_value && memory.location[v].root == root; };
    };
    const std::size_t bytes = graph[step.writes[0]].type.storage_bytes();
    if (before.home != plan::Home::input || after.home != plan::Home::output || before.offset != 0 ||
        after.offset != 0 || graph[before.root].type.storage_bytes() != bytes ||
        graph[after.root].type.storage_bytes() != bytes)
      continue;
    bool free = std::ranges::count_if(step.reads, within(before)) == 1;  // not the rows that it writes, too
    for (std::size_t t = 0; t < steps.size(); ++t) {
      if (t > s) free &= std::ranges::none_of(steps[t].reads, within(before));
      if (t != s && steps[t].run) free &= std::ranges::none_of(steps[t].writes, within(after));
    }
    for (const plan::Memory::Copy& copy : memory.copies) free &= !within(before)(copy.from);
    for (const auto& list : observed_after) free &= std::ranges::none_of(list, within(before));
    if (free) in_place.push_back({before.slot, after.slot});
  }
}

Result<std::shared_ptr<const Compiled>> Compiled::of(const Graph& graph, const Options& options) {
  auto made = std::make_shared<Compiled>();
  made->graph = extension::in_tosa_1_0(graph).value_or(graph);
  for (ValueId v : graph.inputs) made->input_types.push_back(graph[v].type);
  for (ValueId v : graph.outputs) made->output_types.push_back(graph[v].type);
  // Constants of a mapped file may lie at any byte; kernels want them aligned.
  for (Value& value : made->graph.values)
    if (value.is_constant() && !aligned_for(value.type, value.constant.data()))
      value.constant = Bytes::copy(value.constant.data(), value.constant.size());
  widen_narrow_floats(made->graph);
  if (options.computes_weights) TOSAIC_CHECK(compute_weights(made->graph, options.observed));
  const auto has_kernel = [](const Graph& all, const Node& node) {
    return has_row_kernel(all, node) || has_attention_kernel(all, node);
  };
  plan::transposed_as_convolutions(made->graph, options.observed);
  plan::raise_grouped_convolutions(made->graph, has_kernels_of_groups, options.observed);
  plan::raise_definitions(made->graph, has_kernel, options.observed);
  TOSAIC_CHECK(made->plan_steps(options));
  return std::shared_ptr<const Compiled>(std::move(made));
}

}  // namespace tosaic::cpu
