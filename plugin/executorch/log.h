// SPDX-License-Identifier: Apache-2.0
// Into ExecuTorch's log. Its lines end after 256 bytes: a longer text becomes several.
#pragma once
#include <executorch/runtime/platform/log.h>

#include <string>
#include <string_view>

namespace tosaic::plugin {

void say(executorch::runtime::LogLevel level, std::string_view text);

// The same as an error, kept for this thread until it is taken: Python's users do not see the log.
void refuse(const std::string& text);
std::string take_refusal();

}  // namespace tosaic::plugin
