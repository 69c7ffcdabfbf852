// SPDX-License-Identifier: Apache-2.0
// The samples that a program is calibrated with: the user's, else those that it holds, else made up.
#pragma once
#include "ir/specialise.h"
#include "pipeline/context.h"

namespace tosaic {

// `graph` is the program at the sizes where it is calibrated, `stored` what it holds of these. Errors: the user's.
Result<Samples> samples_for(const Graph& graph, const Samples& stored, const Context& c);
// The same of a program whose sizes vary; made up, they have the largest.
Result<Samples> samples_of_any_sizes(const Graph& varying, const Context& c);
// Those of a program whose sizes vary, by the sizes that they have.
using SamplesBySizes = std::vector<std::pair<Sizes, Samples>>;
Result<SamplesBySizes> by_sizes(const Graph& varying, Samples samples);
// Samples that nobody uses are no help to who gave them.
void say_unused(const Normal& program, const Context& c);

}  // namespace tosaic
