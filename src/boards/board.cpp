// SPDX-License-Identifier: Apache-2.0
#include "boards/board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>

#include "base/bytes.h"
#include "base/system/environment.h"

namespace tosaic::boards {
namespace {

namespace fs = std::filesystem;

// Where they may be, first to last.
std::vector<fs::path> candidates(const std::string& asked) {
  if (!asked.empty()) return {asked};
  std::vector<fs::path> list;
  if (const std::string chosen = environment_variable("TOSAIC_DEVICE"); !chosen.empty()) list.emplace_back(chosen);
  const fs::path program = fs::path(program_file()).parent_path();
  list.push_back(program / "../share/tosaic/device");
  list.push_back(program / "../../cortex-m55/device");  // build/release/bin of a checkout
  return list;
}

std::optional<fs::path> find_libraries(const std::vector<fs::path>& list) {
  std::error_code failure;
  for (const fs::path& folder : list)
    if (fs::is_regular_file(folder / "libtosaic_firmware.a", failure)) return fs::weakly_canonical(folder, failure);
  return std::nullopt;
}

// NAME (rx) : ORIGIN = 0x10000000, LENGTH = 512K
std::vector<MemoryRegion> read_memory(std::string_view script) {
  static const std::regex line(
      R"(([A-Z_]+)\s*\([rwx!]*\)\s*:\s*ORIGIN\s*=\s*(0[xX][0-9a-fA-F]+)\s*,\s*LENGTH\s*=\s*(\d+)([KM]?))");
  std::vector<MemoryRegion> memory;
  const std::string text(script);
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    const std::uint64_t unit = (*at)[4] == "K" ? 1024 : (*at)[4] == "M" ? 1024 * 1024 : 1;
    memory.push_back({(*at)[1], std::stoull((*at)[2], nullptr, 16), std::stoull((*at)[3]) * unit});
  }
  return memory;
}

}  // namespace

const MemoryRegion* Board::find(std::string_view region) const {
  const auto found = std::ranges::find(memory, region, &MemoryRegion::name);
  return found == memory.end() ? nullptr : &*found;
}

Result<Board> find_board(const std::string& name, const std::string& libraries) {
  const auto list = candidates(libraries);
  const auto root = find_libraries(list);
  if (!root) {
    Diagnostic why =
        error("device.libraries", "the libraries for boards are not here")
            .hint("build them in a checkout of tosaic: `make device`; or name their folder: --libraries DIR");
    for (const fs::path& folder : list)
      why.notes.push_back(fmt::format("looked in {}", folder.lexically_normal().string()));
    return why;
  }
  Board board;
  board.name = name;
  board.libraries = root->string();
  board.folder = (*root / "board" / name).string();
  std::error_code failure;
  if (name.empty() || name.find('/') != name.npos || !fs::is_directory(board.folder, failure)) {
    std::vector<std::string> known;
    for (const auto& entry : fs::directory_iterator(*root / "board", failure))
      known.push_back(entry.path().filename().string());
    std::ranges::sort(known);
    return error("device.board", fmt::format("there is no board '{}'", name))
        .hint(fmt::format("the boards are {}; docs/devices.md says how another one is added", fmt::join(known, ", ")));
  }
  TOSAIC_TRY(const Bytes script, map_file(board.folder + "/memory.ld"));
  board.memory = read_memory(script.text());
  TOSAIC_TRY(const Bytes flags, map_file(board.libraries + "/flags"));
  for (std::string_view left = flags.text(); !left.empty();) {
    const std::size_t end = std::min(left.find_first_of(" \n"), left.size());
    if (end > 0) board.flags.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return board;
}

}  // namespace tosaic::boards
