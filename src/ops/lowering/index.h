// SPDX-License-Identifier: Apache-2.0
// Reading and writing by index tensors over TOSA's GATHER and SCATTER, which take [N,K,C] by [N,W] i32 and no
// booleans.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

// Indices into a dim of `size` as numbers to compute with: i32, or f32 for targets that compute with floats alone, as
// long as every index is a whole number there. All functions here take both.
Val counted_indices(Val indices, std::int64_t size);
// The same; negative ones count from the end of the dim where PyTorch lets them.
Val wrapped_indices(Val indices, std::int64_t size);
// The same indices, of which one outside 0..size-1 stops the program as PyTorch's does; NPUs, which could not say so,
// are spared the check.
Val checked_indices(Val indices, std::int64_t size);
Val gathered(Val values, Val indices);               // [N,K,C] by [N,W] -> [N,W,C]
Val scattered(Val values, Val indices, Val source);  // values with rows `indices` replaced by source [N,W,C]
// The same where indices may repeat, which SCATTER forbids: the last row that goes to an index stays there, as PyTorch
// leaves it on a CPU. Indices [N,W], or [1,W] for all N.
Val last_written(Val values, Val indices, Val source);
// values with source's rows added at `indices`, which may repeat: the product with a matrix of ones and zeros.
Val added_rows(Val values, Val indices, Val source);

// x.index_select(axis, indices): no transposes, the dims before the axis are GATHER's batch.
Val selected(Val x, int axis, Val indices);
// The opposite: slices of `source` put at the indices of `axis` that the vector `indices` names.
enum class Put { replace, once, add };  // once: no place is named twice
Put replaced_by(const Call& call);      // once, where normalise found it so (normalise/distinct_indices.cpp)
Val put(Val values, Val indices, Val source, Put how);  // rows, as for last_written
Val put_along(Builder& b, Val x, int axis, Val indices, Val source, Put how);
// torch.scatter: elements of `source` put along `axis`, line by line, where `indices` of the same rank names.
Val scattered_lines(Builder& b, Val x, int axis, Val indices, Val source, Put how);
// The mask of the elements of x that `indices` name so, each possibly several times.
Val named_indices(Builder& b, Val x, int axis, Val indices);
// torch.gather.
Val gathered_lines(Builder& b, Val x, int axis, Val indices);

// x[i, j, ...]: the indices broadcast to one shape and become one row-major position into the indexed dims, which
// stand in front of the others in a table [1, rows, the rest].
struct IndexPlan {
  std::vector<int> indexed, kept;
  Shape common;
  Val position;  // as counted_indices gives them, shape `common`

  bool nothing() const { return indexed.empty(); }
  Val table(Val x) const;
  Val restored(Val table, Val x) const;  // the inverse of table()
  Shape gathered_shape(Val x) const;     // common, then the kept dims
  std::vector<int> placed() const;       // from there to where PyTorch puts the dims
};
IndexPlan index_plan(Builder& b, Val x, const std::vector<std::optional<Val>>& indices);

}  // namespace tosaic
