// SPDX-License-Identifier: Apache-2.0
#include "ethosu_device/device.h"

#include <fmt/format.h>

namespace tosaic::ethosu_device {
namespace {

constexpr std::uint32_t gating_bits = TOSAIC_ETHOSU_CMD_CLOCK_OFF_ALLOWED | TOSAIC_ETHOSU_CMD_POWER_OFF_ALLOWED;
constexpr std::uint32_t interrupt_bits = TOSAIC_ETHOSU_STATUS_IRQ | TOSAIC_ETHOSU_STATUS_PMU_IRQ;

enum Products : std::uint8_t { u55 = 1, u65 = 2, u85 = 4, wide = u65 | u85, old = u55 | u65, all = 7 };

// Registers that hold what was written to them.
struct Plain {
  std::uint16_t offset;
  std::uint8_t products;
  std::uint32_t bits;  // that can be written
};
constexpr Plain plain_registers[] = {
    {TOSAIC_ETHOSU_QBASE, all, 0xffffffff},
    {TOSAIC_ETHOSU_QBASE_HI, wide, 0xff},
    {TOSAIC_ETHOSU_QCONFIG, all, 3},
    {TOSAIC_ETHOSU_QSIZE, all, 0xffffffff},
    {TOSAIC_ETHOSU_LOCK, old, 0xffffffff},
    {TOSAIC_ETHOSU_POWER_CTRL, u85, 0x3f},
    {TOSAIC_ETHOSU_REGIONCFG, all, 0xffff},
    {TOSAIC_ETHOSU_AXI_LIMIT0, all, 0xffffffff},
    {TOSAIC_ETHOSU_AXI_LIMIT0 + 4, all, 0xffffffff},
    {TOSAIC_ETHOSU_AXI_LIMIT0 + 8, all, 0xffffffff},
    {TOSAIC_ETHOSU_AXI_LIMIT0 + 12, all, 0xffffffff},
    {TOSAIC_ETHOSU_AXI_SRAM, u85, 0xffffffff},
    {TOSAIC_ETHOSU_AXI_EXT, u85, 0xffffffff},
};

// What can be written to the plain register at an offset; 0: there is none.
std::uint32_t writable(std::uint32_t offset, ethosu::Product product) {
  const std::uint32_t bit = 1u << static_cast<std::uint32_t>(product);
  if (offset >= TOSAIC_ETHOSU_BASEP && offset < TOSAIC_ETHOSU_BASEP + 8 * ethosu::max_regions)
    return offset % 8 == 0 ? 0xffffffff : bit & wide ? 0xff : 0;
  for (const Plain& r : plain_registers)
    if (r.offset == offset && r.products & bit) return r.bits;
  return 0;
}

// The identification registers at the end of the first page: a component of Arm's, part numbers in order of the
// products.
std::uint32_t identification(std::uint32_t offset, ethosu::Product product) {
  switch (offset) {
    case 0xfd0: return 0x04;
    case 0xfe0: return 0x80 + static_cast<std::uint32_t>(product);
    case 0xfe4: return 0xb5;
    case 0xfe8: return 0x0b;
    case 0xff0: return 0x0d;
    case 0xff4: return 0xf0;
    case 0xff8: return 0x05;
    case 0xffc: return 0xb1;
    default: return 0;
  }
}

}  // namespace

Result<ethosu::Config> config_of(std::uint32_t product, std::uint32_t macs) {
  struct Known {
    std::uint32_t product, macs, config;
  };
  constexpr Known known[] = {{55, 32, 0x00001005},   {55, 64, 0x00001006},  {55, 128, 0x00001807},
                             {55, 256, 0x00003008},  {65, 256, 0x10003008}, {65, 512, 0x10006009},
                             {85, 128, 0x20000117},  {85, 256, 0x20000118}, {85, 512, 0x20001119},
                             {85, 1024, 0x2000251a}, {85, 2048, 0x2000261b}};
  // The architecture that the public interface of each product names: no older than Vela's.
  const std::uint32_t id = product == 55 ? 0x10104201 : product == 65 ? 0x10066001 : 0x20007001;
  for (const Known& k : known)
    if (k.product == product && k.macs == macs) return ethosu::parse_config(k.config, id);
  return error("ethosu.unknown-product", fmt::format("there is no Ethos-U{} with {} MACs", product, macs))
      .hint("u55: 32, 64, 128, 256; u65: 256, 512; u85: 128, 256, 512, 1024, 2048");
}

Device::Device(const ethosu::Config& config, const ethosu::Options& options, bool deferred,
               const tosaic_ethosu_host& host)
    : config_(config), options_(options), deferred_(deferred), host_(host), counters_(config.u85()) {
  reset();
}

void Device::report(std::string_view code, const std::string& message) const {
  if (host_.report) host_.report(host_.user, std::string(code).c_str(), message.c_str());
}

std::uint64_t Device::address(std::uint32_t offset) const {
  return plain_[offset / 4] | std::uint64_t{plain_[offset / 4 + 1]} << 32;
}

std::uint32_t Device::status() const {
  const std::uint32_t running = TOSAIC_ETHOSU_STATUS_RUNNING;
  return status_ | (running_ ? running : 0u);
}

std::uint32_t Device::read(std::uint32_t offset) {
  if (offset % 4 || offset >= register_bytes()) return 0;
  // A reset takes time: software that does not wait for it reads zeros, as it would on the chip.
  if (resetting_) {
    if (offset != TOSAIC_ETHOSU_STATUS) return 0;
    resetting_ = false;
    return TOSAIC_ETHOSU_STATUS_RESETTING;
  }
  switch (offset) {
    case TOSAIC_ETHOSU_ID: return config_.id_word;
    case TOSAIC_ETHOSU_STATUS: return status();
    case TOSAIC_ETHOSU_CMD: return gating_;
    case TOSAIC_ETHOSU_PROT: return levels_;
    case TOSAIC_ETHOSU_RESET: return levels_;
    case TOSAIC_ETHOSU_QREAD:
    case TOSAIC_ETHOSU_CURRENT_QREAD: return qread_;
    case TOSAIC_ETHOSU_CONFIG: return config_.config_word;
    default: break;
  }
  if (writable(offset, config_.product)) return plain_[offset / 4];
  if (offset >= pmu_base() && offset < pmu_base() + Counters::register_bytes)
    return counters_.read(offset - pmu_base());
  return identification(offset, config_.product);
}

void Device::write(std::uint32_t offset, std::uint32_t value) {
  if (offset % 4 || offset >= register_bytes()) return;
  if (resetting_)
    return report("npu.resetting", fmt::format("a write to register {:#x} while STATUS says that the reset goes on: "
                                               "the device ignores it",
                                               offset));
  if (offset == TOSAIC_ETHOSU_CMD) return command(value);
  if (offset == TOSAIC_ETHOSU_RESET) return soft_reset(value & 3);
  if (offset >= pmu_base() && offset < pmu_base() + Counters::register_bytes) {
    counters_.write(offset - pmu_base(), value);
    if (!counters_.overflow_interrupt()) return;
    status_ |= TOSAIC_ETHOSU_STATUS_PMU_IRQ;
    return update_line();
  }
  const std::uint32_t bits = writable(offset, config_.product);
  if (!bits) return;
  if (running_)
    return report("npu.running",
                  fmt::format("a write to register {:#x} while the NPU runs: the device ignores it", offset));
  plain_[offset / 4] = value & bits;
  if (offset == TOSAIC_ETHOSU_QBASE || offset == TOSAIC_ETHOSU_QBASE_HI || offset == TOSAIC_ETHOSU_QSIZE)
    status_ &= ~static_cast<std::uint32_t>(TOSAIC_ETHOSU_STATUS_END_REACHED);
}

void Device::reset() {
  plain_ = {};
  counters_.reset();
  status_ = levels_ = qread_ = 0;
  gating_ = gating_bits;
  running_ = resetting_ = stop_requested_ = false;
  update_line();
}

void Device::soft_reset(std::uint32_t levels) {
  reset();
  levels_ = levels;
  resetting_ = true;
}

void Device::command(std::uint32_t value) {
  gating_ = value & gating_bits;
  if (value & TOSAIC_ETHOSU_CMD_CLEAR_IRQ) status_ &= ~interrupt_bits;
  status_ &= ~(value >> TOSAIC_ETHOSU_CMD_CLEAR_IRQ_HISTORY_SHIFT << TOSAIC_ETHOSU_STATUS_IRQ_HISTORY_SHIFT);
  if (u85() && value & TOSAIC_ETHOSU_CMD_STOP_REQUEST) stop_requested_ = running_;
  update_line();
  if (value & TOSAIC_ETHOSU_CMD_RUN) start();
}

void Device::update_line() {
  const bool level = (status_ & interrupt_bits) != 0;
  if (level == line_) return;
  line_ = level;
  if (host_.interrupt) host_.interrupt(host_.user, level ? 1 : 0);
}

}  // namespace tosaic::ethosu_device
