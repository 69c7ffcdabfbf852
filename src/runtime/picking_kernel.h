// SPDX-License-Identifier: Apache-2.0
// Kernels whose results are as large as values say: x[mask], masked_select, nonzero, and x[mask] = rows. They move
// elements and count, like the prim kernels.
#pragma once
#include <span>

#include "runtime/kernel.h"

namespace tosaic::runtime {

// Is the call one of these? `operands`: the dtypes of its tensors in order, nothing for None.
bool picks_by_value(const pte::OperatorName& name, std::span<const std::optional<DType>> operands);

// nullptr: not one of these. While it runs: kernel.size, where a result is larger than the program's memory for it.
Result<std::unique_ptr<Kernel>> make_picking_kernel(const pte::Plan& plan, const pte::KernelCall& call,
                                                    const Cells& cells);

// Gives a result its shape; the error, where the program's memory for it is smaller.
Status resize(const pte::Plan& plan, const pte::KernelCall& call, Cells& cells, std::int32_t result,
              const Shape& shape);

}  // namespace tosaic::runtime
