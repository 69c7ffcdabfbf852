// SPDX-License-Identifier: Apache-2.0
// The simulator stands in for an NPU, and its memory for what a real one has inside: on a board it is not taken from
// the program's.
#pragma once

namespace tosaic {

class StandInMemory {  // while it lives
 public:
  StandInMemory();
  ~StandInMemory();
  StandInMemory(const StandInMemory&) = delete;
  StandInMemory& operator=(const StandInMemory&) = delete;

 private:
  [[maybe_unused]] void* before_;
};

}  // namespace tosaic
