// SPDX-License-Identifier: Apache-2.0
// Tensors of unlike ranges laid side by side (boxes in pixels beside scores below 1): one scale for all would leave
// nothing of the smaller ones. Found on the samples, before scales are planned.
#pragma once
#include <vector>

#include "quantise/quantise.h"
#include "quantise/saturation.h"

namespace tosaic {

struct Pieces {
  std::vector<char> apart;   // per node: its operands keep scales of their own
  std::vector<char> floats;  // per node: not quantised; its result only leaves the program, as floats
  std::vector<char> wide;    // per value: 16 bits, which hold the smaller pieces, too
};

// Warns about each such call, with the ranges and the user's line.
Result<Pieces> unlike_pieces(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                             const QuantiseOptions& options, const Sink& sink);

// Nodes that compute numbers from the program's single numbers stay float.
void keep_numbers(const Graph& graph, std::vector<char>& floats);

// May everything that holds the tensor's codes have 16 bits? Products of two computed tensors want both alike, and what
// is joined further on would draw other tensors in.
bool may_be_wide(const Graph& graph, ValueId tensor);

// Numbers of the program's own that stand among the elements of a tensor (where, masked_fill, pad) are pieces, too.
// After calibration: what the readers cannot tell from the rest, as a mask before a softmax, shares a code with it and
// costs nothing. `pieces` grows; true: by something.
bool unlike_numbers(const Graph& graph, const Saturation& saturation, const QuantiseOptions& options, Pieces& pieces,
                    const Sink& sink);

}  // namespace tosaic
