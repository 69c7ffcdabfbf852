// SPDX-License-Identifier: Apache-2.0
// PT2E's nodes between floats and quantised values, for the stages that take them apart and make them.
#pragma once
#include <map>

#include "ir/rewriter.h"

namespace tosaic {

Node quantise_node(const TensorType& type, ValueId real, ValueId quantised_value, LocRef loc);
Node dequantise_node(const TensorType& type, ValueId quantised_value, ValueId real, LocRef loc);

// A constant, of reals or of other quantised values, as quantised values of that type, the nearest; NaN is 0.
Bytes quantise_constant(const Value& value, const TensorType& type);

// Calls that compute with real numbers among quantised tensors.
class FloatCalls {
 public:
  FloatCalls(Graph& graph, Rewriter& out) : graph_(graph), out_(out) {}
  // The call stays: its operands are dequantised before, its results quantised after it.
  void keep(Node node);
  // What the quantised values stand for, made once.
  ValueId real(ValueId quantised_value, const LocRef& loc);
  // What was given, not what its quantised values say.
  void already_real(ValueId quantised_value, ValueId real) { reals_[quantised_value] = real; }

 private:
  Graph& graph_;
  Rewriter& out_;
  std::map<ValueId, ValueId> reals_;
};

}  // namespace tosaic
