// SPDX-License-Identifier: Apache-2.0
// Operators that give their first operand with elements of another one in it: index_copy, index_put, slice_scatter, ...
#pragma once
#include "ops/schema.h"

namespace tosaic {

// The other one is an argument of one of these names.
inline bool puts(const Schema& schema) {
  return schema.argument("values") || schema.argument("source") || schema.argument("src");
}

}  // namespace tosaic
