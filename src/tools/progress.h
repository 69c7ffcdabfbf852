// SPDX-License-Identifier: Apache-2.0
// A bar on stderr for what takes long; for those who look at it (Tool::shows_progress).
#pragma once
#include <cstddef>
#include <string_view>

namespace tosaic::tools {

// "calibrating  50% [####    ]", over what stood there; wiped when all is done. Of fewer than 8 nothing is shown.
void show_progress(std::string_view doing, std::size_t done, std::size_t total);
void wipe_progress();

}  // namespace tosaic::tools
