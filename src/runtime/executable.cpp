// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include "interp/interp.h"
#include "ops/tosa_op.h"

namespace tosaic::runtime {

Result<Executable> Executable::make(Graph graph, int threads, bool interpret) {
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  Executable made;
  for (ValueId v : graph.inputs) made.inputs_.push_back(graph[v].type);
  for (ValueId v : graph.outputs) made.outputs_.push_back(graph[v].type);
  if (interpret) {
    made.graph_ = std::move(graph);
  } else {
    TOSAIC_TRY(made.program_, cpu::Program::compile(graph, {.threads = threads, .observed = {}}));
  }
  return made;
}

Status Executable::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (program_) return program_->run(inputs, outputs);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back({inputs_[i], Bytes(nullptr, inputs[i], inputs_[i].storage_bytes())});  // borrowed for this call
  TOSAIC_TRY(auto results, interp::run(*graph_, std::move(tensors)));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!results[i].data.empty()) std::memcpy(outputs[i], results[i].data.data(), results[i].data.size());
  return {};
}

}  // namespace tosaic::runtime
