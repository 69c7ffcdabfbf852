// SPDX-License-Identifier: Apache-2.0
// What is decided about a graph once and never changes: its steps with their packed weights, and where everything lies.
// Programs that run beside each other share one. Private to src/cpu.
#pragma once
#include <memory>
#include <vector>

#include "cpu/step.h"

namespace tosaic::cpu {

enum class Home : std::uint8_t { none, constant, input, output, arena };

// Where a value lies: in the memory of `root`, at an offset.
struct Location {
  ValueId root = no_value;
  std::size_t offset = 0;
  Home home = Home::none;
  std::uint32_t slot = 0;  // input or output number
};

struct Compiled {
  Graph graph;
  std::vector<TensorType> input_types, output_types;
  std::vector<Step> steps;
  std::vector<std::vector<ValueId>> observed_after;  // by step
  std::vector<ValueId> observed_at_start;            // graph inputs and constants
  std::vector<std::size_t> scratch_offset;           // by step, in the arena
  std::vector<Location> location;                    // by value
  std::vector<std::size_t> arena_offset;             // by value, of those that are at home there
  std::vector<ValueId> at_input, at_output;          // values whose address changes from run to run
  struct Copy {
    ValueId from;
    std::uint32_t output;
  };
  std::vector<Copy> copies;  // outputs that share memory with something else
  std::size_t arena_bytes = 0;
  ThreadPool* pool = nullptr;  // the process's

  // Kernels refer to the graph in it: it stays where it is.
  static Result<std::shared_ptr<const Compiled>> of(const Graph& graph, const Options& options);

 private:
  Status plan_steps(const Options& options);
  void locate(const Planning& planning);
  Status place_buffers();
};

bool aligned_for(const TensorType& type, const void* p);

}  // namespace tosaic::cpu
