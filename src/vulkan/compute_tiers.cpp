// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/printable.h"
#include "base/system/environment.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::TierRow;
using Names = std::vector<std::string_view>;

constexpr const char* variable = "TOSAIC_VULKAN_TIER";

// Whom the environment leaves of the tiers.
Result<Names> allowed(Names names) {
  const std::string only = environment_variable(variable);
  if (only.empty()) return names;
  if (!vulkan_program::find_tier(only))
    return error("vulkan.tier", fmt::format("{} is '{}', which is no tier", variable, only))
        .hint(fmt::format("the tiers are {}", fmt::join(vulkan_program::tier_names(), ", ")));
  for (std::string_view& name : names)
    if (name != only) name = "";
  return names;
}

Diagnostic nothing_runs(const Device& device, const Names& names) {
  if (const std::string only = environment_variable(variable); !only.empty())
    return error("vulkan.tier", fmt::format("{} allows the tier {} alone, which is not in the program or not for {}",
                                            variable, only, device.description()))
        .hint(fmt::format("unset {}", variable));
  Diagnostic why = error("vulkan.tier", fmt::format("{} runs none of the program's tiers: {}", device.description(),
                                                    fmt::join(names, ", ")));
  for (const std::string_view name : names)
    if (const TierRow* row = vulkan_program::find_tier(name))
      why.notes.push_back(fmt::format("{} needs {}", name, row->lacking(device.traits())));
    else
      why.notes.push_back(fmt::format("{} is of another version of tosaic", printable(name)));
  const Names all = vulkan_program::tier_names();
  const std::size_t best = vulkan_program::tiers_for(device.traits(), all).front();
  return std::move(why).hint(
      fmt::format("compile the model with --vulkan-tiers {}, or without that option", all[best]));
}

}  // namespace

Result<std::vector<std::size_t>> tiers_of_program(const Device& device, const vulkan_program::Program& program) {
  Names names;
  for (const vulkan_program::Tier& tier : program.tiers) names.push_back(tier.name);
  TOSAIC_TRY(const Names left, allowed(names));
  std::vector<std::size_t> able = vulkan_program::tiers_for(device.traits(), left);
  if (able.empty()) return nothing_runs(device, names);
  return able;
}

Result<vulkan_program::TierId> tier_of_device(const std::string& wanted) {
  TOSAIC_TRY(const auto device, Device::open(wanted, Use::compute));
  const Names names = vulkan_program::tier_names();
  TOSAIC_TRY(const Names left, allowed(names));
  const std::vector<std::size_t> able = vulkan_program::tiers_for(device->traits(), left);
  if (able.empty()) return nothing_runs(*device, names);
  return vulkan_program::find_tier(names[able.front()])->id;
}

}  // namespace tosaic::vulkan
