// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/type.h"

namespace tosaic::tosa {

// Do these perms keep the order of the dims that are larger than 1? Then the transpose is a reshape.
template <class Perms>
bool keeps_order(const Shape& input, const Perms& perms) {
  int last = -1;
  for (const auto dim : perms)
    if (const auto i = static_cast<int>(dim); input[i] != 1) {
      if (i < last) return false;
      last = i;
    }
  return true;
}

}  // namespace tosaic::tosa
