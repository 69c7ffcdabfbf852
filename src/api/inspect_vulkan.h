// SPDX-License-Identifier: Apache-2.0
// What is in a payload for "TosaicVulkan": its tiers, and what each of them takes.
#pragma once
#include <map>
#include <string>

#include "base/bytes.h"
#include "tosaic/files.hpp"

namespace tosaic {
// `data`: what the program has outside the payload. `indent` begins each line of the text.
Result<Inspection> inspect_vulkan(const Bytes& payload, const std::map<std::string, Bytes>& data,
                                  const std::string& indent);
}  // namespace tosaic
