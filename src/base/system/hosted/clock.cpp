// SPDX-License-Identifier: Apache-2.0
#include "base/system/clock.h"

namespace tosaic {

SteadyClock::time_point SteadyClock::now() noexcept {
  return time_point(std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace tosaic
