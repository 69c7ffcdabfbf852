// SPDX-License-Identifier: Apache-2.0
// Norms that are held in parts (norms_in_parts.h) are functions of what they were functions of: all other tensors are
// what they were, and the ranges of parts are certain. The samples, which take most of the time to run, have nothing
// to say of them. Private to quantise/.
#pragma once
#include <optional>

#include "quantise/calibration.h"

namespace tosaic {

// What running the samples again would give. `before`: the calibration of the program before norms were held in parts;
// `program`: it since then; values below `kept` are those of before. nullopt: a tensor has no range yet.
std::optional<Calibrated> calibrated_with_parts(Calibrated before, Expanded program, const Decisions& decisions,
                                                const QuantiseOptions& options, ValueId kept);

}  // namespace tosaic
