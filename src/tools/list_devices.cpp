// SPDX-License-Identifier: Apache-2.0
// tosaic run --list-devices: what the Vulkan devices of this machine can, and what they lack.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "tools/tool.h"

namespace tosaic::tools {
namespace {

void print_device(Tool& tool, const VulkanDevice& d) {
  tool.print("{}: {}, {}, Vulkan {}: {}{}\n", d.index, printable(d.name), d.kind, d.version,
             d.runs_shaders ? fmt::format("--device vulkan (tiers {})", fmt::join(d.tiers, ", ")) : "too old",
             d.has_ml_extensions ? ", --device vulkan-ml" : "");
  tool.print("   driver {}{}\n", printable(d.driver_version), d.driver.empty() ? "" : ": " + printable(d.driver));
  tool.print(
      "   at most {} MB of memory, {} MB in a buffer, {} million texels; groups of {} ({} x {} x {}), {} bytes that "
      "they share, {} of push constants\n",
      d.memory_bytes >> 20, d.range_bytes >> 20, d.texels / 1000000, d.group_invocations, d.group_size[0],
      d.group_size[1], d.group_size[2], d.shared_bytes, d.push_constant_bytes);
  tool.print("   buffers of 8-bit elements (i8, bool): {}; of 16-bit ones (i16, f16, bf16): {}\n",
             d.storage_8 ? "yes" : "no", d.storage_16 ? "yes" : "no");
  for (const auto& [tier, lacks] : d.other_tiers) tool.print("   no tier {}: it lacks {}\n", tier, lacks);
}

std::string json_of(const VulkanDevice& d) {
  std::vector<std::string> tiers, others;
  for (const std::string& tier : d.tiers) tiers.push_back(json_text(tier));
  for (const auto& [tier, lacks] : d.other_tiers)
    others.push_back(fmt::format("{}: {}", json_text(tier), json_text(lacks)));
  return fmt::format(
      "{{\"index\": {}, \"name\": {}, \"kind\": \"{}\", \"vulkan\": \"{}\", \"driver\": {}, \"driver_version\": {}, "
      "\"shaders\": {}, \"tiers\": [{}], \"lacks\": {{{}}}, \"ml_extensions\": {}, \"storage_8\": {}, \"storage_16\": "
      "{}, "
      "\"limits\": {{\"memory_bytes\": {}, \"range_bytes\": {}, \"texels\": {}, \"group_invocations\": {}, "
      "\"group_size\": [{}], \"shared_bytes\": {}, \"push_constant_bytes\": {}}}}}",
      d.index, json_text(d.name), d.kind, d.version, json_text(d.driver), json_text(d.driver_version), d.runs_shaders,
      fmt::join(tiers, ", "), fmt::join(others, ", "), d.has_ml_extensions, d.storage_8, d.storage_16, d.memory_bytes,
      d.range_bytes, d.texels, d.group_invocations, fmt::join(d.group_size, ", "), d.shared_bytes,
      d.push_constant_bytes);
}

}  // namespace

void list_vulkan_devices(Tool& tool) {
  const auto devices = vulkan_devices();
  if (!devices.ok()) return tool.fail(devices.error());
  std::string list;
  for (const VulkanDevice& d : *devices)
    if (tool.json)
      list += (list.empty() ? "" : ", ") + json_of(d);
    else
      print_device(tool, d);
  if (tool.json) tool.print_json("run", "\"devices\": [" + list + "]");
}

}  // namespace tosaic::tools
