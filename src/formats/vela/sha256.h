// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for keys that other programs compute as well. Nothing here is secret.
#pragma once
#include <string>
#include <string_view>

namespace tosaic {

// 64 hexadecimal characters.
std::string sha256(std::string_view message);

}  // namespace tosaic
