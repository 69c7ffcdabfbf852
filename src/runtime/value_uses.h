// SPDX-License-Identifier: Apache-2.0
// What the instructions of a program do with its values, told before they run.
#pragma once
#include <functional>
#include <vector>

#include "formats/pte/pte_file.h"
#include "runtime/cells.h"

namespace tosaic::runtime {

// By cell: what changes while the method runs, and what is read at all; as in KernelContext.
struct ValueUses {
  std::vector<char> changing, used;
};
ValueUses value_uses(const pte::Plan& plan, const Cells& cells);

bool share_memory(const TensorCell& a, const TensorCell& b);        // some of it
using InputsOf = std::function<std::size_t(std::size_t delegate)>;  // how many a delegate takes

// By cell: what others than delegates read, what delegates write before anybody reads it, what occurs at all.
struct DelegateUses {
  std::vector<char> read_by_others, written_first, met;
};
DelegateUses delegate_uses(const pte::Plan& plan, const Cells& cells, const InputsOf& inputs_of);
// May it stay in the caller's memory, of each of these inputs: delegates alone read it.
std::vector<char> lendable(const std::vector<std::int32_t>& inputs, const Cells& cells, const DelegateUses& uses);
// May it be written to memory of the caller's, of each of these outputs: a delegate writes it, and others do not read
// it.
std::vector<char> written_anywhere(const std::vector<std::int32_t>& outputs, const pte::Plan& plan, const Cells& cells,
                                   const DelegateUses& uses);

}  // namespace tosaic::runtime
