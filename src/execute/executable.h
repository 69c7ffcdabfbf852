// SPDX-License-Identifier: Apache-2.0
// A TOSA graph made ready to run on either executor: what delegates and kernel calls have in common.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "cpu/cpu.h"
#include "ir/graph.h"

namespace tosaic::runtime {

class Executable {
 public:
  // From a file: held to the standard first.
  static Result<Executable> make(Graph graph, int threads, bool interpret);
  // From our own lowering, which may compute in PyTorch's i64, f64 and u8.
  static Result<Executable> of_lowering(Graph graph, int threads, bool interpret);
  // Would of_lowering take it?
  static Status check_lowering(const Graph& graph);
  const std::vector<TensorType>& input_types() const { return inputs_; }
  const std::vector<TensorType>& output_types() const { return outputs_; }
  // Dense tensors of those types; inputs and outputs do not overlap.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);

 private:
  static Result<Executable> prepared(Graph graph, int threads, bool interpret);

  std::vector<TensorType> inputs_, outputs_;
  std::optional<Graph> graph_;           // interpreted
  std::optional<cpu::Program> program_;  // compiled
};

}  // namespace tosaic::runtime
