// SPDX-License-Identifier: Apache-2.0
// Kernels of programs whose sizes are numbers: instead of runtime/symbolic, where nothing else is linked.
#include "runtime/sized_kernel.h"

namespace tosaic::runtime {

Result<std::unique_ptr<Kernel>> make_kernel(const std::shared_ptr<const Making>& making, const pte::KernelCall& call,
                                            const Cells& cells) {
  return fixed_kernel(*making, call, cells, false);
}

}  // namespace tosaic::runtime
