// SPDX-License-Identifier: Apache-2.0
// The device that a session is asked to run on.
#pragma once
#include <string>

#include "session/source.h"
#include "targets/target.h"

namespace tosaic {

// The target whose payloads a device runs: "vulkan", "vulkan-ml", "ethos-u", or a product by its target's name;
// nullptr: the CPU. Error: run.device.
Result<const Target*> target_of_device(const std::string& device);
// Of a program that has nothing for that device.
Diagnostic not_for(const Source& source, const Target& target);

}  // namespace tosaic
