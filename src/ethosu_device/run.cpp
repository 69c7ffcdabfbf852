// SPDX-License-Identifier: Apache-2.0
// A run of the device: fetches the commands, gives them to the simulator, and says how it ended.
#include <fmt/format.h>
#include <new>

#include "ethosu_device/device.h"

namespace tosaic::ethosu_device {
namespace {

constexpr std::uint64_t alignment = 16;

// Where the decoder stops: the byte of the first word that is no command of this product, or the end.
std::uint32_t first_bad_byte(const std::vector<std::uint32_t>& words, bool u85) {
  for (std::size_t i = 0; i < words.size();) {
    const std::uint32_t control = words[i] >> 14 & 3;
    const auto width = control == 0 ? ethosu::Width::one_word : ethosu::Width::two_words;
    if (control > 1 || !ethosu::find_row(u85, width, static_cast<std::uint16_t>(words[i] & 0x3ff)))
      return static_cast<std::uint32_t>(4 * i);
    i += control == 0 ? 1 : 2;
  }
  return static_cast<std::uint32_t>(4 * words.size());
}

}  // namespace

Ports Device::ports() const {
  // Two bits choose one of four settings. On U55 and U65 the upper bit is the port; on U85 the setting names it.
  const auto port = [&](std::uint32_t setting) {
    const std::uint32_t attributes = plain_[TOSAIC_ETHOSU_AXI_LIMIT0 / 4 + setting];
    return static_cast<std::uint8_t>(u85() ? attributes >> 2 & 1 : setting >> 1);
  };
  Ports ports;
  ports.commands = port(plain_[TOSAIC_ETHOSU_QCONFIG / 4]);
  for (std::size_t i = 0; i < ports.region.size(); ++i)
    ports.region[i] = port(plain_[TOSAIC_ETHOSU_REGIONCFG / 4] >> (2 * i) & 3);
  return ports;
}

void Device::start() {
  if (running_) return;
  if (status_ & TOSAIC_ETHOSU_STATUS_FAULTS)
    return report("npu.fault",
                  "CMD starts a run although STATUS has a fault, which only a reset clears: the device "
                  "ignores it");
  if (status_ & TOSAIC_ETHOSU_STATUS_END_REACHED)
    return report("npu.end-reached",
                  "CMD starts a run although the end of the commands is reached: write QBASE and "
                  "QSIZE first");
  running_ = true;
  stop_requested_ = false;
  qread_ = 0;
  if (!deferred_) work();
}

bool Device::work() {
  if (!running_) return false;
  std::uint32_t ended = 0;
  try {
    if (!stop_requested_) ended = run();
  } catch (const std::bad_alloc&) { ended = fail(error("npu.memory", "out of memory")); }
  running_ = false;
  status_ |= ended;
  if (ended) status_ |= TOSAIC_ETHOSU_STATUS_IRQ;
  if (counters_.overflow_interrupt()) status_ |= TOSAIC_ETHOSU_STATUS_PMU_IRQ;
  update_line();
  return true;
}

std::uint32_t Device::fail(const Diagnostic& why) {
  std::string message = why.message;
  if (const auto access = ethosu::access_of(why))
    message += fmt::format("; BASEP{} is {:#x}", access->region,
                           address(TOSAIC_ETHOSU_BASEP + 8 * static_cast<std::uint32_t>(access->region)));
  report(why.code, message);
  return fault_of(why, config_.product, ports());
}

std::uint32_t Device::prepare() {
  const std::uint64_t base = address(TOSAIC_ETHOSU_QBASE);
  const std::uint32_t bytes = plain_[TOSAIC_ETHOSU_QSIZE / 4];
  if (bytes == 0 || bytes % 4)
    return fail(error("npu.queue-size", fmt::format("QSIZE is {}: commands are whole words", bytes)));
  if (base % alignment)
    return fail(error("npu.alignment", fmt::format("QBASE is {:#x}, not a multiple of {}", base, alignment)));
  std::vector<std::uint32_t> words(bytes / 4);
  if (!Bus(host_).read(base, words.data(), bytes)) {
    report("npu.bus", fmt::format("the {} bytes of commands at {:#x} cannot be read", bytes, base));
    return bus_fault(Channel::commands, ports().commands);
  }
  if (machine_ && words == words_) return 0;
  machine_.reset();
  ethosu::Stream stream;
  stream.config = config_;
  stream.words = words;
  auto machine = ethosu::Machine::open(std::move(stream), {}, options_);
  if (!machine.ok()) {
    qread_ = first_bad_byte(words, u85());
    return fail(machine.error());
  }
  machine_ = *std::move(machine);
  words_ = std::move(words);
  return 0;
}

void Device::remember_interrupt(std::uint32_t mask) {
  status_ |= TOSAIC_ETHOSU_STATUS_IRQ | mask << TOSAIC_ETHOSU_STATUS_IRQ_HISTORY_SHIFT;
}

void Device::reached(const ethosu::Command& command, const ethosu::Registers& registers) {
  qread_ = static_cast<std::uint32_t>(command.byte);
  if (!ethosu::is_operation(*command.row)) return;
  const auto parameter = static_cast<std::uint32_t>(command.value & 0xffff);
  const std::string_view name = command.row->name;
  if (name == "OP_STOP") {
    remember_interrupt(parameter);
  } else if (name == "OP_IRQ") {
    remember_interrupt(parameter);
    update_line();
  } else if (name == "OP_PMU_MASK") {
    counters_.mask(parameter & 1);
  } else {
    counters_.count(least_cycles(config_, command, registers));
  }
}

std::uint32_t Device::run() {
  if (const std::uint32_t fault = prepare()) return fault;
  Wanted wanted;
  wanted.requirements = machine_->requirements();
  for (std::uint32_t i = 0; i < ethosu::max_regions; ++i) {
    wanted.base[i] = address(TOSAIC_ETHOSU_BASEP + 8 * i);
    if (wanted.requirements.region_bytes[i] && wanted.base[i] % alignment)
      return fail(
          error("npu.alignment", fmt::format("BASEP{} is {:#x}, not a multiple of {}", i, wanted.base[i], alignment)));
  }
  Bus bus(host_);
  ethosu::Regions regions = bus.map(wanted);
  const Status ran =
      machine_->run(regions, {}, [&](const auto& command, const auto& registers) { reached(command, registers); });
  if (!ran.ok()) {
    bus.finish();
    return fail(ran.error());
  }
  if (const auto region = bus.finish()) {
    report("npu.bus", fmt::format("what was written to region {} cannot be stored at {:#x}", *region,
                                  wanted.base[static_cast<std::size_t>(*region)]));
    return bus_fault(Channel::ofm, ports().region[static_cast<std::size_t>(*region)]);
  }
  const std::uint32_t bytes = qread_ + 4;
  if (bytes != 4 * words_.size())
    report("npu.after-stop",
           fmt::format("OP_STOP ends the commands after {} bytes, QSIZE is {}", bytes, 4 * words_.size()));
  qread_ = bytes;
  return TOSAIC_ETHOSU_STATUS_END_REACHED;
}

}  // namespace tosaic::ethosu_device
