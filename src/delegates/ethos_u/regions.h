// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include "formats/vela/vela.h"
#include "tosaic/ethosu.h"

namespace tosaic::delegates {

// The memory that a payload works in, by region; 0 holds the constants, which lie in the program. Scratch memory as
// large as the payload says; the other regions (fast scratch, inputs and outputs of their own) as large as the commands
// and the tensors need.
std::array<std::uint64_t, TOSAIC_ETHOSU_REGIONS> region_bytes(const vela::Payload& payload,
                                                              const tosaic_ethosu_info& info);

}  // namespace tosaic::delegates
