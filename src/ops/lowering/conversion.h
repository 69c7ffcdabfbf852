// SPDX-License-Identifier: Apache-2.0
// PT2E's nodes between floats and codes, for the stages that take them apart and make them.
#pragma once
#include <map>

#include "ir/rewriter.h"

namespace tosaic {

Node quantise_node(const TensorType& type, ValueId real, ValueId codes, LocRef loc);
Node dequantise_node(const TensorType& type, ValueId codes, ValueId real, LocRef loc);

// A constant, of reals or of other codes, as codes of that type, the nearest; NaN is 0.
Bytes codes_of_constant(const Value& value, const TensorType& type);

// Calls that compute with real numbers among tensors of codes.
class FloatCalls {
 public:
  FloatCalls(Graph& graph, Rewriter& out) : graph_(graph), out_(out) {}
  // The call stays: its operands are dequantised before, its results quantised behind it.
  void keep(Node node);
  // What the codes stand for, made once.
  ValueId real(ValueId codes, const LocRef& loc);
  // What was given, not what its codes say.
  void already_real(ValueId codes, ValueId real) { reals_[codes] = real; }

 private:
  Graph& graph_;
  Rewriter& out_;
  std::map<ValueId, ValueId> reals_;
};

}  // namespace tosaic
