// SPDX-License-Identifier: Apache-2.0
// What a model takes of a board's memory, as far as it is known before a compiler sees the C: all but code and stack.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "c_source/print.h"

namespace tosaic::firmware {

// In bytes.
struct BoardMemory {
  struct Arena {
    std::string method;
    std::uint64_t bytes = 0;
    std::vector<c_source::PeakTensor> at_peak;
  };
  std::uint64_t weights = 0, npu_flash = 0, states = 0, npu_ram = 0;
  std::vector<Arena> arenas;

  std::uint64_t arena() const;
  std::uint64_t flash() const { return weights + npu_flash; }
  std::uint64_t ram() const { return arena() + states + npu_ram; }
};

// What the user says that there is (--flash, --sram); nothing: enough.
struct BoardLimits {
  std::optional<std::uint64_t> flash, sram;
};

// Errors: board.flash and board.sram, with what takes it: of the arena the tensors that are alive where most is.
Status fits(const BoardMemory& memory, const BoardLimits& limits);

// The members "flash", "ram" and "peak" of memory.json.
std::string memory_members(const BoardMemory& memory);

}  // namespace tosaic::firmware
