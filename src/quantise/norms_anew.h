// SPDX-License-Identifier: Apache-2.0
// Norms whose rows differ much in size are written anew before the program is calibrated again: held in parts where
// they fit, else with rows that are scaled first. Private to quantise/.
#pragma once
#include <set>

#include "quantise/calibration.h"

namespace tosaic {

// What was done, for the program at other sizes. `norms` are not empty; `seen`: the last calibration, of this graph.
RowScaling write_norms_anew(Graph& graph, std::vector<RowNorm> norms, const Calibrated& seen, const RowSizes& rows,
                            std::vector<char>& inner, CertainRanges& certain, ScaledRows& scaled,
                            std::set<ValueId>& refused, const QuantiseOptions& options);

// The same as was done at other sizes of the program, in order.
void write_norms_as(const std::vector<RowScaling>& rounds, Graph& graph, std::vector<char>& inner,
                    CertainRanges& certain, ScaledRows& scaled, const QuantiseOptions& options);

}  // namespace tosaic
