// SPDX-License-Identifier: Apache-2.0
// Python scalars that a program takes out of tensors (item(), tolist()) and hands to other calls. Where
// the tensor is a constant, the scalar is known; where a call would take a tensor as well, it is the tensor.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "ir/graph.h"
#include "ir/specialise.h"

namespace tosaic {

// Scalars that calls take in place of tensors (x * s.item()): they get the tensor. Are there any scalars?
bool take_scalars_as_tensors(Graph& graph);

class KnownScalars {
 public:
  // Puts what is known into the node's arguments.
  void fill_in(const Graph& graph, Node& node) const;
  // Learns what the node, whose arguments are filled in, gives: item() of a constant, Python's arithmetic.
  void learn(const Graph& graph, const Node& node);

  // The value, if it is known, else null.
  Bytes constant(const Value& value) const;

  // Learns the sizes of what it gives, where all that they depend on is known (x[:, :n] has a size of its own).
  void learn_sizes(const Graph& graph, const Node& node);

  // The symbols of sizes that are known by that.
  const Sizes& sizes() const { return sizes_; }

 private:
  std::map<std::string, Attr, std::less<>> known_;
  Sizes sizes_;
};

}  // namespace tosaic
