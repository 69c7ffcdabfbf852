// SPDX-License-Identifier: Apache-2.0
// One ATen node, lowered by itself in a scratch graph: how every question about a node is answered.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace tosaic {

// What a node means: its operator's float lowering, or that wrapped in the rules of quantisation (lower/lower_node.h).
using NodeLowering = Vals (*)(Builder& builder, const Node& node, std::vector<std::optional<Val>> operands,
                              const std::vector<TensorType>& declared);
Vals lower_as_floats(Builder& builder, const Node& node, std::vector<std::optional<Val>> operands,
                     const std::vector<TensorType>& declared);

struct TrialOptions {
  bool fold = false;                 // evaluate what is constant
  const tosa::Spec* spec = nullptr;  // what the target takes, where an operator has several lowerings
  NodeLowering lowering = lower_as_floats;
  // Puts something else in place of operand `i`: its type, its elements (null: computed).
  std::function<void(std::size_t i, TensorType& type, Bytes& elements)> operand = {};
};

struct Trial {
  Graph graph;                    // inputs: the operands that are not constants, in order; outputs: the results
  std::vector<ValueId> operands;  // the scratch value of each of the node's operands, no_value where it has none
  std::vector<ValueId> results;   // one per output
};

// As floats, quantised tensors are the reals that their quantised values stand for, of no known elements. The error is
// the lowering's refusal, at the node's location. A node without outputs declares nothing: for operands of other
// shapes.
Result<Trial> try_node(const Graph& graph, const Node& node, const TrialOptions& options = {});
// Per operand of the call: is a result made of it? copy_ reads nothing of what it overwrites. All, where the call
// cannot be lowered.
std::vector<char> read_operands(const Trial& trial);
std::vector<char> read_operands(const Graph& graph, const Node& node);
// Leaves what the results with `read` are made of. The others keep their places, and nothing computes them.
void leave_results(Trial& trial, const std::vector<char>& read);
// The same call, which says nothing of its results.
Node undeclared(const Node& node);

// A lowering asked for a number where a size is none.
Diagnostic unknown_size(const Node& node, const UnknownSize& why);

// The type as the reals that it stands for.
TensorType real_type(const TensorType& type);

}  // namespace tosaic
