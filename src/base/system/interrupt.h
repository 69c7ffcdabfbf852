// SPDX-License-Identifier: Apache-2.0
// Ending what runs long: whoever calls it may want it to end, and what runs asks between its steps. On the thread of
// the call, so that nothing on the way needs to know.
#pragma once
#include <functional>

#include "base/result.h"

namespace tosaic {

// While it lives, `wanted` is asked on this thread; an empty one leaves what was asked before.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& wanted);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::function<bool()>* before_;
};

// Costs next to nothing: twenty times a second somebody is asked at most. Error: run.cancelled.
Status go_on();

}  // namespace tosaic
