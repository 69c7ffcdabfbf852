// SPDX-License-Identifier: Apache-2.0
// What is asked of sizes that may be symbolic.
#pragma once
#include "ir/type.h"

namespace tosaic {

Dim product_of(const std::vector<Dim>& dims);
Dim elements_of(const Shape& shape);
// In elements, of a dense tensor.
std::vector<Dim> row_major_strides(const Shape& shape);
// The largest, the smallest that it can be. UnknownSize: it has no such bound.
std::int64_t most(const Dim& dim);
std::int64_t least(const Dim& dim);
// For all values that its symbols can have; false, too, where nobody knows.
bool is_multiple(const Dim& dim, std::int64_t of);
// With each dim at its upper bound. UnknownSize: one has none.
TensorType largest(const TensorType& type);

// 1 / size, as it is computed wherever a constant is one.
inline float reciprocal_of(std::int64_t size) { return static_cast<float>(1.0 / static_cast<double>(size)); }

// A SLICE whose beginning follows from sizes says it in this attribute, and not in its operand.
inline constexpr const char* symbolic_start = "symbolic_start";

}  // namespace tosaic
