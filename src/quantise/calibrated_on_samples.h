// SPDX-License-Identifier: Apache-2.0
// One run of the program on the calibration samples: what it says of ranges, widths and weights. Private to quantise/.
#pragma once
#include <set>
#include <vector>

#include "quantise/calibration.h"

namespace tosaic {

// `widened`: values that take 16 bits, those that the samples ask for among them. `rows` receives the sizes of the rows
// that it was made for. What the samples show that integers cannot hold is reported. Errors: compile.cancelled, those
// of running the program.
Result<Calibrated> calibrated_on(const std::vector<std::vector<Tensor>>& samples, Expanded program,
                                 const Decisions& decisions, std::set<ValueId>& widened, RowSizes& rows,
                                 const QuantiseOptions& options, const Sink& sink);

}  // namespace tosaic
