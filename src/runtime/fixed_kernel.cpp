// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "runtime/sized_kernel.h"

namespace tosaic::runtime {

const pte::OperatorName& operator_of(const Making& making, const pte::KernelCall& call) {
  return making.plan->operators[at(call.op)];
}

Result<std::unique_ptr<Kernel>> fixed_kernel(const Making& making, const pte::KernelCall& call, const Cells& cells,
                                             bool now, const MemorySource& memory) {
  const pte::OperatorName& name = operator_of(making, call);
  TOSAIC_TRY(auto prim, make_prim_kernel(name, call, cells));
  if (prim) return prim;
  if (making.factory.make) return making.factory.make(making.context(now, memory), call, cells);
  return error("kernel.unknown", fmt::format("{} is not a kernel that this runtime has", name_of(name)))
      .hint("delegate all operators, or run the program where kernels are linked in");
}

}  // namespace tosaic::runtime
