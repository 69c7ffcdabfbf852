// SPDX-License-Identifier: Apache-2.0
// Kernels of ExecuTorch's loops over rows (map, scan): a row out of a tensor, a row into one, by a number that the
// program counts. Where sizes vary, they take what there is when they run.
#pragma once
#include "runtime/kernel.h"

namespace tosaic::runtime {

// nullptr: not one of these. Error: kernel.arguments. While it runs: run.row, kernel.size.
Result<std::unique_ptr<Kernel>> make_row_kernel(const pte::Plan& plan, const pte::KernelCall& call, const Cells& cells);

}  // namespace tosaic::runtime
