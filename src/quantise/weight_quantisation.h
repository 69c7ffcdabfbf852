// SPDX-License-Identifier: Apache-2.0
// Programs of floats whose linear layers have quantised weights: smaller in the file and in memory, and so faster where
// reading them is most of the work. No samples are needed: what is quantised of activations is so as it comes. Where
// there are some, they may say how weights are best rounded (quantise/weights_on_samples.h).
#pragma once
#include <functional>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

struct WeightQuantisation {
  int bits = 0;            // 4 or 8; 0: weights stay floats
  std::int64_t group = 0;  // neighbours in a row that share a scale; 0: the whole row
  bool dynamic = false;    // activations of these layers are quantised to 8 bits, by row
  // Better quantised values than the nearest of a layer's weight, [n * k / group, group]; null: none are known.
  std::function<const Tensor*(const Value& weight)> rounded = {};
};

// The calls whose weights become quantised values, by their numbers.
std::vector<std::size_t> layers_to_quantise(const Graph& graph);

// Of a normalised program. What stays floats because quantised values of it would save little is told in one note,
// quantise.small-weights. Error quantise.group-size: a row of a weight is no whole number of groups.
Status quantise_weights(Graph& graph, const WeightQuantisation& how, const std::function<void(Diagnostic)>& sink = {});

}  // namespace tosaic
