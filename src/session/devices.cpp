// SPDX-License-Identifier: Apache-2.0
#include "session/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tosaic {

Result<const Target*> target_of_device(const std::string& device) {
  if (device == "auto" || device == "cpu") return nullptr;
  std::vector<std::string> devices{"auto", "cpu"};
  const Target* product = nullptr;
  for (const Target& target : all_targets()) {
    if (target.device.empty()) continue;
    if (target.device == device || (target.simulated && target.name == device)) return &target;
    if (target.simulated) product = &target;
    if (devices.back() != target.device) devices.push_back(target.device);
  }
  if (product && device.starts_with(product->device)) return find_target(device, "").error();  // names the nearest
  return error("run.device", fmt::format("'{}' is no device", device))
      .hint(fmt::format("{}, or a product such as {}", fmt::join(devices, ", "), product ? product->name : "none"));
}

Diagnostic not_for(const Source& source, const Target& target) {
  std::size_t kin = 0;
  for (const Target& other : all_targets()) kin += other.family == target.family;
  return error("run.device", fmt::format("{} has no {} delegate", source.name, target.family))
      .at({source.name, 0, ""})
      .hint(fmt::format("compile the model with --target {}{}", target.name,
                        kin > 1 ? fmt::format(" or another {} target", target.family) : ""));
}

}  // namespace tosaic
