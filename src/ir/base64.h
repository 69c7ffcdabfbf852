// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, with padding): how the IR's text carries constants.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tosaic {

std::string base64_encode(const std::byte* data, std::size_t size);
// Empty optional: not base64.
std::optional<std::vector<std::byte>> base64_decode(std::string_view text);

}  // namespace tosaic
