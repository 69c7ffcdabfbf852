// SPDX-License-Identifier: Apache-2.0
// Products of few rows of f32 with a matrix that the program computes, read where it lies: packing it would be most of
// the work. So the query of one token meets the keys and values of all tokens before it, which come from memory.
#pragma once
#include "cpu/matrix/gemm_f32.h"
#include "cpu/matrix/matmul.h"

namespace tosaic::cpu {

bool takes_few_rows(const MatmulShape& shape);

// Rows and panels of `part` of clamp(A x B): a and c point at the part's first row, b at all of B. Results do not
// depend on how rows and columns are shared out.
struct FewRows {
  const Sharing::Part& part;
  std::int64_t rows;  // of all parts
  const PanelsF32& panels;
  const float *a, *b;
  float lowest, highest;  // NaN passes through
  float* c;
};
// b is [n][k].
void multiply_turned(const FewRows& few);
// b is [k][n]. Sums are added in the order of k, as with packed panels.
void multiply_straight(const FewRows& few);

}  // namespace tosaic::cpu
