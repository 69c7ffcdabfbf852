// SPDX-License-Identifier: Apache-2.0
// What is computed of rows of f32, for the instruction set in use. Private to src/cpu/rows.
#pragma once
#include <cstdint>

namespace tosaic::cpu {

// `rows` neighbouring rows of `length` elements.
struct NeighbouringRows {
  const float* from;
  float* to;
  std::int64_t rows, length;
};
// As the operator's definition says (ops/extension/softmax.cpp).
struct SoftmaxCall : NeighbouringRows {
  const std::uint8_t* shown;  // a row of the mask: `length` booleans; null: there is none
  std::int64_t shown_stride;  // from row to row
};
using SoftmaxKernel = void (*)(const SoftmaxCall&);
SoftmaxKernel softmax_kernel(bool safe, bool masked);

// As the operators' definitions say (ops/definitions/norms.cpp).
struct NormCall : NeighbouringRows {
  float epsilon;
  const float *weight, *bias;  // of `length` elements; null: ones and zeros
};
using NormKernel = void (*)(const NormCall&);
NormKernel norm_kernel(bool centred);  // false: RMS norm

struct QuantiseRowsCall {
  const float* from;
  std::int64_t rows, length;
  float least_scale;
  std::int8_t* quantised;
  float *scale, *zero;  // one for each row
};
using QuantiseRowsKernel = void (*)(const QuantiseRowsCall&);
QuantiseRowsKernel quantise_rows_kernel();

}  // namespace tosaic::cpu
