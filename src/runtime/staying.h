// SPDX-License-Identifier: Apache-2.0
// Buffers that stay with a delegate from run to run: what a GPU holds is not copied to the host and back.
#pragma once
#include <utility>
#include <vector>

#include "runtime/cells.h"
#include "runtime/delegate.h"

namespace tosaic::runtime {

// Of the arguments of a call, input and output that are one buffer, which nothing else in the method reads or writes.
using StayingArguments = std::vector<std::pair<std::size_t, std::size_t>>;
StayingArguments staying_arguments(const pte::DelegateCall& call, const pte::Plan& plan, const Cells& cells,
                                   const OpenDelegate& delegate);

}  // namespace tosaic::runtime
