// SPDX-License-Identifier: Apache-2.0
// Weights of a program that stays floats, rounded by least squares on what samples multiply them with
// (quantise/least_squares.h).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quantise/layer_rows.h"
#include "quantise/quantise.h"
#include "quantise/weight_quantisation.h"

namespace tosaic {

// What samples of a program's methods, and of all their sizes, say of its weights. A weight is known by its name, and
// is rounded once: methods that share it read the same quantised values.
class WeightsOnSamples {
 public:
  // Of how a program is run on the samples.
  struct Running {
    int threads = 0;
    std::function<void()> ran_one;         // after each sample
    std::function<bool()> cancelled = {};  // asked before each: compile.cancelled
  };
  // Runs a normalised method, as it is at the samples' sizes. `all`: how many samples there are of all sizes.
  Status see(Graph graph, const std::vector<std::vector<Tensor>>& samples, std::size_t all,
             const WeightQuantisation& how, const Running& running);
  // Rounds what was seen since the last call.
  void round(const WeightQuantisation& how, int threads);

  // Quantised values of a weight, [n * k / group, group], where the samples said something of it.
  const Tensor* find(const Value& weight) const;

 private:
  struct Seen {
    Graph graph;
    LayerRows rows;
  };
  struct Rounded {
    Bytes floats;
    Tensor values;
  };
  std::vector<Seen> seen_;
  std::map<std::string, Rounded> rounded_;
  StateContents contents_;
};

}  // namespace tosaic
