// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/packed_conv_i8.h"

namespace tosaic::cpu {

std::vector<PackedConvI8> pack_conv_i8(const Planning& planning, const Node& node, const Window& window,
                                       const GemmI8& kernel) {
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const Bytes weights = patch_weights(planning.graph, node);
  const std::int64_t k = window.k(), count = window.groups(), columns = weight.type.shape.size(0) / count;
  const bool lasts = count == 1 && lie_as_patches(node), one_bias = bias.type.shape.elements() == 1;
  const std::int32_t input_zp = only_scalar(planning.graph, node.inputs[3]),
                     weight_zp = only_scalar(planning.graph, node.inputs[4]);
  std::vector<PackedConvI8> groups(static_cast<std::size_t>(count));
  for (std::int64_t g = 0; g < count; ++g) {
    PackedConvI8& group = groups[static_cast<std::size_t>(g)];
    group.weight = panels_i8(kernel, columns, k);
    group.packed = pack_rows(group.weight, reinterpret_cast<const std::int8_t*>(weights.data()) + g * columns * k,
                             lasts ? &planning.packed_weights->integers : nullptr);
    group.column_terms.resize(static_cast<std::size_t>(group.weight.padded()));
    column_terms(group.weight, group.packed->sums,
                 reinterpret_cast<const std::int32_t*>(bias.constant.data()) + (one_bias ? 0 : g * columns),
                 one_bias ? 1 : columns, input_zp, weight_zp, group.column_terms.data());
    group.weight.data = group.packed->panels.get();
    group.weight.column_term = group.column_terms.data();
  }
  return groups;
}

void pack_scales(const Epilogue& epilogue, const GemmI8& kernel, std::vector<PackedConvI8>& groups) {
  if (!epilogue.rescaled) return;
  const std::int64_t columns = groups[0].weight.n;
  const auto own = [&](const auto& all, std::int64_t g) {
    const auto first = static_cast<std::size_t>(all.size() == 1 ? 0 : g * columns),
               count = all.size() == 1 ? 1 : static_cast<std::size_t>(columns);
    return std::span(all).subspan(first, count);
  };
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    groups[static_cast<std::size_t>(g)].scales =
        rescale_columns(own(epilogue.multiplier, g), own(epilogue.shift, g), columns, kernel.lanes);
}

}  // namespace tosaic::cpu
