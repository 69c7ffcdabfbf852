// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/weights_i16.h"

#include <algorithm>

#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

// The same with each segment filled to whole pairs, by weights that come to zero.
std::vector<std::int8_t> filled(const std::int8_t* weights, std::int64_t segments, std::int64_t length,
                                std::int8_t zero_point) {
  std::vector<std::int8_t> result;
  for (std::int64_t s = 0; s < segments; ++s) {
    result.insert(result.end(), weights + s * length, weights + (s + 1) * length);
    result.push_back(zero_point);
  }
  return result;
}

}  // namespace

ShortSums short_sums(const Planning& planning, const Node& node, std::int64_t k) {
  const Bytes weights = patch_weights(planning.graph, node);
  return ShortSums({reinterpret_cast<const std::int8_t*>(weights.data()), planning.type(node.inputs[1]).shape.size(0),
                    k, k, 1, only_scalar(planning.graph, node.inputs[4])},
                   planning.graph[node.inputs[2]].constant.as<std::int64_t>());
}

WeightsI16 weights_i16(Planning& planning, const Node& node, std::int64_t k, const ShortSums& sums,
                       std::int64_t segments) {
  WeightsI16 w;
  w.kernel = &gemm_i16();
  const std::int64_t columns = planning.type(node.inputs[1]).shape.size(0);
  const std::int32_t zero_point = only_scalar(planning.graph, node.inputs[4]);
  const Bytes weights = patch_weights(planning.graph, node);
  const auto* rows = reinterpret_cast<const std::int8_t*>(weights.data());
  bool lasts = zero_point == 0 && lie_as_patches(node);
  std::vector<std::int8_t> whole_segments;
  if (segments > 1 && k / segments % 2 != 0) {
    whole_segments = filled(rows, columns * segments, k / segments, static_cast<std::int8_t>(zero_point));
    rows = whole_segments.data();
    k += segments;
    lasts = false;
  }
  w.panels = panels_i8(*w.kernel, columns, k);
  w.packed = pack_rows(w.panels, rows, lasts ? &planning.packed_weights->integers : nullptr);
  // Padding columns and products meet no input that matters: A's padding is not zeroed, B's must stay zero.
  if (zero_point != 0) {
    const std::vector<std::int8_t> ones(static_cast<std::size_t>(columns * k), 1);
    const auto used = pack_rows(w.panels, ones.data(), nullptr);
    auto* packed = reinterpret_cast<std::int16_t*>(w.packed->panels.get());
    const auto* where = reinterpret_cast<const std::int16_t*>(used->panels.get());
    for (std::size_t i = 0; i < w.panels.packed_bytes() / 2; ++i)
      packed[i] = static_cast<std::int16_t>(packed[i] - zero_point * where[i]);
  }
  w.panels.data = w.packed->panels.get();
  const auto bias = planning.graph[node.inputs[2]].constant.as<std::int64_t>();
  for (std::int64_t j = 0; j < columns; ++j) w.bias.push_back(bias[bias.size() == 1 ? 0 : static_cast<std::size_t>(j)]);
  w.stretch_groups = sums.stretch() / w.kernel->group;
  return w;
}

void WeightsI16::add_epilogue(const Epilogue& epilogue) {
  terms.assign(static_cast<std::size_t>(panels.padded()), 0);
  if (!epilogue.rescaled) return;
  std::ranges::transform(bias, terms.begin(), [](std::int64_t b) { return static_cast<std::int32_t>(b); });
  scales = rescale_columns(epilogue.multiplier, epilogue.shift, panels.n, kernel->lanes);
}

GemmI8Call WeightsI16::call(std::int64_t p) const {
  GemmI8Call call{};
  call.groups = panels.groups;
  call.b = panels.panel(p);
  call.units = panels.units(p);
  call.column_term = terms.data() + p * panels.panel_width();
  return call;
}

GemmI8Call WeightsI16::rescaling_call(std::int64_t p, const Epilogue& epilogue) const {
  const std::int64_t first = p * panels.panel_width();
  GemmI8Call result = call(p);
  result.columns = static_cast<int>(std::min<std::int64_t>(result.units * panels.unit_columns, panels.n - first));
  result.c_stride = panels.n;
  result.multiplier = scales.multiplier.data() + first;
  result.shift = scales.shift.data() + first;
  result.round = scales.round.data() + first;
  result.lowest = epilogue.lowest_quantised;
  result.highest = epilogue.highest_quantised;
  return result;
}

}  // namespace tosaic::cpu
