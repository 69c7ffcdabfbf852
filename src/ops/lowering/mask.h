// SPDX-License-Identifier: Apache-2.0
// Masks among quantised tensors.
#pragma once
#include "ops/builder.h"

namespace tosaic {

// The reals 0 and 1: quantised values of scale 1.
inline Val reals_of_mask(Val mask, DType dtype) {
  Builder& b = mask.builder();
  return b.relabelled(b.cast(mask, dtype), {dtype, mask.shape(), Scales{}});
}

}  // namespace tosaic
