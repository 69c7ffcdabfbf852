// SPDX-License-Identifier: Apache-2.0
// Where an invocation of a workgroup that makes a tile of a matrix stands in it.
#pragma once
#include "shaders/shader.h"

namespace tosaic::shaders {

// Of 32 invocations in succession, which many devices run together, four lie below each other and eight next to each
// other: so they read fewest vectors of both factors at once. As every second one has the same columns, and two that
// are two apart have the same row, NVIDIA's devices read both in half as many clocks as row after row.
struct BlockPlace {
  Value row, column;

  // Of invocations `across` columns wide and `down` rows, of which this one has number `own`. Where no blocks fit: row
  // after row.
  BlockPlace(Shader& s, Value own, std::uint32_t down, std::uint32_t across) : row(own), column(own) {
    if (down % 4 != 0 || across % 8 != 0) {
      row = own / s.integer(across);
      column = own % s.integer(across);
      return;
    }
    row = own % s.integer(2) + own / s.integer(16) % s.integer(2) * 2 + own / s.integer(4 * across) * 4;
    column = own / s.integer(2) % s.integer(8) + own / s.integer(32) % s.integer(across / 8) * 8;
  }
};

}  // namespace tosaic::shaders
