// SPDX-License-Identifier: Apache-2.0
// A program of floats as what runs it computes it, with fewer bits than the model says.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tosaic {

constexpr bool is_narrow_float(DType type) { return is_float(type) && storage_size(type) < storage_size(DType::f32); }

// The graph with each value rounded to the type that `kept` has for it, and back: sums and what is between stay as wide
// as they are. `kept` has the same values, as far as it has any.
Graph rounded_as_kept(Graph graph, const Graph& kept);

struct NarrowFloats {
  // The whole program, rounded where the device rounds.
  Lowered executed;
  // Per value of the program: the narrower type in which it is kept; none: its own.
  std::vector<std::optional<DType>> kept;
  DType weights = DType::f32;  // what convolutions and matrix products have them in
  std::string keep_option;     // of the target: names what stays as wide as the program says; empty: there is none
  // How the device keeps what it is given by itself (Target::kept).
  std::function<Result<Graph>(const Graph& tosa)> alone;
};

}  // namespace tosaic
