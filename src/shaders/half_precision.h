// SPDX-License-Identifier: Apache-2.0
// Weights and activations in 16 bits, for those who asked for it.
#pragma once
#include <string>
#include <vector>

#include "formats/vulkan_program/tiers.h"
#include "ir/graph.h"

namespace tosaic::shaders {

// What stays in 32 bits.
struct KeptWide {
  // Sums of two computed tensors that no product reads: what layers add to, one after the other, and what is
  // normalised.
  bool sums = false;
  // What nodes of the model, or of modules and those inside of them, make.
  std::vector<std::string> names = {};
};

// Names by which nothing of the graph is called.
std::vector<std::string> names_of_nothing(const Graph& graph, const KeptWide& wide);

// The graph with f16 where its f32 values are kept between dispatches: activations, and weights of convolutions and
// products, and large inputs and outputs (narrow_interface.h). Others and other constants stay as they are. Nodes then
// have operands of mixed types, which only shaders take: they load each as what it is, and compute in f32.
Graph in_half_precision(const Graph& graph, const KeptWide& wide = {});

// A convolution or a product, whose second operand is kept in 16 bits where it is a constant.
bool has_weights(const Node& node);

// The same for who computes it elsewhere: f16 is what a dispatch of the tier rounds to, of the values that it stores
// and of the weights of attention. What lives inside of one stays f32.
Result<Graph> stored_in_half_precision(const Graph& graph, const KeptWide& wide, vulkan_program::TierId tier);

}  // namespace tosaic::shaders
