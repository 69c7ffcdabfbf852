// SPDX-License-Identifier: Apache-2.0
// What PT2E's nodes between floats and codes say of a quantised type: for the stages that take them apart and make
// them.
#pragma once
#include "ir/graph.h"

namespace tosaic {

inline Attrs conversion_attributes(const TensorType& type) {
  const auto codes = codes_of(type);
  return {{"scale", type.scales->scale[0]},
          {"zero_point", type.scales->zero_point[0]},
          {"quant_min", codes.lowest},
          {"quant_max", codes.highest},
          {"dtype", type.dtype}};
}

inline Node dequantise_node(const TensorType& type, ValueId codes, ValueId real, LocRef loc) {
  Node node;
  node.op = "quantized_decomposed.dequantize_per_tensor.default";
  node.inputs = {codes};
  node.outputs = {real};
  node.attrs = conversion_attributes(type);
  node.loc = std::move(loc);
  return node;
}

}  // namespace tosaic
