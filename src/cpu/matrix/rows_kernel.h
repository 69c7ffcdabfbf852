// SPDX-License-Identifier: Apache-2.0
// Products with weights as they lie in memory, [n][k] in f32, f16 or bf16, at any byte: sums of products along k, for
// few rows of activations. An element's sum does not depend on the columns next to it; a row alone sums in another
// order.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace tosaic::cpu {

struct RowsCall {
  const float* a;         // [rows][k]
  std::int64_t a_stride;  // elements between rows
  int rows;               // 1..max_rows
  std::int64_t k;
  const std::byte* weight;  // [columns][k]
  int columns;              // 1..columns_at_once; of one row and nothing ahead twice as many, too
  const float* bias;        // [columns_at_once]
  std::int64_t ahead;       // how many bytes behind a weight those lie that are fetched with it; 0: none are
  float lowest, highest;    // NaN passes through
  float* c;
  std::int64_t c_stride;
};

struct RowsKernel {
  static constexpr int columns_at_once = 4;
  int max_rows;
  void (*f32)(const RowsCall&);
  void (*f16)(const RowsCall&);
  void (*bf16)(const RowsCall&);
  // Floats of 16 bits to f32, exactly.
  void (*widen_f16)(const std::byte* from, std::int64_t count, float* to);
  void (*widen_bf16)(const std::byte* from, std::int64_t count, float* to);

  void product(DType type, const RowsCall& call) const {
    (type == DType::f32 ? f32 : type == DType::f16 ? f16 : bf16)(call);
  }
  // Of f16 and bf16.
  void widen(DType type, const std::byte* from, std::int64_t count, float* to) const {
    (type == DType::f16 ? widen_f16 : widen_bf16)(from, count, to);
  }
};
const RowsKernel& rows_kernel();  // for the instruction set in use

}  // namespace tosaic::cpu
