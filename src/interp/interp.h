// SPDX-License-Identifier: Apache-2.0
// The reference interpreter of TOSA graphs: node by node, exact, readable; the oracle that everything else is
// compared with. Slow on purpose.
#pragma once
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::interp {

struct Options {
  bool precise = false;  // every float tensor is computed and returned as f64 (tables, bounds)
  // What the VARIABLEs hold, from the run before and for the next one; empty: their initial values. Null: this run is
  // the only one.
  tosa::Variables* variables = nullptr;
};

// Inputs and outputs are in the order of graph.inputs and graph.outputs. The graph holds only tosa.* nodes.
// In precise mode a float input may be given as f64. Errors: run.input-count, run.input-type, run.unknown-operator,
// run.out-of-memory; tosa.unpredictable where a REQUIRE of the specification fails.
Result<std::vector<Tensor>> run(const Graph& graph, std::vector<Tensor> inputs, const Options& options = {});

}  // namespace tosaic::interp
