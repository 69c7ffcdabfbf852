// SPDX-License-Identifier: Apache-2.0
// The simulator's errors as the STATUS bits of the fault that hardware would report.
#pragma once
#include <array>
#include <cstdint>

#include "ethosu/isa.h"
#include "ethosu/memory.h"

namespace tosaic::ethosu_device {

// The AXI port of each region and of the commands: 0 or 1.
struct Ports {
  std::array<std::uint8_t, ethosu::max_regions> region{};
  std::uint8_t commands = 0;
};

enum class Channel : std::uint8_t {
  commands = 0,
  ifm = 1,
  weights = 2,
  scales = 3,
  dma_read = 4,
  ofm = 8,
  dma_write = 9
};
std::uint32_t bus_fault(Channel channel, std::uint8_t port);

// What the simulator refuses without a fault of the hardware's is a command parse error.
std::uint32_t fault_of(const Diagnostic& why, ethosu::Product product, const Ports& ports);

}  // namespace tosaic::ethosu_device
