// SPDX-License-Identifier: Apache-2.0
#include "api/inspect_vulkan.h"

#include <fmt/format.h>
#include <algorithm>

#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "session/named_data.h"

namespace tosaic {

Result<Inspection> inspect_vulkan(const Bytes& payload, const std::map<std::string, Bytes>& data,
                                  const std::string& indent) {
  TOSAIC_TRY(const vulkan_program::Program program, vulkan_program::read(payload, found_in(data)));
  Inspection out;
  std::string tiers;
  std::size_t places = 0;
  for (const vulkan_program::Tier& tier : program.tiers) {
    std::size_t words = 0;
    for (const Bytes& module : tier.modules) words += module.size();
    places += static_cast<std::size_t>(
        std::ranges::count_if(tier.dispatches, [](const auto& d) { return !d.place.empty(); }));
    const vulkan_program::TierRow* row = vulkan_program::find_tier(tier.name);
    out.text +=
        row ? fmt::format("{}tier {} ({}): {} dispatches, {} modules of {} bytes ({} unpacked), activations {} bytes\n",
                          indent, tier.name, row->sentence, tier.dispatches.size(), tier.modules.size(),
                          tier.stored_bytes, words, tier.activation_bytes)
            : fmt::format("{}tier {}: of a newer version\n", indent, json_quote(tier.name));
    tiers += fmt::format(
        "{}{{\"name\": {}, \"known\": {}, \"dispatches\": {}, \"modules\": {}, \"spirv_bytes\": {}, "
        "\"stored_spirv_bytes\": {}, "
        "\"activation_bytes\": {}}}",
        tiers.empty() ? "" : ", ", json_quote(tier.name), row != nullptr, tier.dispatches.size(), tier.modules.size(),
        words, tier.stored_bytes, tier.activation_bytes);
  }
  out.text += fmt::format("{}constants {} bytes, inputs and outputs {} bytes\n", indent, program.constants.size(),
                          program.io_bytes);
  if (places)
    out.text += fmt::format("{}source: {} dispatches have a source location in the model (--strip leaves them out)\n",
                            indent, places);
  out.json = fmt::format("{{\"constant_bytes\": {}, \"io_bytes\": {}, \"source_places\": {}, \"tiers\": [{}]}}",
                         program.constants.size(), program.io_bytes, places, tiers);
  return out;
}

}  // namespace tosaic
