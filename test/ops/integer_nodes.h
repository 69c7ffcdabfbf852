// SPDX-License-Identifier: Apache-2.0
// A quantised ATen graph, piece by piece: what the integers of each node give compared with what its function gives for
// the numbers that the same quantised values stand for. So every node is judged by itself, also inside composites.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/definitions/tosa_op.h"
#include "ops/op.h"

namespace tosaic::domain {

// The numbers that quantised values stand for, as f32, and quantised values of the given types for numbers. What has no
// scale stays.
std::vector<double> numbers(const Tensor& tensor);
Tensor real(const Tensor& quantised_values);
// uint8 as targets have it, in bytes of i8 (lower/unsigned_bytes.h), and results under the program's types again.
std::vector<Tensor> as_bytes(std::vector<Tensor> tensors);
std::vector<Tensor> under_types(std::vector<Tensor> results, const std::vector<TensorType>& types);
std::vector<Tensor> reals(const std::vector<Tensor>& quantised_values);
Tensor quantise_as(const Tensor& real, const TensorType& type);

// How far the quantised values of one result are from the numbers it should be, in steps of its scale; where numbers
// are not finite nothing is promised, and what lies beyond the quantised values counts as their end. For results
// without a scale (booleans, indices) the share of elements that differ.
struct Distance {
  double worst = 0, rms = 0;  // in steps
  double signal = 0;          // rms of the numbers, in steps
};
// What is right lies between `low` and `high`.
Distance distance(const std::vector<double>& low, const std::vector<double>& high, const Tensor& got,
                  const TensorType& type);

struct NodeResult {
  std::string op;
  Rule rule;
  TensorType type;
  Distance distance;
};
// Every node, run on the quantised values that the nodes before it gave; `outputs` receives those of the graph.
Result<std::vector<NodeResult>> node_results(const Graph& quantised, const std::vector<Tensor>& inputs,
                                             const tosa::Spec& spec, std::vector<Tensor>& outputs);

}  // namespace tosaic::domain
