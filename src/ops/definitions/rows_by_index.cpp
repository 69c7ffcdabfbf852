// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/rows_by_index.h"

#include <limits>

#include "ops/definitions/extension.h"

namespace tosaic::tosa {

TypeRows rows_by_index(std::string_view variable) {
  using enum DType;
  const TypeRows older = integers(variable, {i8, i16, i32}) + fp8s(variable) + floats(variable);
  const TypeRows booleans = since_1_1(either(variable, {boolean}));
  return with(older + booleans + int64s(variable), "index", i32) +
         with(since_1_1(older) + booleans + int64s(variable), "index", i64);
}

ValueId narrow_indices(extension::Definition& d, ValueId indices) {
  if (d.type(indices).dtype != DType::i64) return indices;
  const auto limit = [&](Operator op, ValueId v, double value) {
    return d.call(op, {v, d.number(DType::i64, d.type(v).rank(), value)}, d.type(v),
                  {{"nan_mode", std::string("propagate")}});
  };
  const ValueId positive = limit(op::maximum, indices, -1);
  return d.cast(limit(op::minimum, positive, std::numeric_limits<std::int32_t>::max()), DType::i32);
}

std::vector<ValueId> in_older_types(extension::Definition& d) {
  std::vector<ValueId> operands = d.node().inputs;
  const TensorType& result = d.result();
  const bool boolean = result.dtype == DType::boolean;
  if (!boolean && d.type(operands[1]).dtype != DType::i64) return {};
  operands[1] = narrow_indices(d, operands[1]);
  if (boolean)
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (i != 1) operands[i] = d.cast(operands[i], DType::i8);
  const ValueId made = d.call(d.node().op, operands, boolean ? result.with(DType::i8) : result);
  return {boolean ? d.cast(made, DType::boolean) : made};
}

}  // namespace tosaic::tosa
