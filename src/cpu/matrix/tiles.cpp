// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/tiles.h"

#include <atomic>

#include "base/system/tile_registers.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace tosaic::cpu {
namespace {

// CPUID as in Intel's manual, volume 2, leaf 7.
bool has_tile_instructions() {
#ifdef __x86_64__
  constexpr unsigned amx_tile = 1u << 24, amx_int8 = 1u << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & amx_tile) != 0 && (d & amx_int8) != 0;
#else
  return false;
#endif
}

std::atomic<Tiles>& chosen() {
  static std::atomic<Tiles> tiles = tile_instructions_allowed() ? Tiles::instructions : Tiles::none;
  return tiles;
}

}  // namespace

bool tile_instructions_allowed() {
  static const bool allowed = has_tile_instructions() && allow_tile_registers();
  return allowed;
}
Tiles tiles_in_use() { return chosen(); }
void use_tiles(Tiles tiles) { chosen() = tiles; }

}  // namespace tosaic::cpu
