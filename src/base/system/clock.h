// SPDX-License-Identifier: Apache-2.0
// A clock that only goes forward.
#pragma once
#include <chrono>

namespace tosaic {

// As the standard library wants clocks; on a board, from its counter of cycles.
struct SteadyClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

}  // namespace tosaic
