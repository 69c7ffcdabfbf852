// SPDX-License-Identifier: Apache-2.0
#include "ethosu_device/fault.h"

#include "tosaic/ethosu_registers.h"

namespace tosaic::ethosu_device {
namespace {

// By the names that range() in ethosu/memory.h is called with.
Channel channel_of(std::string_view what) {
  if (what == "OFM") return Channel::ofm;
  if (what == "the weight stream") return Channel::weights;
  if (what == "the scale stream") return Channel::scales;
  if (what == "the DMA destination") return Channel::dma_write;
  if (what == "the DMA source" || what == "the index list") return Channel::dma_read;
  return Channel::ifm;
}

}  // namespace

std::uint32_t bus_fault(Channel channel, std::uint8_t port) {
  const std::uint32_t fault_interface = TOSAIC_ETHOSU_STATUS_FAULT_INTERFACE;
  return TOSAIC_ETHOSU_STATUS_BUS_FAULT | (port ? fault_interface : 0u) |
         static_cast<std::uint32_t>(channel) << TOSAIC_ETHOSU_STATUS_FAULT_CHANNEL_SHIFT;
}

std::uint32_t fault_of(const Diagnostic& why, ethosu::Product product, const Ports& ports) {
  const bool u85 = product == ethosu::Product::u85;
  if (const auto access = ethosu::access_of(why))
    return bus_fault(channel_of(access->what), ports.region[static_cast<std::size_t>(access->region)]);
  if (why.code == "ethosu.weights" && !u85) return TOSAIC_ETHOSU_STATUS_WEIGHT_FAULT;
  if (why.code == "ethosu.branch" && u85) return TOSAIC_ETHOSU_STATUS_BRANCH_FAULT;
  return TOSAIC_ETHOSU_STATUS_PARSE_ERROR;
}

}  // namespace tosaic::ethosu_device
