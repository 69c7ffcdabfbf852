// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/computed_weights.h"

#include "cpu/cpu.h"
#include "plan/raise.h"

namespace tosaic::cpu {
namespace {

// Of floats of 32 bits, with a bias that stays.
bool takes_quantised(const Graph& graph, const Node& node) {
  if (graph[node.inputs[0]].type.dtype != DType::f32) return false;
  return node.op != tosa::op::conv2d || graph[node.inputs[2]].is_constant();
}

// Words of four or eight values divide the groups, whose sums of 255 times 128 fit 32 bits.
bool takes_rows(const plan::QuantisedRows& rows) {
  return rows.group % 4 == 0 && rows.group <= 1 << 16 && !(rows.by_columns && rows.values.run != 0);
}

Result<Bytes> computed(const Graph& constants) {
  TOSAIC_TRY(Program program, Program::compile(constants, {.computes_weights = false}));
  TOSAIC_TRY(std::vector<Tensor> results, program.run(std::vector<Tensor>()));
  return results.at(0).data;
}

}  // namespace

Status compute_weights(Graph& graph, std::span<const ValueId> observed) {
  const plan::Raising executor{.takes = takes_quantised, .takes_rows = takes_rows, .compute = computed};
  if (auto raised = plan::raise_quantised(graph, executor, observed); !raised.ok()) return raised.error();
  return {};
}

}  // namespace tosaic::cpu
