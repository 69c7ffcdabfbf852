// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tosaic {

// Asks the system to let this process use the processor's tile registers (AMX), which have 8 KB to be saved. Whether it
// does. The processor must have them.
bool allow_tile_registers();

}  // namespace tosaic
