// SPDX-License-Identifier: Apache-2.0
// Bias correction. Rounding a weight moves the mean of what its layer gives: channel by channel by E[(Wq - W) x]. The
// samples tell E[x], the layer is linear, so the bias can take that back, at no cost on the device. (Nagel et al.,
// "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.2, with the means of
// samples in place of those that batch norms hold.)
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/system/thread_pool.h"
#include "quantise/observed_program.h"
#include "quantise/plan.h"

namespace tosaic {

// A layer that can take a bias: convolutions and linear layers, whose operands the schema calls by these names.
bool takes_bias(const Graph& graph, const Node& node, const PlannedWeight& weight);

// The mean over the samples of the operands of layers whose weights are to be rounded, element by element.
class OperandMeans {
 public:
  OperandMeans() = default;
  OperandMeans(const Graph& graph, const QuantisationPlan& plan);

  // One look at a tensor. If it is wanted, its elements stand as those of `type` until `moves` bring them to where
  // those of value v stand.
  void see(ValueId v, const TensorType& type, std::span<const float> x, const std::vector<Move>& moves,
           ThreadPool& pool);
  // Values of another program, by what they were called; a tensor that it has not is forgotten.
  void rename(const std::map<ValueId, ValueId>& now);
  // In v's own order. nullopt: never seen, or something was not finite.
  std::optional<Tensor> mean_of(ValueId v) const;

 private:
  struct Seen {
    TensorType type;
    std::vector<Move> moves;
    Bytes first;                    // sample, f32
    std::unique_ptr<double[]> sum;  // of all, where there are more: twice the memory
    std::size_t count = 0;
    std::int64_t samples = 0;
  };
  std::map<ValueId, Seen> seen_;
};

// What is added to each channel's bias, by the result of its layer.
using BiasShifts = std::map<ValueId, std::vector<double>>;
Result<BiasShifts> find_bias_shifts(const Graph& graph, const QuantisationPlan& plan, const OperandMeans& means,
                                    const QuantiseWeight& quantise_one, int threads);
// `mean` of n - 1 becomes that of n, with `more`.
void average_with(BiasShifts& mean, const BiasShifts& more, int n);
// After give_weights, of the layers whose weights have become quantised values.
void correct_biases(Graph& graph, const QuantisationPlan& plan, const BiasShifts& shifts);

}  // namespace tosaic
