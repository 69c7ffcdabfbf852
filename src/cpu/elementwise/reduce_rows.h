// SPDX-License-Identifier: Apache-2.0
// Rows of integers, whose elements are neighbours, to one element each: in any order the result is the same.
#pragma once
#include <cstdint>

#include "ir/dtype.h"
#include "ir/operator.h"

namespace tosaic::cpu {

// in: [rows, length], out: [rows].
using RowsReducer = void (*)(const void* in, std::int64_t rows, std::int64_t length, void* out);

// REDUCE_SUM of i32, REDUCE_MAX and REDUCE_MIN of i8, i16 and i32; null: another.
RowsReducer rows_reducer(Operator op, DType type);

}  // namespace tosaic::cpu
