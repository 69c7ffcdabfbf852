// SPDX-License-Identifier: Apache-2.0
#include "base/system/tile_registers.h"

namespace tosaic {

bool allow_tile_registers() { return false; }  // not tried there

}  // namespace tosaic
