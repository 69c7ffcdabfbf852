// SPDX-License-Identifier: Apache-2.0
// Weights that are whole numbers of 4 or 8 bits times scales, of which neighbours in a row share one.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic::plan {

// q * scales, which broadcast along all dims after the first `outer`.
struct QuantisedForm {
  ValueId quantised = no_value, scales = no_value;
  std::int64_t group = 0;  // neighbours in a row with one scale: a row has a whole number of groups
  int outer = 0;
  std::int64_t times = 1;  // groups that follow each other with one scale
  Shape shape, of_scales;

  // The scales of `to.size()` groups from group `first` on, which are counted row after row, from the elements of
  // `scales`.
  void read_scales(std::span<const float> elements, std::int64_t first, std::span<float> to) const;
};
// Of MUL node `product`, whose result is rows of k elements. nullopt: no scales by group.
std::optional<QuantisedForm> find_quantised_form(const Graph& graph, const Node& product, std::int64_t k);

}  // namespace tosaic::plan
