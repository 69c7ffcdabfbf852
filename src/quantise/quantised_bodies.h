// SPDX-License-Identifier: Apache-2.0
// Bodies of branches and loops that stay: each is quantised by itself, by what it is given when the program runs on the
// samples, in every turn of a loop. Between bodies and program, and from turn to turn, numbers are what the program
// made them. What says whether a loop goes on stays float, and so do scalars that it carries: a counter that
// saturates would never end it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "quantise/quantise.h"

namespace tosaic {

using QuantisedBodies = std::map<std::string, Graph>;  // by name
// Warns of bodies that the samples say too little of: calibrate.not-taken. What cannot be run stays float.
Result<QuantisedBodies> quantised_bodies(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                                         const QuantiseOptions& options, const Sink& sink);
void put_bodies(Graph& graph, QuantisedBodies bodies);

}  // namespace tosaic
