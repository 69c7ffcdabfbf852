// SPDX-License-Identifier: Apache-2.0
#include "base/system/clock.h"

#include "base/system/bare/board.h"

namespace tosaic {

SteadyClock::time_point SteadyClock::now() noexcept {
  return time_point(duration(static_cast<std::int64_t>(tosaic_board_nanoseconds())));
}

}  // namespace tosaic
