// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor lie in memory: PyTorch's dim orders.
#pragma once
#include "contract/tensors.h"
#include "runtime/cells.h"

namespace tosaic::runtime {

// Where dims of one are all that is out of order, elements lie in row-major order.
bool lies_in_order(const TensorCell& cell);

// A tensor as a delegate sees it: as it lies, with its sizes in the order of memory. ExecuTorch's Arm flow compiles
// payloads for that; tosaic's programs have row-major tensors only. `wanted` is what the payload takes there, or null.
TensorType type_in_memory(const TensorCell& cell, const tosaic_delegate_tensor_info* wanted);

}  // namespace tosaic::runtime
