// SPDX-License-Identifier: Apache-2.0
// The float program, compiled for the CPU, with a way back from its tensors to the ATen values. Private to quantise/.
#pragma once
#include <map>
#include <vector>

#include "cpu/cpu.h"
#include "lower/lower.h"

namespace tosaic {

// A permutation or reshape, with the type of its result.
struct Move {
  Node node;
  TensorType to;
};

struct ObservedProgram {
  // An ATen value with the same elements, which `moves` bring to where its own stand.
  struct Watcher {
    ValueId value;
    std::vector<Move> moves;
  };
  cpu::Program program;
  std::map<ValueId, std::vector<Watcher>> watchers;  // of a TOSA value
};

// `wanted`: by value of `graph`, which is what was lowered.
Result<ObservedProgram> compile_observed(const Graph& graph, Lowered lowered, const std::vector<char>& wanted,
                                         int threads);

}  // namespace tosaic
