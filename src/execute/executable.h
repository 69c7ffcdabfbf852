// SPDX-License-Identifier: Apache-2.0
// A TOSA graph made ready to run on either executor: what delegates and kernel calls have in common.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpu/cpu.h"
#include "ir/graph.h"

namespace tosaic::execute {

struct Options {
  int threads = 0;               // 0: all cores
  bool interpret = false;        // the reference interpreter instead of the fast executor
  MemorySource memory = {};      // of the arena; empty: the heap. The interpreter knows no arena.
  bool timed = false;            // begin with measure(true)
  bool lasting_weights = false;  // as of cpu::Options
};

class Executable {
 public:
  // From a file: held to the standard first.
  static Result<Executable> make(Graph graph, const Options& options);
  // From our own lowering, which may compute in PyTorch's i64, f64 and u8.
  static Result<Executable> of_lowering(Graph graph, const Options& options);
  // One that has been held to its rules already.
  static Result<Executable> prepared(Graph graph, const Options& options);
  // Would of_lowering take it?
  static Status check_lowering(const Graph& graph);
  const std::vector<TensorType>& input_types() const { return inputs_; }
  const std::vector<TensorType>& output_types() const { return outputs_; }
  // Dense tensors of those types; an output may lie where an input lies.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);
  // The same with owned tensors, checked: run.input-count, run.input-type.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // VARIABLEs keep their content from run to run; this gives them their initial values again.
  void reset();
  // Another one of the same graph, for another thread, in its first state; weights are shared. This one may run
  // meanwhile.
  Result<Executable> clone(const MemorySource& memory = {}) const;
  // Keep how long each step takes, from the next run on.
  void measure(bool on);
  // Of the last run, when it was measured; empty when interpreted.
  std::vector<cpu::StepTime> step_times() const;

 private:
  std::vector<TensorType> inputs_, outputs_;
  std::shared_ptr<const Graph> graph_;   // interpreted, with
  tosa::Variables variables_;            // their content
  std::optional<cpu::Program> program_;  // compiled
};

}  // namespace tosaic::execute
