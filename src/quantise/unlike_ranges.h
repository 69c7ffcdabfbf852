// SPDX-License-Identifier: Apache-2.0
// Tensors of unlike ranges concatenated (boxes in pixels next to scores below 1): one scale for all would leave
// nothing of the smaller ones. Found on the samples, before scales are planned.
#pragma once
#include <map>
#include <vector>

#include "quantise/quantise.h"
#include "quantise/saturation.h"

namespace tosaic {

struct UnlikeRanges {
  UnlikeRanges() = default;
  explicit UnlikeRanges(const Graph& graph)
      : apart(graph.nodes.size(), 0), floats(graph.nodes.size(), 0), wide(graph.values.size(), 0) {}
  std::vector<char> apart;                     // per node: its operands keep scales of their own
  std::vector<char> floats;                    // per node: not quantised; its result only leaves the program, as floats
  std::vector<char> wide;                      // per value: 16 bits, which hold the smaller operands, too
  std::map<std::size_t, Diagnostic> warnings;  // per node: what is to be said of it once calibration confirms it
};

// Of each such call, with the ranges and the user's line. What masks an output is said at once.
Result<UnlikeRanges> find_unlike_ranges(const Graph& graph, const std::vector<std::vector<Tensor>>& samples,
                                        const QuantiseOptions& options, const Sink& sink);

// Nodes that compute numbers from the program's scalars stay float.
void keep_scalars_float(const Graph& graph, std::vector<char>& floats);

// May everything that holds the tensor's quantised values have 16 bits? Products of two computed tensors want both
// alike, and what is joined further on would draw other tensors in.
bool may_be_wide(const Graph& graph, ValueId tensor);

// Scalar constants of the program that stand among the elements of a tensor (where, masked_fill, pad) are operands of
// unlike range, too. After calibration: what the readers cannot tell from the rest, as a mask before a softmax, shares
// a quantised value with it and costs nothing. `unlike_ranges` grows; true: by something.
bool find_unlike_scalars(const Graph& graph, const Saturation& saturation, const QuantiseOptions& options,
                         UnlikeRanges& unlike_ranges);

// After calibration: operands that are unlike by what the readers cannot tell from the rest alone, as scores with a
// mask before a softmax next to others without, share a scale after all. True: there were some.
bool join_masked(const Graph& graph, const Saturation& saturation, UnlikeRanges& unlike_ranges);

}  // namespace tosaic
