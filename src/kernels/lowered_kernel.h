// SPDX-License-Identifier: Apache-2.0
// The host's kernels. There is no second kernel library: a kernel is the PyTorch operator's lowering, compiled for the
// types of one call. This is what links the operators to the runtime; a method is given it, or does without.
#pragma once
#include "runtime/kernel.h"

namespace tosaic::kernels {

runtime::KernelFactory lowered_kernels();

}  // namespace tosaic::kernels
