// SPDX-License-Identifier: Apache-2.0
// From the pattern in which TOSA files say that a weight is quantised, mul(cast(q), scales), to the operators that
// read it so: tosaic.scaled_product and tosaic.scaled_gather. Once for each load; kernels then read operands.
#pragma once
#include <functional>
#include <span>

#include "plan/quantised_rows.h"

namespace tosaic::plan {

// What an executor says of itself.
struct Raising {
  // Has it a kernel for this node with a weight, or a table, that is quantised? And for one of these sizes?
  std::function<bool(const Graph& graph, const Node& node)> takes;
  std::function<bool(const QuantisedRows& rows)> takes_rows;
  // Does it want zero points of activations to be whole numbers of 8 bits?
  bool whole_zeros = false;
  // Computes the only output of a graph of constants. Null: it cannot.
  std::function<Result<Bytes>(const Graph& constants)> compute;
  // Whatever else follows from constants becomes one, if there are quantised values; else weights and tables alone.
  bool all_constants = false;
};
// `observed`: values that stay. False: nothing has changed. Values keep their numbers.
Result<bool> raise_quantised(Graph& graph, const Raising& executor, std::span<const ValueId> observed = {});

}  // namespace tosaic::plan
