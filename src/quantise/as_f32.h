// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/tensor.h"

namespace tosaic {

// The elements as f32. The bytes of a tensor that has them already are shared.
inline Bytes as_f32(const Tensor& tensor) {
  return tensor.type.dtype == DType::f32 ? tensor.data : converted({tensor.type, tensor.data.data()}, DType::f32);
}

}  // namespace tosaic
