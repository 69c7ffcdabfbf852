// SPDX-License-Identifier: Apache-2.0
// A kernel call whose tensors have other sizes in other runs, or whose arguments are numbers that the program computes:
// kernels are made for what is at hand, as ExecuTorch's own do their work for any sizes.
#pragma once
#include "runtime/kernel.h"

namespace tosaic::runtime {

// Who makes kernels of a method, and of what. Shared by its clones.
struct Making {
  std::shared_ptr<const void> keeps;  // what `plan` is a part of
  const pte::Plan* plan = nullptr;
  std::vector<char> changing, used;  // as in KernelContext
  int threads = 0;
  bool interpret = false;
  KernelFactory factory;

  // For the whole run, or for what is in the cells `now`.
  KernelContext context(bool now, MemorySource memory = {}) const {
    return {*plan, changing, used, threads, interpret, now, std::move(memory)};
  }
};

const pte::OperatorName& operator_of(const Making& making, const pte::KernelCall& call);
// A kernel for the sizes that the cells have; `now`: as KernelContext has it. Error: kernel.unknown, what the factory
// says.
Result<std::unique_ptr<Kernel>> fixed_kernel(const Making& making, const pte::KernelCall& call, const Cells& cells,
                                             bool now, const MemorySource& memory = {});
// Whatever kernel does the call. `cells` have the largest sizes now: what cannot be made for those is refused. Errors:
// kernel.unknown, kernel.unsupported, kernel.arguments.
Result<std::unique_ptr<Kernel>> make_kernel(const std::shared_ptr<const Making>& making, const pte::KernelCall& call,
                                            const Cells& cells);

}  // namespace tosaic::runtime
