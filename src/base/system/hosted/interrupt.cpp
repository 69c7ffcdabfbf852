// SPDX-License-Identifier: Apache-2.0
#include "base/system/interrupt.h"

#include <chrono>

#include "base/diagnostic.h"
#include "base/system/clock.h"

namespace tosaic {
namespace {

using Clock = SteadyClock;
thread_local const std::function<bool()>* current = nullptr;
thread_local Clock::time_point next;
constexpr std::chrono::milliseconds pause{50};

}  // namespace

Interruptible::Interruptible(const std::function<bool()>& wanted) : before_(current) {
  if (!wanted) return;
  current = &wanted;
  next = Clock::now() + pause;
}
Interruptible::~Interruptible() { current = before_; }

Status go_on() {
  if (!current) return {};
  const Clock::time_point now = Clock::now();
  if (now < next) return {};
  next = now + pause;
  if (!(*current)()) return {};
  return error("run.cancelled", "the run was ended from outside")
      .hint("what the program keeps from run to run may be half done: reset the session before it goes on");
}

}  // namespace tosaic
