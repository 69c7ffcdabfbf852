// SPDX-License-Identifier: Apache-2.0
// Which dispatches have to wait for others.
#pragma once
#include <algorithm>
#include <vector>

#include "formats/vulkan_program/vulkan_program.h"

namespace tosaic::vulkan {

inline bool overlap(const vulkan_program::Range& a, const vulkan_program::Range& b) {
  return a.arena == b.arena && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Whether a dispatch has to wait for one of those since the last barrier.
class Hazards {
 public:
  bool conflicts(const vulkan_program::Dispatch& d) const {
    return std::ranges::any_of(d.ranges, [&](const vulkan_program::Range& mine) {
      return std::ranges::any_of(open_, [&](const vulkan_program::Range& other) {
        return (mine.written || other.written) && overlap(mine, other);
      });
    });
  }
  void add(const vulkan_program::Dispatch& d) {
    for (const vulkan_program::Range& r : d.ranges)
      if (r.arena != vulkan_program::Arena::constants) open_.push_back(r);
  }
  void clear() { open_.clear(); }

 private:
  std::vector<vulkan_program::Range> open_;
};

}  // namespace tosaic::vulkan
