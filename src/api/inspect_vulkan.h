// SPDX-License-Identifier: Apache-2.0
// What is in a payload for "TosaicVulkan": its tiers, and what each of them takes.
#pragma once
#include <string>

#include "base/bytes.h"
#include "tosaic/files.hpp"

namespace tosaic {
// `indent` begins each line of the text.
Result<Inspection> inspect_vulkan(const Bytes& payload, const std::string& indent);
}  // namespace tosaic
