// SPDX-License-Identifier: Apache-2.0
// An Ethos-U that is there: the functions of tosaic/ethosu.h by its registers, where the simulator has them in
// software. Polled, without interrupts and without a driver of others.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/system/bare/board.h"
#include "ethosu/container.h"
#include "tosaic/ethosu.h"
#include "tosaic/ethosu_registers.h"

// By `tosaic device build`: how much of each region the commands reach.
extern "C" const std::uint32_t tosaic_npu_region_bytes[TOSAIC_ETHOSU_REGIONS] __attribute__((weak));

namespace {

using namespace tosaic;

// Where errors are their codes, nobody else would say the text: it goes to the board at once.
int report(std::initializer_list<std::string_view> text, std::string_view code, int result,
           tosaic_ethosu_error* error) {
#ifdef TOSAIC_NO_ERROR_TEXTS
  const auto print = [](std::string_view part) { tosaic_board_print(part.data(), part.size()); };
  print("NPU: ");
  for (const std::string_view part : text) print(part);
  print("\n");
#endif
  if (error) {
    error->code[code.copy(error->code, sizeof error->code - 1)] = 0;
    std::size_t length = 0;
    for (const std::string_view part : text)
      length += part.copy(error->message + length, sizeof error->message - 1 - length);
    error->message[length] = 0;
  }
  return result;
}

class Npu {
 public:
  explicit Npu(volatile std::uint32_t* registers) : registers_(registers) {}
  bool there() const { return registers_ && read(TOSAIC_ETHOSU_ID) != 0; }
  std::uint32_t read(std::size_t offset) const { return registers_[offset / 4]; }
  void write(std::size_t offset, std::uint32_t value) { registers_[offset / 4] = value; }
  void write_address(std::size_t offset, const volatile void* address) {
    write(offset, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address)));
    write(offset + 4, 0);
  }
  std::string name() const {
    const auto config = ethosu::parse_config(read(TOSAIC_ETHOSU_CONFIG), read(TOSAIC_ETHOSU_ID));
    return config.ok() ? config->name() : "an unknown product";
  }

 private:
  volatile std::uint32_t* registers_;
};

}  // namespace

struct tosaic_ethosu_stream {
  ethosu::Config config;
  int container_version = 1;
  const std::byte* commands = nullptr;
  std::size_t command_bytes = 0;
  const void* constants = nullptr;
};

extern "C" {

// The commands and constants are used where they lie. A program is for the NPU that is there, or it is not loaded.
int tosaic_ethosu_open(const void* commands, size_t command_bytes, const void* constants, size_t constant_bytes,
                       const tosaic_ethosu_options*, tosaic_ethosu_stream** stream, tosaic_ethosu_error* error) {
  (void)constant_bytes;
  auto parsed = ethosu::parse_container(Bytes(nullptr, commands, command_bytes));
  if (!parsed.ok()) return report({"commands that are none"}, parsed.error().code, TOSAIC_ETHOSU_INVALID, error);
  const Npu npu(tosaic_board_npu_registers());
  if (!npu.there())
    return report({"none answers at the board's address"}, "ethosu.no-npu", TOSAIC_ETHOSU_UNSUPPORTED, error);
  if (npu.read(TOSAIC_ETHOSU_CONFIG) != parsed->config.config_word)
    return report({"the commands are for ", parsed->config.name(), ", this board has ", npu.name()}, "delegate.product",
                  TOSAIC_ETHOSU_UNSUPPORTED, error);
  const auto* start = static_cast<const std::byte*>(commands) + parsed->first_byte;
  if (reinterpret_cast<std::uintptr_t>(start) % 16 != 0 || reinterpret_cast<std::uintptr_t>(constants) % 16 != 0)
    return report({"commands and constants must lie on 16 bytes"}, "ethosu.alignment", TOSAIC_ETHOSU_ARGUMENT, error);
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
  if (tosaic_npu_region_bytes) std::copy_n(tosaic_npu_region_bytes, TOSAIC_ETHOSU_REGIONS, info->region_bytes);
  return TOSAIC_ETHOSU_OK;
}

int tosaic_ethosu_run(tosaic_ethosu_stream* stream, const tosaic_ethosu_region* regions, size_t count,
                      tosaic_ethosu_line, void*, tosaic_ethosu_error* error) {
  Npu npu(tosaic_board_npu_registers());
  npu.write(TOSAIC_ETHOSU_RESET, 1);  // privileged and secure
  while (npu.read(TOSAIC_ETHOSU_STATUS) & TOSAIC_ETHOSU_STATUS_RESETTING) {}
  tosaic_board_flush(stream->commands, stream->command_bytes);
  npu.write_address(TOSAIC_ETHOSU_QBASE, stream->commands);
  npu.write(TOSAIC_ETHOSU_QSIZE, static_cast<std::uint32_t>(stream->command_bytes));
  npu.write(TOSAIC_ETHOSU_QCONFIG, 0);
  npu.write(TOSAIC_ETHOSU_REGIONCFG, 0);
  npu.write_address(TOSAIC_ETHOSU_BASEP, stream->constants);
  for (std::size_t r = 1; r < count; ++r) {
    npu.write_address(TOSAIC_ETHOSU_BASEP + 8 * r, regions[r].base);
    if (regions[r].base) tosaic_board_flush(regions[r].base, static_cast<std::size_t>(regions[r].bytes));
  }
  npu.write(TOSAIC_ETHOSU_CMD, TOSAIC_ETHOSU_CMD_RUN);
  constexpr std::uint32_t ended =
      TOSAIC_ETHOSU_STATUS_IRQ | TOSAIC_ETHOSU_STATUS_END_REACHED | TOSAIC_ETHOSU_STATUS_FAULTS;
  std::uint32_t status;
  do status = npu.read(TOSAIC_ETHOSU_STATUS);
  while ((status & TOSAIC_ETHOSU_STATUS_RUNNING) || !(status & ended));
  npu.write(TOSAIC_ETHOSU_CMD, TOSAIC_ETHOSU_CMD_CLEAR_IRQ);
  for (std::size_t r = 1; r < count; ++r)
    if (regions[r].base) tosaic_board_forget(regions[r].base, static_cast<std::size_t>(regions[r].bytes));
  if ((status & TOSAIC_ETHOSU_STATUS_END_REACHED) && !(status & TOSAIC_ETHOSU_STATUS_FAULTS)) return TOSAIC_ETHOSU_OK;
  char words[160];
  tosaic_ethosu_status_text(stream->config.u85() ? 85 : 55, status, words, sizeof words);
  return report({words}, "ethosu.fault", TOSAIC_ETHOSU_INVALID, error);
}

void tosaic_ethosu_close(tosaic_ethosu_stream* stream) { delete stream; }

}  // extern "C"
