// SPDX-License-Identifier: Apache-2.0
// What is decided about a graph once and never changes: its steps with their packed weights, and where everything lies.
// Programs that run at the same time share one. Private to src/cpu.
#pragma once
#include <memory>
#include <vector>

#include "cpu/step.h"

namespace tosaic::cpu {

struct Compiled {
  Graph graph;
  std::vector<TensorType> input_types, output_types;
  std::vector<Step> steps;
  std::vector<std::vector<ValueId>> observed_after;  // by step
  std::vector<ValueId> observed_at_start;            // graph inputs and constants
  plan::Memory memory;
  // An input and an output that may be one memory: nothing reads the input when the output is written.
  struct InPlace {
    std::uint32_t input, output;
  };
  std::vector<InPlace> in_place;
  ThreadPool* pool = nullptr;  // the process's

  // Kernels refer to the graph in it: it stays where it is.
  static Result<std::shared_ptr<const Compiled>> of(const Graph& graph, const Options& options);

 private:
  Status plan_steps(const Options& options);
  void find_in_place();
};

}  // namespace tosaic::cpu
