// SPDX-License-Identifier: Apache-2.0
// The graph of a TOSA payload, with the constants that the program keeps next to it.
#pragma once
#include "contract/serve.h"
#include "ir/graph.h"

namespace tosaic::delegates {

Result<Graph> read_tosa(const contract::Opening& opening);

}  // namespace tosaic::delegates
