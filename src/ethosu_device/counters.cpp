// SPDX-License-Identifier: Apache-2.0
#include "ethosu_device/counters.h"

#include <algorithm>

#include "tosaic/ethosu_registers.h"

namespace tosaic::ethosu_device {
namespace {

constexpr std::uint64_t cycle_bits = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t event_number = 0x3ff;

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

LeastCycles least_cycles(const ethosu::Config& config, const ethosu::Command& command,
                         const ethosu::Registers& registers) {
  const ethosu::Registers& r = registers;
  const std::string_view name = command.row->name;
  const bool dense = name == "OP_CONV", window = dense || name == "OP_DEPTHWISE" || name == "OP_POOL";
  if (name == "OP_DMA_START") return {1, 0};
  if (!window && name != "OP_ELEMENTWISE" && name != "OP_RESIZE") return {0, 0};
  std::uint64_t work = (r.get<"OFM_HEIGHT_M1", "height_m1">() + 1) * (r.get<"OFM_WIDTH_M1", "width_m1">() + 1) *
                       (r.get<"OFM_DEPTH_M1", "depth_m1">() + 1);
  if (window) {
    const std::uint64_t dilation_y = r.get<"KERNEL_STRIDE", "dilation_y">() + 1,
                        dilation_x = r.get<"KERNEL_STRIDE", "dilation_x">() + 1;
    work *= r.get<"KERNEL_HEIGHT_M1", "height_m1">() / dilation_y + 1;
    work *= r.get<"KERNEL_WIDTH_M1", "width_m1">() / dilation_x + 1;
  }
  if (dense) work *= r.get<"IFM_DEPTH_M1", "depth_m1">() + 1;
  const std::uint64_t cycles = std::max<std::uint64_t>(1, ceil_divide(work, static_cast<std::uint64_t>(config.macs)));
  return {cycles, window ? cycles : 0};
}

void Counters::reset() {
  control_ = enabled_ = overflows_ = interrupts_ = configuration_ = channel_ = 0;
  cycles_ = 0;
  masked_ = false;
  counter_ = {};
  type_ = {};
}

std::uint32_t Counters::read(std::uint32_t offset) const {
  const std::uint32_t event = offset >> 2 & 7;
  if (offset >= TOSAIC_ETHOSU_PMEVTYPER) return event < events_ && offset < register_bytes ? type_[event] : 0;
  if (offset >= TOSAIC_ETHOSU_PMEVCNTR)
    return event < events_ && offset < TOSAIC_ETHOSU_PMEVCNTR + 32 ? counter_[event] : 0;
  switch (offset) {
    case TOSAIC_ETHOSU_PMCR: return control_ | events_ << TOSAIC_ETHOSU_PMCR_COUNTERS_SHIFT;
    case TOSAIC_ETHOSU_PMCNTENSET:
    case TOSAIC_ETHOSU_PMCNTENCLR: return enabled_;
    case TOSAIC_ETHOSU_PMOVSSET:
    case TOSAIC_ETHOSU_PMOVSCLR: return overflows_;
    case TOSAIC_ETHOSU_PMINTSET:
    case TOSAIC_ETHOSU_PMINTCLR: return interrupts_;
    case TOSAIC_ETHOSU_PMCCNTR: return static_cast<std::uint32_t>(cycles_);
    case TOSAIC_ETHOSU_PMCCNTR_HI: return static_cast<std::uint32_t>(cycles_ >> 32);
    case TOSAIC_ETHOSU_PMCCNTR_CFG: return configuration_;
    case TOSAIC_ETHOSU_PMCAXI_CHAN: return channel_;
    default: return 0;
  }
}

void Counters::write(std::uint32_t offset, std::uint32_t value) {
  const std::uint32_t event = offset >> 2 & 7;
  if (offset >= TOSAIC_ETHOSU_PMEVTYPER) {
    if (event < events_ && offset < register_bytes) type_[event] = value & event_number;
    return;
  }
  if (offset >= TOSAIC_ETHOSU_PMEVCNTR) {
    if (event < events_ && offset < TOSAIC_ETHOSU_PMEVCNTR + 32) counter_[event] = value;
    return;
  }
  switch (offset) {
    case TOSAIC_ETHOSU_PMCR:
      control_ = value & (TOSAIC_ETHOSU_PMCR_ENABLE | TOSAIC_ETHOSU_PMCR_MASKED_BY_COMMANDS);
      if (value & TOSAIC_ETHOSU_PMCR_RESET_EVENTS) counter_ = {};
      if (value & TOSAIC_ETHOSU_PMCR_RESET_CYCLES) cycles_ = 0;
      break;
    case TOSAIC_ETHOSU_PMCNTENSET: enabled_ |= value & all_bits(); break;
    case TOSAIC_ETHOSU_PMCNTENCLR: enabled_ &= ~value; break;
    case TOSAIC_ETHOSU_PMOVSSET: overflows_ |= value & all_bits(); break;
    case TOSAIC_ETHOSU_PMOVSCLR: overflows_ &= ~value; break;
    case TOSAIC_ETHOSU_PMINTSET: interrupts_ |= value & all_bits(); break;
    case TOSAIC_ETHOSU_PMINTCLR: interrupts_ &= ~value; break;
    case TOSAIC_ETHOSU_PMCCNTR: cycles_ = (cycles_ & ~std::uint64_t{0xffffffff}) | value; break;
    case TOSAIC_ETHOSU_PMCCNTR_HI: cycles_ = (cycles_ & 0xffffffff) | (std::uint64_t{value} << 32 & cycle_bits); break;
    case TOSAIC_ETHOSU_PMCCNTR_CFG: configuration_ = value; break;
    case TOSAIC_ETHOSU_PMCAXI_CHAN: channel_ = value; break;
    default: break;
  }
}

bool Counters::counts(std::uint32_t bit) const {
  if (!(control_ & TOSAIC_ETHOSU_PMCR_ENABLE) || !(enabled_ & bit)) return false;
  return !(control_ & TOSAIC_ETHOSU_PMCR_MASKED_BY_COMMANDS) || !masked_;
}

void Counters::count(const LeastCycles& cycles) {
  if (counts(TOSAIC_ETHOSU_PMU_CYCLES)) {
    if (cycles.all > cycle_bits - cycles_) overflows_ |= TOSAIC_ETHOSU_PMU_CYCLES;
    cycles_ = (cycles_ + cycles.all) & cycle_bits;
  }
  for (std::uint32_t i = 0; i < events_; ++i) {
    if (!counts(1u << i)) continue;
    const std::uint32_t type = type_[i];
    const std::uint64_t more = type == TOSAIC_ETHOSU_EVENT_CYCLE || type == TOSAIC_ETHOSU_EVENT_NPU_ACTIVE ? cycles.all
                               : type == TOSAIC_ETHOSU_EVENT_MAC_ACTIVE                                    ? cycles.mac
                                                                                                           : 0;
    if (more > 0xffffffff - counter_[i]) overflows_ |= 1u << i;
    counter_[i] = static_cast<std::uint32_t>(counter_[i] + more);
  }
}

}  // namespace tosaic::ethosu_device
