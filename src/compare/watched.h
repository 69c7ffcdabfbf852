// SPDX-License-Identifier: Apache-2.0
// A program that is run on the CPU for what its tensors hold on the way, not for its results alone.
#pragma once
#include <span>
#include <vector>

#include "execute/executable.h"
#include "ir/graph.h"
#include "ir/states.h"
#include "lower/lower.h"

namespace tosaic {

class Watched {
 public:
  // `wanted`: per value of the graph. What cannot be run, and what reads its results, is left out. `how.outside` is per
  // node of the graph.
  static Result<Watched> make(Graph graph, const std::vector<char>& wanted, const LowerOptions& how, int threads);
  // Of a graph that has been lowered, states as tensors.
  static Result<Watched> of_lowered(Graph graph, Lowered lowered, const std::vector<char>& wanted, int threads);
  // Tensors of the graph's inputs; floats for those that it takes quantised. States go on from run to run.
  Status run(const std::vector<Tensor>& sample);
  // Of the last run; nullptr: there is nothing to watch, as the tensor is a constant or was never made.
  const Tensor* at(ValueId v) const;

 private:
  Watched(Graph graph, execute::Executable program)
      : graph_(std::move(graph)), states_(graph_), program_(std::move(program)) {}

  Graph graph_;  // states are tensors
  StatesAsTensors states_;
  execute::Executable program_;
  std::vector<std::int32_t> output_of_;  // per value; -1: none
  std::vector<Tensor> inputs_, outputs_, content_;
};

// The nearest quantised values.
Tensor quantised_tensor(const Tensor& floats, const TensorType& type);

}  // namespace tosaic
