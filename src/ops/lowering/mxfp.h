// SPDX-License-Identifier: Apache-2.0
// Layers with block-scaled weights and activations, as ExecuTorch's `to_mxfp` leaves them (torch.ops.tosa_mxfp):
// weights are constants `weight_qdata`, whose last dim is blocks of 32 elements, and `weight_scale`; the input is
// rounded to the same type of elements. Both in TOSA 1.1's operators where the target has them, else in those of 1.0.
#pragma once
#include "ops/op.h"

namespace tosaic::mxfp {

// Elements of a type, and a scale for each block of them; of a weight constants.
struct Tensor {
  Val elements, scales;
};
bool has_operators(const Builder& b);
Tensor weight(const Call& call);
// A tensor whose last dim is whole blocks.
Tensor rounded(Val x, DType element);
Val as_floats(const Tensor& tensor);
// The same of a weight; where its elements are multiples of a fraction it is whole numbers of 8 bits times scales,
// which executors of matrix products keep.
Val as_whole_numbers(const Tensor& weight);
Attrs block_size();

}  // namespace tosaic::mxfp
