// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/core_aten.h"

namespace tosaic::tosa {

ValueId CoreAten::value(ValueId lowered) {
  auto [known, fresh] = of_.try_emplace(lowered, no_value);
  if (fresh) known->second = program_.add_value(next_name("v"), lowered_[lowered].type, lowered_[lowered].constant);
  return known->second;
}

std::string CoreAten::next_name(const char* stem) const {
  return name_ + "." + stem + std::to_string(program_.values.size());
}

bool CoreAten::add(const Node& node) {
  const Op* op = find(node.op);
  if (!op || node.outputs.size() != 1) return false;
  node_ = &node;
  result_ = value(node.outputs[0]);
  if (op->in_core_aten) return op->in_core_aten(View(lowered_, node), *this);
  if (op->core_aten.none()) return false;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op->inputs.size(); ++i)
    if (!op->inputs[i].constant) operands.push_back(operand(i));
  return gives(op->core_aten, std::move(operands));
}

void CoreAten::add(Operator op, std::vector<ValueId> inputs, Attrs attrs, ValueId output) {
  calls.push_back({op, std::move(inputs), std::move(attrs), {output}, loc_, {}});
}

ValueId CoreAten::made(Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType result) {
  const ValueId v = program_.add_value(next_name("t"), std::move(result));
  add(op, std::move(inputs), std::move(attrs), v);
  return v;
}

bool CoreAten::gives(Operator op, std::vector<ValueId> inputs, Attrs attrs) {
  add(op, std::move(inputs), std::move(attrs), result_);
  return true;
}

ValueId row_indices(CoreAten& calls) {
  const ValueId x = calls.operand(0), rows = calls.operand(1);
  const Shape& shape = calls.type(rows).shape;
  const std::int64_t width = calls.type(x).shape.size(2);
  const TensorType row{DType::i64, {shape.size(0), shape.size(1), 1}, {}},
      all{DType::i64, {shape.size(0), shape.size(1), width}, {}};
  ValueId index = calls.made(aten::op::_to_copy, {rows}, {{"dtype", DType::i64}}, calls.type(rows).with(DType::i64));
  index = calls.made(aten::op::view_copy, {index}, {{"size", row.shape.sizes()}}, row);
  return width == 1 ? index : calls.made(aten::op::expand_copy, {index}, {{"size", all.shape.sizes()}}, all);
}

}  // namespace tosaic::tosa
