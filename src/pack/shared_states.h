// SPDX-License-Identifier: Apache-2.0
// Buffers that several methods of a program write: one place for each name, in a memory behind the methods' own. That
// is how ExecuTorch's MemoryPlanningPass(share_mutable_buffers=True) says it, and what its Module shares between
// methods.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/pte/pte_file.h"
#include "ir/graph.h"

namespace tosaic {

// Of methods that were packed with their states apart. Those without states have the memory as well.
void share_states(pte::Program& program);

// States of one name are of one type, scales included, and begin with the same content. Error: model.state.
struct MethodStates {
  std::string method;
  std::vector<std::pair<State, TensorType>> states;
};
Status states_agree(const std::vector<MethodStates>& methods);

}  // namespace tosaic
