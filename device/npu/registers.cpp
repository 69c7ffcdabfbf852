// SPDX-License-Identifier: Apache-2.0
// An Ethos-U that is there: the functions of tosaic/ethosu.h by its registers, where the simulator has them in
// software. Polled, without interrupts and without a driver of others.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "base/system/bare/board.h"
#include "ethosu/container.h"
#include "tosaic/ethosu.h"

namespace {

using namespace tosaic;

// By word.
enum Register : std::size_t {
  id = 0x00 / 4,
  status = 0x04 / 4,
  command = 0x08 / 4,
  reset = 0x0c / 4,
  queue = 0x10 / 4,
  queue_size = 0x20 / 4,
  region_config = 0x3c / 4,
  region_base = 0x80 / 4,
};
enum Status : std::uint32_t {
  running = 1u << 0,
  bus_error = 1u << 2,
  resetting = 1u << 3,
  parse_error = 1u << 4,
  end_reached = 1u << 5,
  watchdog = 1u << 7,
  memory_error = 1u << 8,
};

int report(const char* code, std::string_view message, int result, tosaic_ethosu_error* error) {
  if (error) {
    const std::size_t length = std::min(message.size(), sizeof error->message - 1);
    std::strncpy(error->code, code, sizeof error->code - 1);
    std::memcpy(error->message, message.data(), length);
    error->message[length] = 0;
  }
  return result;
}

// The status register in words.
const char* trouble(std::uint32_t status_word) {
  if (status_word & bus_error) return "the NPU met an error on its bus: an address that it cannot reach";
  if (status_word & parse_error) return "the NPU does not understand a command";
  if (status_word & watchdog) return "the NPU's watchdog ended it";
  if (status_word & memory_error) return "a bit of the NPU's memory is wrong";
  return status_word & end_reached ? nullptr : "the NPU stopped before the end of the commands";
}

void write_address(volatile std::uint32_t* to, const volatile void* address) {
  to[0] = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address));
  to[1] = 0;
}

}  // namespace

struct tosaic_ethosu_stream {
  ethosu::Config config;
  int container_version = 1;
  const std::byte* commands = nullptr;
  std::size_t command_bytes = 0;
  const void* constants = nullptr;
};

extern "C" {

// The commands and constants are used where they lie.
int tosaic_ethosu_open(const void* commands, size_t command_bytes, const void* constants, size_t constant_bytes,
                       const tosaic_ethosu_options*, tosaic_ethosu_stream** stream, tosaic_ethosu_error* error) {
  (void)constant_bytes;
  auto parsed = ethosu::parse_container(Bytes(nullptr, commands, command_bytes));
  if (!parsed.ok()) return report(parsed.error().code.c_str(), parsed.error().message, TOSAIC_ETHOSU_INVALID, error);
  const auto* start = static_cast<const std::byte*>(commands) + parsed->first_byte;
  if (reinterpret_cast<std::uintptr_t>(start) % 16 != 0 || reinterpret_cast<std::uintptr_t>(constants) % 16 != 0)
    return report("ethosu.alignment", "commands and constants must lie on 16 bytes", TOSAIC_ETHOSU_ARGUMENT, error);
  *stream =
      new tosaic_ethosu_stream{parsed->config, parsed->container_version, start, 4 * parsed->words.size(), constants};
  return TOSAIC_ETHOSU_OK;
}

int tosaic_ethosu_describe(const tosaic_ethosu_stream* stream, tosaic_ethosu_info* info, int, tosaic_ethosu_line,
                           void*) {
  *info = {};
  const ethosu::Product product = stream->config.product;
  info->product = product == ethosu::Product::u55 ? 55 : product == ethosu::Product::u65 ? 65 : 85;
  info->macs = static_cast<std::uint32_t>(stream->config.macs);
  info->container_version = static_cast<std::uint32_t>(stream->container_version);
  info->config_word = stream->config.config_word;
  info->id_word = stream->config.id_word;
  return TOSAIC_ETHOSU_OK;
}

int tosaic_ethosu_run(tosaic_ethosu_stream* stream, const tosaic_ethosu_region* regions, size_t count,
                      tosaic_ethosu_line, void*, tosaic_ethosu_error* error) {
  volatile std::uint32_t* const npu = tosaic_board_npu_registers();
  if (!npu || npu[id] == 0) return report("ethosu.no-npu", "there is no NPU", TOSAIC_ETHOSU_UNSUPPORTED, error);
  npu[reset] = 0;
  while (npu[status] & resetting) {}
  tosaic_board_flush(stream->commands, stream->command_bytes);
  write_address(npu + queue, stream->commands);
  npu[queue_size] = static_cast<std::uint32_t>(stream->command_bytes);
  npu[region_config] = 0;
  write_address(npu + region_base, stream->constants);
  for (std::size_t r = 1; r < count; ++r) {
    write_address(npu + region_base + 2 * r, regions[r].base);
    if (regions[r].base) tosaic_board_flush(regions[r].base, static_cast<std::size_t>(regions[r].bytes));
  }
  npu[command] = 1;
  std::uint32_t now;
  while ((now = npu[status]) & running) {}
  npu[command] = 2;  // the interrupt has been seen
  for (std::size_t r = 1; r < count; ++r)
    if (regions[r].base) tosaic_board_forget(regions[r].base, static_cast<std::size_t>(regions[r].bytes));
  if (const char* why = trouble(now)) return report("ethosu.fault", why, TOSAIC_ETHOSU_INVALID, error);
  return TOSAIC_ETHOSU_OK;
}

void tosaic_ethosu_close(tosaic_ethosu_stream* stream) { delete stream; }

}  // extern "C"
