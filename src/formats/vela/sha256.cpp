// SPDX-License-Identifier: Apache-2.0
#include "formats/vela/sha256.h"

#include <sha2.h>
#include <array>
#include <cstdint>

namespace tosaic {

std::string sha256(std::string_view message) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digits;
  ::SHA256Data(reinterpret_cast<const std::uint8_t*>(message.data()), message.size(), digits.data());
  return digits.data();
}

}  // namespace tosaic
