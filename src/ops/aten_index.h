// SPDX-License-Identifier: Apache-2.0
// Gathering by index tensors over TOSA's GATHER, which takes [N,K,C] by [N,W] i32 and no booleans.
#pragma once
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

inline Val gathered(Val values, Val indices) {
  Builder& b = values.builder();
  if (indices.dtype() != DType::i32) {
    if (!is_integer(indices.dtype()) || indices.dtype() == DType::i64)
      b.refuse("aten.index.dtype", "indices of dtype " + std::string(name_of(indices.dtype())) + " are not 32-bit integers");
    indices = b.cast(indices, DType::i32);
  }
  if (values.dtype() == DType::boolean) return b.cast(b.gather(b.cast(values, DType::i8), indices), DType::boolean);
  return b.gather(values, indices);
}

// x.index_select(axis, indices): no transposes, the dims before the axis are GATHER's batch.
inline Val selected(Val x, int axis, Val indices) {
  Builder& b = x.builder();
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  const std::int64_t count = indices.shape().elements();
  Val all = b.tile(b.reshape(indices, {1, count}), {outer, 1});
  Val y = gathered(b.reshape(x, {outer, x.dim(axis), inner}), all);
  auto dims = x.shape().dims();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, indices.shape().begin(), indices.shape().end());
  return b.reshape(y, Shape(dims));
}

// Negative indices count from the end of a dim of `size`.
inline Val wrapped(Val indices, std::int64_t size) {
  Builder& b = indices.builder();
  Val zero = b.scalar(0, DType::i32);
  return b.select(b.binary("greater", zero, indices), b.add(indices, b.scalar(static_cast<double>(size), DType::i32)), indices);
}

}  // namespace tosaic
