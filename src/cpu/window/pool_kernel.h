// SPDX-License-Identifier: Apache-2.0
// A window's elements are joined down its columns first, for a whole line of them, then across the joined columns.
// Both are this: elements that stand `tap_step` apart become one.
#pragma once
#include <cstdint>

#include "ir/dtype.h"

namespace tosaic::cpu {

struct PoolCall {
  const void* in;
  void* out;
  std::int64_t pixels,
      pixel_step;  // out has `pixels` times `count` elements, what they are made of is `pixel_step` apart
  std::int64_t count;
  std::int64_t taps, tap_step;
  std::int32_t start = 0;  // sums of i8 and i16 begin with it
  float divisor = 1;       // of means
};
using PoolKernel = void (*)(const PoolCall&);

enum class PoolJoin : std::uint8_t { largest, largest_number, sum, mean };  // largest_number: NaNs are ignored

// Of f32, i8, i16, and for sums i32. Sums of integers are i32, all else has the type of what it is made of.
PoolKernel pool_kernel(PoolJoin join, DType type);

}  // namespace tosaic::cpu
