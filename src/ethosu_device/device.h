// SPDX-License-Identifier: Apache-2.0
// The register file of an Ethos-U and what writing to it does. Offsets and bits: tosaic/ethosu_registers.h.
#pragma once
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "ethosu_device/bus.h"
#include "ethosu_device/counters.h"
#include "ethosu_device/fault.h"

namespace tosaic::ethosu_device {

// What Vela's programs for a product expect of ID and CONFIG. Error: ethosu.unknown-product.
Result<ethosu::Config> config_of(std::uint32_t product, std::uint32_t macs);

class Device {
 public:
  Device(const ethosu::Config& config, const ethosu::Options& options, bool deferred, const tosaic_ethosu_host& host);

  std::uint32_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint32_t value);
  std::uint32_t register_bytes() const { return u85() ? 0x2000 : 0x1000; }
  // Does the run that waits. False: none does.
  bool work();
  // The reset line: done before software can look.
  void reset();

 private:
  bool u85() const { return config_.u85(); }
  std::uint32_t pmu_base() const { return u85() ? TOSAIC_ETHOSU_PMU_U85 : TOSAIC_ETHOSU_PMU; }
  std::uint32_t status() const;
  Ports ports() const;
  void command(std::uint32_t value);
  void soft_reset(std::uint32_t levels);
  void start();
  // The commands from QBASE, to their end or to a fault: the STATUS bits of either.
  std::uint32_t run();
  std::uint32_t prepare();  // opens machine_; the fault's bits, or 0
  void reached(const ethosu::Command& command, const ethosu::Registers& registers);
  std::uint32_t fail(const Diagnostic& why);
  void remember_interrupt(std::uint32_t mask);
  void update_line();
  void report(std::string_view code, const std::string& message) const;
  std::uint64_t address(std::uint32_t offset) const;

  ethosu::Config config_;
  ethosu::Options options_;
  bool deferred_;
  tosaic_ethosu_host host_;
  std::array<std::uint32_t, 0x60> plain_{};  // registers that only hold what was written, by offset / 4
  Counters counters_;
  std::uint32_t status_ = 0;  // what lasts: faults, end reached, interrupts, history
  std::uint32_t gating_ = 0;  // CMD's bits that can be read
  std::uint32_t levels_ = 0;  // PROT
  std::uint32_t qread_ = 0;
  bool running_ = false, resetting_ = false, stop_requested_ = false, line_ = false;
  // The last program, and its words as they were fetched.
  std::vector<std::uint32_t> words_;
  std::unique_ptr<ethosu::Machine> machine_;
};

}  // namespace tosaic::ethosu_device
