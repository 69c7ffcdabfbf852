// SPDX-License-Identifier: Apache-2.0
// What GATHER, SCATTER and ROW_GATHER share: rows of tensors [N, K, C] by indices [N, W]. Private to src/ops.
#pragma once
#include "ops/definitions/row.h"

namespace tosaic::tosa {

// Of `variable` next to "index". TOSA 1.1 has booleans, integers of 64 bits, and indices of 64 bits.
TypeRows rows_by_index(std::string_view variable);
// in_1_0 of GATHER and SCATTER: indices of 64 bits narrowed, and booleans as i8.
std::vector<ValueId> in_older_types(extension::Definition& definition);
// The indices as i32. What does not fit is out of range as i32, too.
ValueId narrow_indices(extension::Definition& definition, ValueId indices);

}  // namespace tosaic::tosa
