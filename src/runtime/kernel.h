// SPDX-License-Identifier: Apache-2.0
// One kernel call of a program, made ready to run. The runtime itself has only what moves or counts without arithmetic
// on tensors (copies, sizes, sums of integers), in prim_kernel.cpp; it is given a factory of the others.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "runtime/cells.h"

namespace tosaic::runtime {

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status run(Cells& cells) = 0;
  // The same call for another method of the same program, which may run at the same time as this one; weights are
  // shared.
  virtual Result<std::unique_ptr<Kernel>> clone() const = 0;
};

struct KernelContext {
  const pte::Plan& plan;
  const std::vector<char>& changing;  // by value: its number, or what memory it means, changes while the method runs
  const std::vector<char>& used;      // by value: something besides the call that makes it refers to it
  int threads = 0;
  bool interpret = false;
  bool now = false;          // for what the cells hold now: numbers that change are known
  MemorySource memory = {};  // of what it computes with while it runs; empty: the heap
};

// "aten::add.out"
std::string name_of(const pte::OperatorName& name);

// Cells of a call's results, and their shapes; in-place calls, which leave the shape as it is, have none.
using ResultShapes = std::vector<std::pair<std::int32_t, Shape>>;

// Makes kernels that the runtime has not of itself. Errors: kernel.unknown, kernel.unsupported, kernel.arguments.
struct KernelFactory {
  using Make = Result<std::unique_ptr<Kernel>>(const KernelContext&, const pte::KernelCall&, const Cells&);
  using Shapes = Result<ResultShapes>(const KernelContext&, const pte::KernelCall&, const Cells&);
  using Results = Result<std::vector<std::int32_t>>(const KernelContext&, const pte::KernelCall&, const Cells&);
  std::function<Make> make;        // for tensors of the sizes that the cells have
  std::function<Shapes> shapes;    // of the results, for operands of these sizes
  std::function<Results> results;  // their cells, whatever sizes and numbers there are
};
// nullptr: not one of these.
Result<std::unique_ptr<Kernel>> make_prim_kernel(const pte::OperatorName& name, const pte::KernelCall& call,
                                                 const Cells& cells);
// Does this kernel only copy? Then it takes any tensors.
bool copies(const pte::OperatorName& name);
// Which argument a copy writes, and the shape that it has then, for the operand as it is now. Error kernel.arguments.
std::int32_t copied_to(const pte::OperatorName& name, const pte::KernelCall& call);
Result<Shape> copied_shape(const pte::OperatorName& name, const pte::KernelCall& call, const Cells& cells);
// Which argument a prim kernel writes a number to; -1: none.
std::int32_t written_number(const pte::OperatorName& name, const pte::KernelCall& call);

}  // namespace tosaic::runtime
