// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/delegate_ids.h"
#include "base/system/external_process.h"
#include "base/system/output.h"
#include "boards/firmware.h"
#include "boards/tools.h"
#include "contract/errors.h"
#include "formats/pte/pte_file.h"
#include "formats/vela/vela.h"
#include "ir/quoted.h"
#include "runtime/conversion_kernels.h"
#include "runtime/method.h"
#include "tosaic/delegate.h"

namespace tosaic::boards {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t stack_bytes = 32 * 1024;

// One method, of delegates that firmware has.
Status check_kind(const pte::Program& program, const std::string& name) {
  if (program.plans.size() != 1)
    return error("device.methods", fmt::format("the program has {} methods, a firmware runs one", program.plans.size()))
        .at({name, 0, ""})
        .hint("compile one method: --method NAME");
  const pte::Plan& plan = program.plans.front();
  for (const pte::Delegate& delegate : plan.delegates)
    if (delegate.id != delegate_ids::ethos_u)
      return error("device.delegate", fmt::format("the program needs the delegate '{}', firmware has '{}' alone",
                                                  delegate.id, delegate_ids::ethos_u))
          .at({name, 0, ""})
          .hint("compile the model for a target ethos-u...");
  return {};
}

// The firmware's own way of loading, here: what it would refuse is refused now. The simulator is the same one.
Status check_program(const pte::Program& program, const std::string& name, const std::string& npu) {
  runtime::Options options;
  options.file = name;
  options.threads = 1;
  options.fixed_sizes = true;
  options.kernels = runtime::conversion_kernels();
  options.delegates[delegate_ids::ethos_u] = {tosaic_ethos_u_delegate(), npu, nullptr};
  auto made = runtime::Method::load(program, program.plans.front().name, options);
  if (!made.ok()) return std::move(made.error());
  return {};
}

// The product that the program's commands are made for; empty: it has none.
Result<std::string> product_of(const pte::Program& program, const std::string& name) {
  const runtime::NamedData data = data_of(program);
  for (const pte::Delegate& delegate : program.plans.front().delegates) {
    runtime::DelegateOptions options;
    options.name = name;
    options.threads = 1;
    options.data = &data;
    TOSAIC_TRY(const auto open, runtime::OpenDelegate::open({tosaic_ethos_u_delegate(), "", nullptr},
                                                            delegate.payload.joined(), delegate.specs, options));
    const std::string device = open.device();
    return device.substr(0, device.find(' '));
  }
  return std::string();
}

// Of an ELF file for a 32-bit little-endian processor: how many bytes each memory holds.
std::vector<MemoryUse> uses_of(const Bytes& elf, const Board& board) {
  std::vector<MemoryUse> uses;
  for (const MemoryRegion& region : board.memory) uses.push_back({region.name, 0, region.bytes});
  const auto word = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    if (at + bytes <= elf.size()) std::memcpy(&value, elf.data() + at, bytes);
    return std::uint64_t{value};
  };
  const std::uint64_t table = word(0x20, 4), size = word(0x2e, 2), count = word(0x30, 2);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t header = static_cast<std::size_t>(table + i * size);
    if ((word(header + 8, 4) & 2) == 0) continue;  // nothing that the firmware holds
    const std::uint64_t address = word(header + 12, 4), bytes = word(header + 20, 4);
    for (std::size_t r = 0; r < uses.size(); ++r)
      if (const MemoryRegion& region = board.memory[r];
          address >= region.origin && address < region.origin + region.bytes)
        uses[r].used = std::max(uses[r].used, address + bytes - region.origin);
  }
  return uses;
}

Diagnostic does_not_fit(const std::string& name, const Board& board, const std::vector<MemoryUse>& uses) {
  Diagnostic why =
      error("device.memory", fmt::format("the program does not fit the board {}", board.name)).at({name, 0, ""});
  for (const MemoryUse& use : uses)
    why.notes.push_back(fmt::format("{}: {} bytes are needed, {} are there{}", use.region, use.used, use.has,
                                    use.used > use.has ? ": too few" : ""));
  why.help = "compile a smaller model, or one with less memory (--memory-mode), or take a larger board";
  return why;
}

}  // namespace

std::string table_of(const std::vector<MemoryUse>& uses) {
  std::string text;
  for (const MemoryUse& use : uses)
    if (use.used > 0)
      text +=
          fmt::format("  {:<10} {:>9} of {:>9} bytes, {:.1f} %\n", use.region, use.used, use.has,
                      100.0 * static_cast<double>(use.used) / static_cast<double>(std::max<std::uint64_t>(use.has, 1)));
  return text;
}

Result<Built> build_firmware(const Bytes& pte, const std::string& name, const Board& board,
                             const BuildRequest& request) {
  Built built;
  built.npu = request.npu;
  built.arena_bytes = request.arena_bytes;
  NpuRegions regions{};
  if (!pte.empty()) {
    TOSAIC_TRY(const pte::Program program, pte::read(pte, name));
    TOSAIC_CHECK(check_kind(program, name));
    if (built.npu.empty()) { TOSAIC_TRY(built.npu, product_of(program, name)); }
    TOSAIC_CHECK(check_program(program, name, built.npu));
    if (built.arena_bytes == 0) { TOSAIC_TRY(built.arena_bytes, firmware_arena(program)); }
    TOSAIC_TRY(regions, npu_regions(program));
  } else if (const MemoryRegion* arena = board.find("ARENA"); arena && built.arena_bytes == 0) {
    built.arena_bytes = arena->bytes;
  }
  std::vector<MemoryUse> needed;
  const auto need = [&](const char* region, std::uint64_t bytes) {
    if (const MemoryRegion* has = board.find(region)) needed.push_back({region, bytes, has->bytes});
  };
  need("MODEL", pte.size());
  need("ARENA", built.arena_bytes);
  if (std::ranges::any_of(needed, [](const MemoryUse& use) { return use.used > use.has; }))
    return does_not_fit(name, board, needed);

  TOSAIC_TRY(const std::string compiler, find_tool("arm-none-eabi-g++"));
  TOSAIC_TRY(const Temporary temporary, Temporary::folder());
  const fs::path folder(temporary.path());
  TOSAIC_CHECK(write_file((folder / "model.pte").string(), pte.text()));
  TOSAIC_CHECK(write_file(
      (folder / "model.S").string(),
      fmt::format(".section .tosaic_model,\"a\"\n.balign 16\n"
                  ".global tosaic_model_start\ntosaic_model_start:\n.incbin {}\n"
                  ".global tosaic_model_end\ntosaic_model_end:\n"
                  ".section .rodata.tosaic_npu,\"a\"\n.global tosaic_npu_name\ntosaic_npu_name:\n.asciz {}\n"
                  ".section .rodata.tosaic_npu_regions,\"a\"\n.balign 4\n"
                  ".global tosaic_npu_region_bytes\ntosaic_npu_region_bytes:\n.word {}\n",
                  text::quoted((folder / "model.pte").string()), text::quoted(built.npu), fmt::join(regions, ", "))));
  std::vector<std::string> command{compiler};
  command.insert(command.end(), board.flags.begin(), board.flags.end());
  for (const std::string& word :
       {std::string("-nostartfiles"),
        std::string("--specs=nano.specs"),
        "-L" + board.folder,
        "-L" + board.libraries,
        std::string("-Tsections.ld"),
        (folder / "model.S").string(),
        std::string("-Wl,--gc-sections"),
        std::string("-Wl,--no-warn-rwx-segments"),
        fmt::format("-Wl,--defsym=tosaic_arena_bytes={}", built.arena_bytes),
        fmt::format("-Wl,--defsym=tosaic_stack_bytes={}", stack_bytes),
        fmt::format("-Wl,--defsym=tosaic_stand_in_bytes={}", request.registers        ? 0
                                                             : board.find("STAND_IN") ? board.find("STAND_IN")->bytes
                                                                                      : 0),
        std::string("-Wl,--start-group"),
        std::string("-ltosaic_runner"),
        std::string("-ltosaic_firmware"),
        std::string(request.registers ? "-ltosaic_npu_registers" : "-ltosaic_npu_simulator"),
        std::string("-ltosaic_board"),
        std::string("-lc"),
        std::string("-lm"),
        std::string("-lgcc"),
        std::string("-Wl,--end-group"),
        "-Wl,-Map=" + (folder / "net.map").string(),
        std::string("-o"),
        (folder / "net.elf").string()})
    command.push_back(word);
  TOSAIC_TRY(const Ended ended, run_process(command, folder / "log"));
  if (!ended.succeeded()) {
    Diagnostic why = error("device.link", "the firmware cannot be linked").at({name, 0, ""});
    for (const std::string& line : lines_of(ended.said))
      if (why.notes.size() < 6) why.notes.push_back(line);
    if (ended.said.find("overflowed by") != std::string::npos)
      why.code = "device.memory", why.message = fmt::format("the program does not fit the board {}", board.name);
    return why;
  }
  TOSAIC_TRY(const Bytes elf, map_file((folder / "net.elf").string()));
  built.uses = uses_of(elf, board);
  built.elf = Bytes::copy(elf.data(), elf.size());
  TOSAIC_TRY(const Bytes map, map_file((folder / "net.map").string()));
  built.map = Bytes::copy(map.data(), map.size());
  return built;
}

}  // namespace tosaic::boards
