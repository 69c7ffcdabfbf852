// SPDX-License-Identifier: Apache-2.0
// What a program remembers of its training: a batch norm keeps the mean and the variance of each channel that it saw
// there.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

struct TrainedNorm {
  std::string result;  // the value that it gives, by name: `normalise` folds the norm, and leaves the value
  struct Channel {
    double mean = 0, deviation = 0;  // of the result, in training; deviation 0: the channel says nothing
  };
  std::vector<Channel> channels;
  LocRef loc;
};

// Of a program as it was read. Norms in the state in which they were made (mean 0, variance 1) have seen nothing.
std::vector<TrainedNorm> trained_norms(const Graph& program);

}  // namespace tosaic
