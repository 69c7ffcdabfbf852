// SPDX-License-Identifier: Apache-2.0
#include "firmware/board_memory.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/diagnostic.h"
#include "base/size_text.h"
#include "ir/type.h"

namespace tosaic::firmware {
namespace {

// Nothing where there is no NPU.
std::string of_npu(std::string_view what, std::uint64_t bytes) {
  return bytes == 0 ? "" : fmt::format("{}{}", what, kib(bytes));
}

std::string type_text(const c_source::PeakTensor& tensor) {
  return to_string(tensor.type.with(std::optional<Scales>{}));
}

Diagnostic too_much(const char* code, const char* what, std::uint64_t needed, std::uint64_t has, const char* option) {
  return error(code, fmt::format("the firmware needs {} of {}, and the board has {} (--{})", kib(needed), what,
                                 kib(has), option));
}

}  // namespace

std::uint64_t BoardMemory::arena() const {
  std::uint64_t bytes = 0;
  for (const Arena& arena : arenas) bytes += arena.bytes;
  return bytes;
}

Status fits(const BoardMemory& memory, const BoardLimits& limits) {
  if (limits.flash && memory.flash() > *limits.flash) {
    Diagnostic why = too_much("board.flash", "flash", memory.flash(), *limits.flash, "flash");
    why.notes.push_back(fmt::format("weights and tables take {}{}; code comes on top, which only your compiler knows",
                                    kib(memory.weights),
                                    of_npu(", the NPU's commands and weights ", memory.npu_flash)));
    why.help = "a narrower model; --weights int4 halves the weights of convolutions and linear layers";
    return why;
  }
  if (limits.sram && memory.ram() > *limits.sram) {
    Diagnostic why = too_much("board.sram", "SRAM", memory.ram(), *limits.sram, "sram");
    why.notes.push_back(fmt::format("the arena takes {}, states {}{}; the stack comes on top", kib(memory.arena()),
                                    kib(memory.states), of_npu(", the NPU's own memory ", memory.npu_ram)));
    for (const BoardMemory::Arena& arena : memory.arenas) {
      if (arena.at_peak.empty()) continue;
      why.notes.push_back(
          fmt::format("of the arena of '{}', {}, these are alive at once:", arena.method, kib(arena.bytes)));
      for (const auto& tensor : arena.at_peak)
        why.notes.push_back(fmt::format("{} %{} {}{}{}", kib(tensor.type.storage_bytes()), tensor.name,
                                        type_text(tensor), tensor.place.empty() ? "" : ", ", tensor.place));
    }
    why.help = "smaller inputs, a stride early in the model, or fewer channels there; --io quantized leaves out floats";
    return why;
  }
  return {};
}

std::string memory_members(const BoardMemory& memory) {
  std::string peak;
  for (const BoardMemory::Arena& arena : memory.arenas)
    for (const auto& tensor : arena.at_peak)
      peak += fmt::format("{}    {{\"method\": {}, \"tensor\": {}, \"type\": {}, \"bytes\": {}, \"source\": {}}}",
                          peak.empty() ? "" : ",\n", json_quote(arena.method), json_quote(tensor.name),
                          json_quote(type_text(tensor)), tensor.type.storage_bytes(), json_quote(tensor.place));
  return fmt::format(
      "  \"flash\": {{\"weights\": {}, \"npu\": {}}},\n"
      "  \"ram\": {{\"arena\": {}, \"states\": {}, \"npu\": {}}},\n"
      "  \"peak\": [\n{}\n  ],\n",
      memory.weights, memory.npu_flash, memory.arena(), memory.states, memory.npu_ram, peak);
}

}  // namespace tosaic::firmware
