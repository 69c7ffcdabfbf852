// SPDX-License-Identifier: Apache-2.0
// A loop that data end may have no end: whoever runs one counts its turns.
#pragma once
#include <cstdint>

#include "base/result.h"

namespace tosaic {

// A million, or what the environment variable TOSAIC_LOOP_LIMIT says. Error run.loop-limit: it says no number of turns.
Result<std::int64_t> most_turns();
// run.loop-limit: a loop would take one turn more than these.
Diagnostic too_many_turns(std::int64_t most);

}  // namespace tosaic
