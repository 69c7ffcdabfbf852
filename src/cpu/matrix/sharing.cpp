// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/sharing.h"

#include "cpu/matrix/tiles.h"

namespace tosaic::cpu {

// Processors with tiles have second-level caches of 2 MB, and are done with rows sooner than they have B there again.
std::int64_t bytes_of_rows() {
  static const std::int64_t bytes = (tile_instructions_allowed() ? 768 : 192) << 10;
  return bytes;
}

std::int64_t wanted_tasks(int threads) {
  if (threads == 1) return 1;
  static const int of_thread = tile_instructions_allowed() ? 1 : 8;
  return std::int64_t{of_thread} * threads;
}

}  // namespace tosaic::cpu
