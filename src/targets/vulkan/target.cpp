// SPDX-License-Identifier: Apache-2.0
// Vulkan's compute shaders: the payload holds them with the memory plan and the weights; any Vulkan device runs it.
#include <algorithm>

#include "shaders/compile.h"
#include "targets/target.h"

namespace tosaic {
namespace {

constexpr const char* tiers_option = "vulkan-tiers";

Result<Emitted> emit(const Graph& graph, const Target&, const Options& options, const std::string&) {
  const std::vector<std::string> wanted = options.list(tiers_option);
  std::vector<vulkan_program::TierId> tiers;
  for (const vulkan_program::TierRow& row : vulkan_program::tier_rows())
    if (wanted.empty() || std::ranges::find(wanted, row.name) != wanted.end()) tiers.push_back(row.id);
  TOSAIC_TRY(const vulkan_program::Program program, shaders::compile(graph, tiers));
  return Emitted{vulkan_program::write(program)};
}

}  // namespace

std::vector<Target> target_vulkan() {
  Target target{"vulkan",
                "compute shaders for any Vulkan device, float and integer",
                "Vulkan",
                shaders::spec(),
                "TosaicVulkan",
                nullptr,
                emit};
  target.device = "vulkan";
  std::string sentence = "for which devices there are shaders, in a comma-separated list; default: all (";
  OptionInfo option{.name = tiers_option, .kind = OptionInfo::Kind::list, .placeholder = "TIERS"};
  for (const vulkan_program::TierRow& row : vulkan_program::tier_rows()) {
    sentence +=
        std::string(option.allowed.empty() ? "" : "; ") + std::string(row.name) + ": " + std::string(row.sentence);
    option.allowed.emplace_back(row.name);
  }
  option.sentence = sentence + ")";
  target.options = {std::move(option)};
  return {target};
}

}  // namespace tosaic
