// SPDX-License-Identifier: Apache-2.0
// The constant of an extension operator that is quantised in groups (ops/definitions/extension.h), as kernels read it.
#pragma once
#include "plan/quantised_constant.h"

namespace tosaic::plan {

// n rows of k values, a scale for each group of neighbours in a row.
struct QuantisedRows {
  QuantisedConstant values;
  Bytes scales;  // f32 [n][k / group]
  std::int64_t n = 0, k = 0, group = 0;
  bool by_columns = false;  // the values lie [k][n]

  std::int64_t groups() const { return k / group; }
  // `to`: [count][k].
  void read_values(std::int64_t first, std::int64_t count, std::int8_t* to) const;
  std::span<const float> scales_of(std::int64_t row) const {
    return scales.as<float>().subspan(static_cast<std::size_t>(row * groups()), static_cast<std::size_t>(groups()));
  }
};
// Of a tosaic.scaled_product or tosaic.scaled_gather node.
QuantisedRows quantised_rows(const Graph& graph, const Node& node);

}  // namespace tosaic::plan
