// SPDX-License-Identifier: Apache-2.0
// Matrices that are read where they were before TRANSPOSE, RESHAPE and SLICE moved them, and written where these would
// move them to: by strides.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

// Element (batch, row, column) of a list of matrices lies at offset + (where the batch does) + row * rows + column *
// columns.
struct StridedMatrices {
  ValueId value = no_value;
  Dim offset = 0;
  StridedBatches batches;
  Dim rows = 0, columns = 1;
  double factor = 1;  // by which what lies there is to be multiplied
  bool is_by_columns() const { return rows == Dim(1) && columns != Dim(1); }
};

// The operand where vectors of `unit` elements of a row can be read, or (`by_columns`) of a column: itself, if nothing
// better is found. `scaled`: also before MULs by a scalar, for readers that multiply by Placed::factor.
StridedMatrices find_strided_operand(const Work& work, ValueId v, std::int64_t unit, bool by_columns,
                                     bool scaled = false);
// Of a MUL by a scalar: what is multiplied, and by what.
struct Scaling {
  ValueId value;
  double factor;
};
std::optional<Scaling> scaling_of(const Graph& graph, const Node& node);
// Where a data layout operator takes all elements of matrices that are seen as `from` there; rows stay dense. nullopt:
// it does something else.
std::optional<StridedMatrices> find_strided_result(const Graph& graph, ValueId from, const Shape& matrices,
                                                   const Node& movement);

// Element (image, y, x, ..., channel) of an image lies at offset + image * strides[0] + y * strides[1] + ... + channel
// * channels.
struct StridedImage {
  ValueId value = no_value;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  std::int64_t channels = 1;
};
// Where vectors of `unit` channels can be read before data layout operators, or a few channels one by one: these also
// as f32 of which f16 is kept (half_precision.h). nullopt: only as it is.
std::optional<StridedImage> find_strided_image(const Work& work, ValueId v, std::int64_t unit);

// The expression with operands that were moved read where they were before.
plan::Expression before_movements(const Work& work, const plan::Expression& expression);

}  // namespace tosaic::shaders
