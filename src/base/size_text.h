// SPDX-License-Identifier: Apache-2.0
// Sizes of memory as people write them: 500M, 16GB, 512KiB.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tosaic {

// In bytes; nothing: it is none. `kilo`: what K stands for, and M, G and T its powers; Ki is 1024 always.
std::optional<std::uint64_t> parsed_size(const std::string& text, int kilo = 1000);
// Of boards, whose makers count in 1024s.
inline std::optional<std::uint64_t> parsed_board_size(const std::string& text) { return parsed_size(text, 1024); }

// "3.8 KiB".
std::string kib(double bytes);

}  // namespace tosaic
