// SPDX-License-Identifier: Apache-2.0
// What a calibration was about, for who compares the quantised program with it (compare/).
#pragma once
#include <vector>

#include "quantise/quantise.h"

namespace tosaic {

// The floats that the samples ran through, composites decomposed. `quantised` leaves its tensors their names: those of
// one name are one tensor.
struct FloatProgram {
  Graph graph;
  // Per value: what reads it bounds it, so its own range did not count, and saturates on purpose.
  std::vector<char> held;
  std::vector<ValueId> group;  // per value: those of one group share a scale; no_value: stays float
};
FloatProgram float_program(Calibration& calibration);

}  // namespace tosaic
