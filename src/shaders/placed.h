// SPDX-License-Identifier: Apache-2.0
// Matrices that are read where they were before TRANSPOSE, RESHAPE and SLICE moved them, and written where these would
// move them to: by strides.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

// Element (batch, row, column) of a list of matrices lies at offset + batch * batches + row * rows + column * columns.
struct Placed {
  ValueId value = no_value;
  Dim offset = 0, batches = 0, rows = 0, columns = 1;
  bool is_by_columns() const { return rows == Dim(1) && columns != Dim(1); }
};

// The operand where vectors of `unit` elements of a row can be read, or (`by_columns`) of a column: itself, if nothing
// better is found.
Placed placed_operand(const Graph& graph, ValueId v, std::int64_t unit, bool by_columns);
// Where a movement takes all elements of matrices that are seen as `from` there; rows stay dense. nullopt: it does
// something else.
std::optional<Placed> placed_result(const Graph& graph, ValueId from, const Shape& matrices, const Node& movement);

// The expression with operands that were moved read where they were before.
plan::Expression before_movements(const Graph& graph, const plan::Expression& expression);

}  // namespace tosaic::shaders
