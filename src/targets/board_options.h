// SPDX-License-Identifier: Apache-2.0
// What targets that go to boards let users say of their memories.
#pragma once
#include "tosaic/options.hpp"

namespace tosaic {

inline OptionInfo sram_of_board() {
  return {.name = "sram",
          .kind = OptionInfo::Kind::size,
          .sentence =
              "what the board has, e.g. 512K: a program, or firmware, whose tensors take more is refused, with "
              "those that do"};
}
inline OptionInfo flash_of_board() {
  return {.name = "flash",
          .kind = OptionInfo::Kind::size,
          .sentence =
              "what the board has for the program and its data files, or for firmware's weights: larger ones "
              "are refused"};
}

}  // namespace tosaic
