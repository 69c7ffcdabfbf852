// SPDX-License-Identifier: Apache-2.0
// The beginning of a program, as far as the first norms that remember its training, and what samples show there.
// Private to quantise/.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "execute/executable.h"
#include "ir/tensor.h"
#include "quantise/trained_norms.h"

namespace tosaic {

struct FirstNorm {
  ValueId value;                               // what it gives; where it is folded into layers after it, what it reads
  std::vector<TrainedNorm::Channel> channels;  // of that
  LocRef loc;
  std::vector<std::size_t> inputs;  // numbers of the graph's inputs in floats that it is computed from
};

// Of each channel of a norm's result, in units of the training: 0 and 1 there. Channels that say nothing stay 0.
struct SeenChannels {
  std::vector<double> sum, squares;
  double count = 0;  // elements of a channel
  double mean(std::size_t c) const { return sum[c] / count; }
  double variance(std::size_t c) const;
};

class FirstNorms {
 public:
  // Nothing: there are none, or the CPU cannot run the way to them.
  static std::optional<FirstNorms> of(const Graph& graph, const std::vector<TrainedNorm>& norms, int threads);
  const std::vector<FirstNorm>& norms() const { return norms_; }
  // One for each norm; nothing: it does not run.
  std::vector<SeenChannels> see(std::span<const std::vector<Tensor>> samples);

 private:
  std::vector<FirstNorm> norms_;
  std::optional<execute::Executable> program_;
};

}  // namespace tosaic
