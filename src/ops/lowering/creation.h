// SPDX-License-Identifier: Apache-2.0
// For operators that make a tensor from nothing but arguments: zeros, full_like, arange, ...
#pragma once
#include <span>

#include "ops/op.h"

namespace tosaic::creation {

// The `dtype` argument, otherwise what the program declares, otherwise `otherwise`.
DType dtype_of(const Call& call, DType otherwise);
// What a Python number becomes by default.
DType dtype_of_scalar(const Call& call, std::string_view name);
// The dtype of x as PyTorch sees it: a quantised tensor stands for floats.
DType dtype_of_tensor(Val x);
// Refuses sizes that are negative or more than a constant may have (2^28 elements), whatever a file says.
void check_size(const Call& call, const Shape& shape);
void check_count(const Call& call, double elements);
Val filled(const Call& call, double value, DType otherwise, const Shape& shape);
// The core form of what fills a tensor whose size is known: aten.full.
Node core_filled(const CoreCall& call, Attr value);
Val vector(const Call& call, std::span<const double> values, DType dtype);  // rank 1

}  // namespace tosaic::creation
