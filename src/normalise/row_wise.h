// SPDX-License-Identifier: Apache-2.0
// Does a call treat the rows of its operands each by itself, whatever rows there are besides? Derived from its TOSA
// lowering, operator by operator. What is not certain is no.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Where the rows of a tensor are: `count` of them along `dim`, each as `inner` indices that follow one another (rows of
// [R, 4, C] in [4*R, C] have an inner of 4).
struct Rows {
  int dim = 0;
  std::int64_t inner = 1;
  bool operator==(const Rows&) const = default;
};
using RowsOf = std::vector<std::optional<Rows>>;  // by value; nothing: no rows are in it

// Of each result of the TOSA graph, from those of its values that `given` says; nothing: rows are mixed, or
// distinguished by their number, somewhere. `count` is at least 2.
std::optional<RowsOf> follow_rows(const Graph& lowered, std::int64_t count, RowsOf given);

}  // namespace tosaic
