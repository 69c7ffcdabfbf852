// SPDX-License-Identifier: Apache-2.0
// One kernel call of a program, made ready to run. The runtime itself has only what moves or counts without arithmetic
// on tensors (copies, sizes, sums of integers), in prim_kernel.cpp; it is given a factory of the others.
#pragma once
#include <functional>
#include <memory>

#include "runtime/cells.h"

namespace tosaic::runtime {

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status run(Cells& cells) = 0;
  // The same call for another method of the same program, which may run beside this one; weights are shared.
  virtual Result<std::unique_ptr<Kernel>> clone() const = 0;
};

struct KernelContext {
  const pte::Plan& plan;
  const std::vector<char>& changing;  // by value: its number, or what memory it means, changes while the method runs
  const std::vector<char>& used;      // by value: something besides the call that makes it refers to it
  int threads = 0;
  bool interpret = false;
};

// "aten::add.out"
std::string name_of(const pte::OperatorName& name);

// Makes a kernel that the runtime has not of itself. Errors: kernel.unknown, kernel.unsupported, kernel.arguments.
using KernelFactory = std::function<Result<std::unique_ptr<Kernel>>(const KernelContext& context,
                                                                    const pte::KernelCall& call, const Cells& cells)>;
// nullptr: not one of these.
Result<std::unique_ptr<Kernel>> make_prim_kernel(const pte::OperatorName& name, const pte::KernelCall& call,
                                                 const Cells& cells);
// Does this kernel only copy? Then it takes any tensors.
bool copies(const pte::OperatorName& name);
// Does the kernel give a size of its tensor, whatever that is when it runs?
bool asks_for_size(const pte::OperatorName& name);
// Which argument a prim kernel writes a number to; -1: none.
std::int32_t written_number(const pte::OperatorName& name, const pte::KernelCall& call);

}  // namespace tosaic::runtime
