// SPDX-License-Identifier: Apache-2.0
#include "ethosu/c_api.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/system/stand_in.h"
#include "ethosu/machine.h"

struct tosaic_ethosu_stream {
  std::unique_ptr<tosaic::ethosu::Machine> machine;
};

namespace {

using namespace tosaic;
using namespace tosaic::ethosu;

int report(const Diagnostic& why, tosaic_ethosu_error* error) {
  fill_error(error, why.code, why.message);
  if (why.code == "ethosu.argument") return TOSAIC_ETHOSU_ARGUMENT;
  constexpr std::string_view unknown[] = {"ethosu.undecidable", "ethosu.reset-value",   "ethosu.overflow",
                                          "ethosu.undefined",   "ethosu.too-much-work", "ethosu.too-large"};
  return std::find(std::begin(unknown), std::end(unknown), why.code) != std::end(unknown) ? TOSAIC_ETHOSU_UNSUPPORTED
                                                                                          : TOSAIC_ETHOSU_INVALID;
}

// Nothing is thrown on purpose; memory that the machine does not have is.
template <class F>
int guarded(tosaic_ethosu_error* error, F f) {
  const StandInMemory memory;
  return guarded_call(
      f,
      [&]() -> int {
        fill_error(error, "ethosu.memory", "out of memory");
        return TOSAIC_ETHOSU_MEMORY;
      },
      [&](const char* what) { return report(tosaic::internal_error(what), error); });
}

}  // namespace

extern "C" {

int tosaic_ethosu_open(const void* commands, size_t command_bytes, const void* constants, size_t constant_bytes,
                       const tosaic_ethosu_options* options, tosaic_ethosu_stream** stream,
                       tosaic_ethosu_error* error) {
  return guarded(error, [&]() -> int {
    if (!stream) return report(tosaic::error("ethosu.argument", "the pointer for the stream is null"), error);
    *stream = nullptr;
    if (!commands || (!constants && constant_bytes))
      return report(tosaic::error("ethosu.argument", "null memory"), error);
    if (options && options->struct_bytes != sizeof(tosaic_ethosu_options))
      return report(tosaic::error("ethosu.argument", "options of another version of this header"), error);
    Options chosen;
    chosen.threads = threads_for(options ? options->threads : 0);
    chosen.slow = options && options->plain_loops;
    if (options && options->most_work > 0) chosen.most_work = options->most_work;
    auto machine = Machine::open(Bytes::copy(commands, command_bytes), Bytes::copy(constants, constant_bytes), chosen);
    if (!machine.ok()) return report(machine.error(), error);
    *stream = new tosaic_ethosu_stream{*std::move(machine)};
    return TOSAIC_ETHOSU_OK;
  });
}

int tosaic_ethosu_describe(const tosaic_ethosu_stream* stream, tosaic_ethosu_info* info, int registers,
                           tosaic_ethosu_line line, void* user) {
  return guarded(nullptr, [&]() -> int {
    if (!stream || !info) return TOSAIC_ETHOSU_ARGUMENT;
    const Machine& machine = *stream->machine;
    const Config& config = machine.config();
    *info = {};
    info->product = config.product == Product::u55 ? 55 : config.product == Product::u65 ? 65 : 85;
    info->macs = static_cast<std::uint32_t>(config.macs);
    info->container_version = static_cast<std::uint32_t>(machine.container_version());
    info->config_word = config.config_word;
    info->id_word = config.id_word;
    info->commands = static_cast<std::uint32_t>(machine.commands().size());
    info->operations = static_cast<std::uint32_t>(machine.requirements().operations);
    for (std::size_t i = 0; i < TOSAIC_ETHOSU_REGIONS; ++i) {
      info->region_bytes[i] = machine.requirements().region_bytes[i];
      info->region_written[i] = machine.requirements().written[i];
    }
    if (line) machine.disassemble(registers != 0, [&](const std::string& text) { line(user, text.c_str()); });
    return TOSAIC_ETHOSU_OK;
  });
}

int tosaic_ethosu_run(tosaic_ethosu_stream* stream, const tosaic_ethosu_region* regions, size_t count,
                      tosaic_ethosu_line trace, void* user, tosaic_ethosu_error* error) {
  return guarded(error, [&]() -> int {
    if (!stream || (!regions && count))
      return report(tosaic::error("ethosu.argument", "null stream or regions"), error);
    if (count > TOSAIC_ETHOSU_REGIONS) return report(tosaic::error("ethosu.argument", "more than 8 regions"), error);
    Regions given{};
    for (std::size_t i = 0; i < count; ++i)
      if (regions[i].base) given[i] = {static_cast<std::byte*>(regions[i].base), regions[i].bytes, true};
    const Machine::Trace line = [&](const std::string& text) { trace(user, text.c_str()); };
    const auto status = stream->machine->run(given, trace ? line : Machine::Trace());
    if (!status.ok()) return report(status.error(), error);
    return TOSAIC_ETHOSU_OK;
  });
}

void tosaic_ethosu_close(tosaic_ethosu_stream* stream) { delete stream; }

}  // extern "C"
