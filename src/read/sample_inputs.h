// SPDX-License-Identifier: Apache-2.0
// The example inputs that torch.export.save keeps next to a program, in the order of its graph's inputs.
// Private to read/.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "read/json.h"
#include "tosaic/tensor.hpp"

namespace tosaic {

// `file` is what torch.save made of (args, kwargs); `in_spec` the program's tree spec, which orders the leaves;
// `signature` tells which leaves are graph inputs. Throws ReadError saying why there is no complete set.
std::vector<Tensor> read_sample_inputs(const Bytes& file, const std::string& name, std::string_view in_spec,
                                       const Json& signature, const Graph& graph);

// The same set, held in memory: one tensor per input of the graph, whose type it must have. Throws ReadError.
std::vector<Tensor> sample_set(const std::vector<OwnedTensor>& tensors, const Graph& graph);

}  // namespace tosaic
