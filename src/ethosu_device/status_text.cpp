// SPDX-License-Identifier: Apache-2.0
// The STATUS register in words. Includes nothing but the register map: firmware compiles this file as it is.
#include "tosaic/ethosu_registers.h"

namespace {

// Counts on when the room is full: the caller learns how long the text is.
struct Line {
  char* to;
  size_t room, length;
  void put(char c) {
    if (length + 1 < room) to[length] = c;
    ++length;
  }
  void put(const char* words) {
    for (; *words; ++words) put(*words);
  }
  void part(const char* words) {
    if (length) put("; ");
    put(words);
  }
  void digits(uint32_t value) {
    const char* const hex = "0123456789abcdef";
    for (int shift = 12; shift >= 0; shift -= 4) put(hex[value >> shift & 15]);
  }
};

const char* channel_of(uint32_t number) {
  switch (number) {
    case 0: return "a read of commands";
    case 1: return "an IFM read";
    case 2: return "a read of weights";
    case 3: return "a read of scales";
    case 4: return "a DMA read";
    case 8: return "an OFM write";
    case 9: return "a DMA write";
    default: return "an unknown access";
  }
}

}  // namespace

extern "C" size_t tosaic_ethosu_status_text(uint32_t product, uint32_t status, char* text, size_t size) {
  Line line{text, size, 0};
  const auto has = [&](uint32_t bit) { return (status & bit) != 0; };
  const bool u85 = product == 85;
  line.part(has(TOSAIC_ETHOSU_STATUS_RESETTING) ? "resetting"
            : has(TOSAIC_ETHOSU_STATUS_RUNNING) ? "running"
                                                : "stopped");
  if (has(TOSAIC_ETHOSU_STATUS_END_REACHED)) line.part("end of the commands reached");
  if (has(TOSAIC_ETHOSU_STATUS_BUS_FAULT)) {
    line.part("bus fault: ");
    line.put(channel_of(status >> TOSAIC_ETHOSU_STATUS_FAULT_CHANNEL_SHIFT & 15));
    const bool second = has(TOSAIC_ETHOSU_STATUS_FAULT_INTERFACE);
    line.put(u85 ? (second ? " on the external port" : " on the SRAM port") : second ? " on port 1" : " on port 0");
  }
  if (has(TOSAIC_ETHOSU_STATUS_PARSE_ERROR)) line.part("command parse error");
  if (!u85 && has(TOSAIC_ETHOSU_STATUS_WEIGHT_FAULT)) line.part("weight decoder fault");
  if (has(TOSAIC_ETHOSU_STATUS_ECC_FAULT)) line.part("ECC fault of the internal memory");
  if (u85 && has(TOSAIC_ETHOSU_STATUS_BRANCH_FAULT)) line.part("branch fault");
  if (has(TOSAIC_ETHOSU_STATUS_IRQ)) line.part("interrupt raised");
  if (has(TOSAIC_ETHOSU_STATUS_PMU_IRQ)) line.part("interrupt of the PMU raised");
  if (const uint32_t history = status >> TOSAIC_ETHOSU_STATUS_IRQ_HISTORY_SHIFT) {
    line.part("interrupt history 0x");
    line.digits(history);
  }
  if (size) text[line.length < size ? line.length : size - 1] = 0;
  return line.length;
}
