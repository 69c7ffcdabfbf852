// SPDX-License-Identifier: Apache-2.0
// Bias correction. Rounding a weight moves the mean of what its layer gives: channel by channel by E[(Wq - W) x]. The
// samples tell E[x], the layer is linear, so the bias can take that back, at no cost on the device. (Nagel et al.,
// "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.2, with the means of
// samples in place of those that batch norms hold.)
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "quantise/layer_means.h"
#include "quantise/plan.h"

namespace tosaic {

// A layer that can take a bias: convolutions and linear layers, whose operands the schema calls by these names.
bool takes_bias(const Graph& graph, const PlannedWeight& weight);

// What its weight meets, where a bias could take back what that gives.
std::optional<Window> corrected_window(const Graph& graph, const PlannedWeight& weight);

// What samples are to be asked for, for find_bias_shifts.
LayerMeans means_wanted(const Graph& graph, const QuantisationPlan& plan, std::size_t samples);

// What is added to each channel's bias, by the result of its layer.
using BiasShifts = std::map<ValueId, std::vector<double>>;
BiasShifts find_bias_shifts(const Graph& graph, const QuantisationPlan& plan, const LayerMeans& means,
                            const QuantiseWeight& quantise_one, int threads);
// `mean` of n - 1 becomes that of n, with `more`.
void average_with(BiasShifts& mean, const BiasShifts& more, int n);
// After give_weights, of the layers whose weights have become quantised values.
void correct_biases(Graph& graph, const QuantisationPlan& plan, const BiasShifts& shifts);
// Where a channel's weights are so small (training left it dead) that its accumulator has too few steps for its bias,
// the weight's scale grows (ops/bias_room.h).
void leave_biases_room(Graph& graph, const QuantisationPlan& plan);

}  // namespace tosaic
