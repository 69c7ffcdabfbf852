// SPDX-License-Identifier: Apache-2.0
// What GATHER, SCATTER and ROW_GATHER share: rows of tensors [N, K, C] by indices [N, W]. Private to src/ops.
#pragma once
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa {

// Of `variable` next to "index". TOSA 1.1 has booleans, integers of 64 bits, and indices of 64 bits.
TypeRows rows_by_index(std::string_view variable);
// in_1_0 of GATHER and SCATTER: indices of 64 bits narrowed, and booleans as i8.
std::vector<ValueId> in_older_types(extension::Definition& definition);
// The indices as i32. What does not fit is out of range as i32, too.
ValueId narrow_indices(extension::Definition& definition, ValueId indices);

// ---- ROW_GATHER, whose results [N, W * R, C] are runs of R rows by the index of the first
Shape run_of_rows(const Shape& values, const Shape& indices, std::int64_t count);
// "<op>.batch", "<op>.row-count-length", "<op>.row-count"; the values are operand 0.
Check check_runs_of_rows(const View& view, std::size_t indices, std::size_t count);
// Operand and result `which`.
Status copy_runs_of_rows(const Run& run, std::size_t which, const TensorView& indices, const TensorView& count);
// In TOSA 1.0: indices [N, rows] of each row of the runs, as i32.
ValueId index_of_every_row(extension::Definition& definition, ValueId indices, std::int64_t rows);

}  // namespace tosaic::tosa
