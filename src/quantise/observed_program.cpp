// SPDX-License-Identifier: Apache-2.0
#include "quantise/observed_program.h"

#include <algorithm>

#include "ir/tosa_operators.h"
#include "tidy/tidy.h"

namespace tosaic {

Result<ObservedProgram> compile_observed(const Graph& graph, Lowered lowered, const std::vector<char>& wanted,
                                         int threads) {
  Graph& tosa = lowered.graph;
  const std::size_t real_outputs = tosa.outputs.size();
  std::vector<ValueId> values;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (wanted[v] && lowered.of[v] != no_value) {
      values.push_back(v);
      tosa.outputs.push_back(lowered.of[v]);
    }
  tidy(tosa);
  // A permutation or reshape has the same elements as what it moves: look at that and let the move go.
  const auto made_by = producers(tosa);
  std::vector<std::vector<Move>> moves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ValueId& v = tosa.outputs[real_outputs + i];
    while (made_by[v] >= 0) {
      const Node& node = tosa.nodes[static_cast<std::size_t>(made_by[v])];
      if (node.op != tosa::op::transpose && node.op != tosa::op::reshape) break;
      moves[i].push_back({node, tosa[v].type});
      v = node.inputs[0];
    }
    std::ranges::reverse(moves[i]);
  }
  drop_dead(tosa);  // renumbers, the outputs as well
  std::map<ValueId, std::vector<ObservedProgram::Watcher>> watchers;
  for (std::size_t i = 0; i < values.size(); ++i)
    watchers[tosa.outputs[real_outputs + i]].push_back({values[i], std::move(moves[i])});
  tosa.outputs.resize(real_outputs);
  cpu::Options options{.threads = threads};
  for (const auto& [v, who] : watchers) options.observed.push_back(v);
  TOSAIC_TRY(cpu::Program program, cpu::Program::compile(tosa, options));
  return ObservedProgram{std::move(program), std::move(watchers)};
}

}  // namespace tosaic
