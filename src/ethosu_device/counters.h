// SPDX-License-Identifier: Apache-2.0
// The PMU: a cycle counter and four or eight event counters. They advance by a floor of the cycles of each operation
// (least_cycles), because the simulator knows no time. Events other than cycles and activity never occur.
#pragma once
#include <array>
#include <cstdint>

#include "ethosu/machine.h"

namespace tosaic::ethosu_device {

// What the MAC units alone need at full rate, at least one: the hardware needs no less. `mac` is the part of it in
// which they multiply.
struct LeastCycles {
  std::uint64_t all = 0, mac = 0;
};
LeastCycles least_cycles(const ethosu::Config& config, const ethosu::Command& command,
                         const ethosu::Registers& registers);

class Counters {
 public:
  explicit Counters(bool u85) : events_(u85 ? 8 : 4) { reset(); }
  void reset();

  // `offset` from the first of the PMU's registers.
  static constexpr std::uint32_t register_bytes = 0x220;
  std::uint32_t read(std::uint32_t offset) const;
  void write(std::uint32_t offset, std::uint32_t value);

  void count(const LeastCycles& cycles);
  // The command PMU_MASK.
  void mask(bool on) { masked_ = on; }
  bool overflow_interrupt() const { return (overflows_ & interrupts_) != 0; }

 private:
  std::uint32_t all_bits() const { return 0x80000000u | ((1u << events_) - 1); }
  bool counts(std::uint32_t bit) const;

  std::uint32_t events_;
  std::uint32_t control_ = 0, enabled_ = 0, overflows_ = 0, interrupts_ = 0, configuration_ = 0, channel_ = 0;
  std::uint64_t cycles_ = 0;
  bool masked_ = false;
  std::array<std::uint32_t, 8> counter_{}, type_{};
};

}  // namespace tosaic::ethosu_device
