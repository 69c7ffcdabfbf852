// SPDX-License-Identifier: Apache-2.0
// Programs of floats whose linear layers have quantised weights: smaller in the file and in memory, and so faster where
// reading them is most of the work. No samples are needed: what is quantised of activations is so as it comes.
#pragma once
#include <functional>

#include "ir/graph.h"

namespace tosaic {

struct WeightQuantisation {
  int bits = 0;            // 4 or 8; 0: weights stay floats
  std::int64_t group = 0;  // neighbours in a row that share a scale; 0: the whole row
  bool dynamic = false;    // activations of these layers are quantised to 8 bits, by row
};

// Of a normalised program. What stays floats because quantised values of it would save little is told in one note,
// quantise.small-weights. Error quantise.group-size: a row of a weight is no whole number of groups.
Status quantise_weights(Graph& graph, const WeightQuantisation& how, const std::function<void(Diagnostic)>& sink = {});

}  // namespace tosaic
