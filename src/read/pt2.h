// SPDX-License-Identifier: Apache-2.0
// Reads what torch.export.save writes (torch 2.9 to 2.15): the program, its weights in place, its sample inputs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ir/fixed_value.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "tosaic/program.hpp"

namespace tosaic {

struct Method {
  std::string name;                         // "forward" for the usual single model
  std::string input_spec, output_spec;      // tree specs, as PyTorch wrote them
  Graph graph;                              // aten.* nodes (and unknown ones, marked by their own names)
  FixedValues fixed_inputs, fixed_outputs;  // of the program's user, in addition to graph.inputs and graph.outputs
  std::vector<std::size_t> scalar_outputs;  // which of graph.outputs are Python scalars to its user
  std::vector<std::size_t> written_inputs;  // of which of graph.inputs the first of graph.outputs are the new contents
  std::vector<std::pair<std::string, ValueId>>
      read_buffers;                                // that it does not write: constants, by the module's names
  std::vector<std::vector<Tensor>> sample_inputs;  // zero or more complete sets, in graph.inputs' order
};

struct ExportedProgram {
  std::string torch_version;
  std::int64_t schema_major = 0, schema_minor = 0;
  std::vector<Method> methods;
};

// A buffer that one of the methods writes is a state of all that read it.
void keep_together(ExportedProgram& program);

// Of an archive that should hold one model. Error: model.methods.
Result<const Method*> only_method(const ExportedProgram& program);

// Weights point into the mapped file where they lie there dense; strided and sliced ones are copied dense.
// Warnings (unread parts, NaN weights, newer minor schema) go to `sink`.
Result<ExportedProgram> read_pt2(const std::string& path, const Sink& sink);
// The same from memory; `name` stands for the file in messages.
Result<ExportedProgram> read_pt2(const Bytes& archive, const std::string& name, const Sink& sink);
// The same without an archive, from the process that exported the program.
Result<ExportedProgram> read_held(HeldProgram held, const std::string& name, const Sink& sink);

}  // namespace tosaic
