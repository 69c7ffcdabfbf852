// SPDX-License-Identifier: Apache-2.0
// What a weight, or a table, that follows from quantised values and scales becomes: the operands of an extension
// operator.
#pragma once
#include "plan/fixed_values.h"
#include "plan/quantised_rows.h"

namespace tosaic::plan {

struct QuantisedOperands {
  QuantisedRows rows;  // without scales: these are in the weight's own dtype
  TensorType of_scales;
  Bytes scales;
};
// Of a value of constants, which is the weight but for views of it: n rows, or columns, of them. `takes`: is there a
// kernel for such rows? nullopt: it is no product of quantised values and scales by group, or none takes it.
Result<std::optional<QuantisedOperands>> quantised_operands(
    const Graph& graph, std::span<const std::int32_t> producer, const FixedValues& fixed, ValueId weight,
    std::int64_t n, bool by_columns, const std::function<bool(const QuantisedRows& rows)>& takes);

}  // namespace tosaic::plan
