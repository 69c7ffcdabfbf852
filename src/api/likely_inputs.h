// SPDX-License-Identifier: Apache-2.0
// What a session can be given by someone who has nothing to give.
#pragma once
#include <vector>

#include "tosaic/session.hpp"

namespace tosaic {

// The program's own examples, or zeros of the largest sizes. Errors: run.input-count (a size without a bound),
// memory.limit.
Result<std::vector<OwnedTensor>> likely_inputs(const Session& session);

}  // namespace tosaic
