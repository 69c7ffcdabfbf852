// SPDX-License-Identifier: Apache-2.0
// Compile passes over weights on all cores. Results must not depend on how the work is cut.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/system/thread_pool.h"

namespace tosaic {

// Calls f(first, end) for pieces that together are [0, count), in any order and on several threads when there are
// at least two pieces of `grain`.
template <class F>
void in_parallel(std::size_t count, std::size_t grain, const F& f) {
  if (count == 0) return;
  const std::size_t parts = std::min<std::size_t>(count / std::max<std::size_t>(grain, 1), 64);
  if (parts < 2) return f(std::size_t{0}, count);
  ThreadPool::shared().run(static_cast<std::int64_t>(parts), [&](std::int64_t part, int) {
    const auto i = static_cast<std::size_t>(part);
    f(count * i / parts, count * (i + 1) / parts);
  });
}

}  // namespace tosaic
