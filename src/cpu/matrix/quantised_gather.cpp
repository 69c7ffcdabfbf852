// SPDX-License-Identifier: Apache-2.0
// Rows of a quantised table: only those that are looked up become floats.
#include <fmt/format.h>

#include "cpu/matrix/quantised_product.h"
#include "cpu/matrix/quantised_weight.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {

bool take_quantised_gather(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != extension::op::scaled_gather) return false;
  const ValueId which = node.inputs[extension::scaled_gather::indices];
  Step step{.kernel = "coded_rows", .nodes = {n}, .reads = {which}, .writes = {node.outputs[0]}};
  const std::int64_t count = planning.type(which).shape.elements();
  step.run = [=, table = quantised_weight(planning, node), to = node.outputs[0]](const Frame& frame) -> Status {
    const auto* index = static_cast<const std::int32_t*>(frame.read(which));
    auto* out = static_cast<float*>(frame.write(to));
    const std::int64_t rows = table->panels().n;
    for (std::int64_t i = 0; i < count; ++i, out += table->panels().k) {
      if (index[i] < 0 || index[i] >= rows)
        return error("tosa.unpredictable", fmt::format("gather: index {} is outside 0..{}", index[i], rows - 1));
      table->read_row(index[i], out);
    }
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
