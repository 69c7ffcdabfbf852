// SPDX-License-Identifier: Apache-2.0
// A program for a board: built around a .pte, and run.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "boards/board.h"
#include "formats/pte/pte_file.h"
#include "ir/tensor.h"

namespace tosaic::boards {

// What the firmware has of a memory, for people and for the check that it fits.
struct MemoryUse {
  std::string region;
  std::uint64_t used = 0, has = 0;
};
std::string table_of(const std::vector<MemoryUse>& uses);

struct Built {
  std::string npu;
  std::uint64_t arena_bytes = 0;  // the bound that it was linked with
  std::vector<MemoryUse> uses;
  Bytes elf;
  Bytes map;  // the linker's: what lies where, and whose it is
};
struct BuildRequest {
  std::string npu;                // the board's; empty: the program's
  std::uint64_t arena_bytes = 0;  // 0: as firmware_arena says
  bool registers = false;         // for a board with an NPU, not for QEMU
};
// Checks the program and links it. Without one (`pte` empty), the firmware reads program.pte when it is run, and has
// all of the board's arena. Errors: device.delegate, device.kernel, device.product, device.memory, device.tool,
// device.link, method.sizes-vary.
Result<Built> build_firmware(const Bytes& pte, const std::string& name, const Board& board,
                             const BuildRequest& request);

struct Ran {
  std::vector<Tensor> outputs;
  std::string said;  // by the firmware
};
// In QEMU, with a plug-in of it or without ("": "FILE,OPTION=VALUE"). Errors: device.tool, device.run.
// `pte` is for a firmware without a program; else empty.
Result<Ran> run_firmware(const std::string& elf, const Bytes& pte, const std::vector<Tensor>& inputs,
                         const std::string& plugin);

// Does firmware have the delegates that it needs? One method, whose delegates are Ethos-U's.
bool may_be_firmware(const pte::Program& program);
// Of the NPU's memory regions, by number: the most bytes that one of the first method's delegates works in.
using NpuRegions = std::array<std::uint64_t, 8>;
Result<NpuRegions> npu_regions(const pte::Program& program);
// An upper bound of what a firmware's arena needs for the program's first method, which there must be.
Result<std::uint64_t> firmware_arena(const pte::Program& program);

}  // namespace tosaic::boards
