// SPDX-License-Identifier: Apache-2.0
// What a program remembers of its training: a batch norm keeps the mean and the variance of each channel that it saw
// there.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

struct TrainedNorm {
  struct Channel {
    double mean = 0, deviation = 0;  // in training; deviation 0: the channel says nothing
  };
  struct Seen {
    std::string value;  // by name
    std::vector<Channel> channels;
  };
  // What it gives and what it reads: `normalise` folds the norm into the layer before it and leaves the one, or into
  // those after it and leaves the other.
  Seen result, operand;
  LocRef loc;
};

// Of a program as it was read. Norms in the state in which they were made (mean 0, variance 1) have seen nothing.
std::vector<TrainedNorm> trained_norms(const Graph& program);

}  // namespace tosaic
