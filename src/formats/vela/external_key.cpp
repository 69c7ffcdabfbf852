// SPDX-License-Identifier: Apache-2.0
#include "formats/vela/sha256.h"
#include "formats/vela/vela.h"

namespace tosaic::vela {

std::string external_key(const std::string& tag, const Bytes& blob) {
  std::string message = tag;
  message += '\0';
  message += blob.text();
  return sha256(message);
}

}  // namespace tosaic::vela
