// SPDX-License-Identifier: Apache-2.0
// Parts that a device brings one after the other, for many threads that wait for them.
#pragma once
#include <atomic>
#include <functional>

#include "base/system/clock.h"

namespace tosaic::vulkan {

// How many have come, as one thread at a time finds out: many that ask a driver hold each other up.
class Arrivals {
 public:
  // `has_come`: has part 1, 2, ...? Asked for the next one only, and for none that nobody waits for.
  Arrivals(std::function<bool(std::size_t part)> has_come, double most_seconds)
      : has_come_(std::move(has_come)), most_seconds_(most_seconds) {}
  // false: it took too long, for whoever waits.
  bool wait_for(std::size_t part) {
    while (come_.load(std::memory_order_acquire) < part && !late_)
      if (!asking_.test_and_set(std::memory_order_acquire)) {
        ask(part);
        asking_.clear(std::memory_order_release);
      }
    return come_.load(std::memory_order_acquire) >= part;
  }

 private:
  void ask(std::size_t part) {
    const std::size_t next = come_ + 1;
    if (next > part) return;  // somebody else has asked meanwhile
    if (has_come_(next)) come_.store(next, std::memory_order_release);
    if (std::chrono::duration<double>(SteadyClock::now() - began_).count() > most_seconds_) late_ = true;
  }

  const std::function<bool(std::size_t)> has_come_;
  const double most_seconds_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  std::atomic<std::size_t> come_ = 0;
  std::atomic<bool> late_ = false;
  std::atomic_flag asking_;
};

}  // namespace tosaic::vulkan
