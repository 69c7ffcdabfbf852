// SPDX-License-Identifier: Apache-2.0
// Boards that firmware is built for: their memories, and the libraries that `make device` built for them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tosaic::boards {

// A line of a board's memory.ld.
struct MemoryRegion {
  std::string name;  // CODE, MODEL, RAM, ARENA, STAND_IN
  std::uint64_t origin = 0, bytes = 0;
};

struct Board {
  std::string name;                // "mps3-an547"
  std::string folder;              // linker scripts, libtosaic_board.a
  std::string libraries;           // libtosaic_firmware.a and others
  std::vector<std::string> flags;  // of the compiler
  std::vector<MemoryRegion> memory;
  const MemoryRegion* find(std::string_view region) const;
};

// In `libraries`, or where they are found: $TOSAIC_DEVICE, share/tosaic/device of an installation,
// build/cortex-m55/device of a checkout. Errors: device.libraries, device.board.
Result<Board> find_board(const std::string& name, const std::string& libraries);

}  // namespace tosaic::boards
