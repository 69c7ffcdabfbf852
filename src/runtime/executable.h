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
  static Result<Executable> make(Graph graph, int threads, bool interpret);
  const std::vector<TensorType>& input_types() const { return inputs_; }
  const std::vector<TensorType>& output_types() const { return outputs_; }
  // Dense tensors of those types; inputs and outputs do not overlap.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);

 private:
  std::vector<TensorType> inputs_, outputs_;
  std::optional<Graph> graph_;           // interpreted
  std::optional<cpu::Program> program_;  // compiled
};

}  // namespace tosaic::runtime
