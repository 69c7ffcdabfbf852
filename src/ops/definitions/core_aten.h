// SPDX-License-Identifier: Apache-2.0
// TOSA expressed in PyTorch: the calls of core ATen, the vocabulary of runtimes' kernels, that a TOSA node amounts to.
// What an operator's are, its definition says (Op::core_aten, Op::in_core_aten).
#pragma once
#include <map>

#include "ir/aten_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {

class CoreAten {
 public:
  // Values of `program` stand for those of `lowered`; new ones are named after `name`.
  CoreAten(Graph& program, const Graph& lowered, std::string name, LocRef loc)
      : program_(program), lowered_(lowered), name_(std::move(name)), loc_(std::move(loc)) {}

  void stands_for(ValueId lowered, ValueId in_program) { of_[lowered] = in_program; }
  ValueId value(ValueId lowered);
  // Adds the calls of a node. False: there are none.
  bool add(const Node& node);
  void add(Operator op, std::vector<ValueId> inputs, Attrs attrs, ValueId output);
  std::vector<Node> calls;

  // ---- what definitions make calls with: the operands of the node that is added, results on the way to its own
  ValueId operand(std::size_t i) { return value(node_->inputs[i]); }
  const TensorType& type(ValueId in_program) const { return program_[in_program].type; }
  ValueId made(Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType result);
  // The call that gives the node's result. Always true.
  bool gives(Operator op, std::vector<ValueId> inputs, Attrs attrs = {});

 private:
  std::string next_name(const char* stem) const;

  Graph& program_;
  const Graph& lowered_;
  std::string name_;
  LocRef loc_;
  std::map<ValueId, ValueId> of_;
  const Node* node_ = nullptr;
  ValueId result_ = no_value;
};

// Of GATHER and SCATTER, [N,K,C] by [N,W]: torch.gather and torch.scatter want int64 indices of the result's shape.
ValueId row_indices(CoreAten& calls);

// The row, with its operator of core ATen.
inline Op said_as(Operator core_aten, Op op) {
  op.core_aten = core_aten;
  return op;
}

}  // namespace tosaic::tosa
