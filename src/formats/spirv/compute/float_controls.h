// SPDX-License-Identifier: Apache-2.0
// What a driver may do with special floats (SPV_KHR_float_controls). A module says it, but only a device that has it
// takes such a module: so it is said when the device is known.
#pragma once
#include <span>
#include <vector>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

struct FloatControls {
  bool special = false;    // NaN, infinities and zeros' signs are kept: x > y ? y : x is no minimum that ignores NaN
  bool denormals = false;  // are not taken as zero
};

// The module of one entry point, which has passed check_shader, with these for 32 bits.
std::vector<Word> with_float_controls(std::span<const Word> module, const FloatControls& controls);

}  // namespace tosaic::spirv
