// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tosaic {

// What is free where this folder lies; nothing: nobody can say.
std::optional<std::uint64_t> free_bytes(const std::string& folder);

}  // namespace tosaic
