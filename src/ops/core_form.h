// SPDX-License-Identifier: Apache-2.0
// A call said in core ATen, the vocabulary of ExecuTorch's kernels: conv2d is convolution, layer_norm is
// native_layer_norm with two more results. An operator that is not in it has its form in its own file (AtenOp::core).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

// A call to be respelled: arguments by name, defaults filled in; every tensor that the schema demands is given.
struct CoreCall {
  Graph& graph;
  const Node& node;
  const Schema& schema;

  const Attr& attr(std::string_view name) const;
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;  // 0 when it is no integer
  // A list, or one number for all of `count` dims.
  std::vector<std::int64_t> ints(std::string_view name, std::size_t count) const;
  const TensorType& in(std::size_t i) const { return graph[node.inputs[i]].type; }
  const TensorType& out() const { return graph[node.outputs[0]].type; }
  bool given(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != no_value; }
  ValueId operand(std::size_t i) const { return given(i) ? node.inputs[i] : no_value; }

  // Another operator with the same results.
  Node call(Operator op, std::vector<ValueId> inputs, Attrs attrs = {}) const;
  // The same call under another name: "bitwise_and" for __and__, in the same overload.
  Node renamed(std::string_view name) const;
  // A further result, which nobody wants but the kernel writes.
  void add_result(Node& made, DType dtype, Shape shape) const;
};

}  // namespace tosaic
