// SPDX-License-Identifier: Apache-2.0
// The graph of an exported program, JSON -> IR. Private to read/.
#pragma once
#include <string>

#include "ir/fixed_value.h"
#include "ir/graph.h"
#include "read/json.h"
#include "read/program_types.h"
#include "read/program_weights.h"
#include "read/pt2.h"

namespace tosaic {

struct ProgramSource {
  const ProgramTypes& types;
  ProgramWeights& weights;
  const Sink& sink;
};

struct ProgramGraph {
  Graph graph;
  FixedValues fixed_inputs, fixed_outputs;
  std::vector<std::size_t> scalar_outputs;
  std::vector<std::pair<std::string, ValueId>> read_buffers;  // as of Method
  std::vector<std::size_t> written_inputs;                    // as of Method
};

// `graph_module` is the program's: its graph and its signature, which says what each input and output is.
// Parameters and buffers that no node uses are left out. Inputs that the program writes to are its first outputs, as
// ExecuTorch has them. Throws ReadError.
//
// A node's arguments by their schema's names: tensors become operands; a number in a tensor's place, as in x * 2, is
// an attribute, and the operand is absent; sizes known only at run time become SymbolicArguments, and a list that
// holds some becomes a list of strings; nested lists become their JSON text.
ProgramGraph read_program_graph(const Json& graph_module, const std::string& name, const ProgramSource& source);

}  // namespace tosaic
