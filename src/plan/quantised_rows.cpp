// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised_rows.h"

#include <algorithm>
#include <array>

#include "ir/tensor.h"
#include "ops/definitions/extension.h"

namespace tosaic::plan {

void QuantisedRows::read_values(std::int64_t first, std::int64_t count, std::int8_t* to) const {
  if (!by_columns) return values.read(first * k, {to, static_cast<std::size_t>(count * k)});
  std::array<std::int8_t, 256> column;
  for (std::int64_t begin = 0; begin < count; begin += 256) {
    const std::int64_t rows = std::min<std::int64_t>(256, count - begin);
    for (std::int64_t i = 0; i < k; ++i) {
      values.read(i * n + first + begin, std::span(column).first(static_cast<std::size_t>(rows)));
      for (std::int64_t row = 0; row < rows; ++row) to[(begin + row) * k + i] = column[static_cast<std::size_t>(row)];
    }
  }
}

QuantisedRows quantised_rows(const Graph& graph, const Node& node) {
  namespace product = extension::scaled_product;
  namespace gather = extension::scaled_gather;
  const bool looks_up = node.op == extension::op::scaled_gather;
  const Value &values = graph[node.inputs[looks_up ? gather::values : product::values]],
              &scales = graph[node.inputs[looks_up ? gather::scales : product::scales]];
  QuantisedRows rows{.values = {values.constant, node.attrs.get<std::int64_t>(extension::quantised::run)},
                     .scales = scales.constant,
                     .n = scales.type.shape.size(0),
                     .by_columns = node.attrs.get_or(extension::quantised::by_columns, false)};
  rows.k = rows.values.size() / std::max<std::int64_t>(rows.n, 1);
  rows.group = rows.k / scales.type.shape.size(1);
  if (scales.type.dtype != DType::f32) rows.scales = converted({scales.type, scales.constant.data()}, DType::f32);
  return rows;
}

}  // namespace tosaic::plan
