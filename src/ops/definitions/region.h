// SPDX-License-Identifier: Apache-2.0
// Bodies of control flow: their signatures, and running them. Private to src/ops.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ops/definitions/row.h"

namespace tosaic::tosa {

// "<op>.regions": the node carries `count` bodies.
inline Check check_region_count(const View& view, std::size_t count) {
  if (view.node().regions.size() == count) return std::nullopt;
  return broken(fmt::format("{}.regions", view.node().op.base()), "{} subgraphs, {} are needed",
                view.node().regions.size(), count);
}

// "<op>.<rule>": the values of a body agree one by one in dtype and shape with those of the node.
inline Check check_signature(const View& view, std::string_view rule, const Graph& body,
                             const std::vector<ValueId>& in_body, std::span<const ValueId> in_graph) {
  const std::string label = fmt::format("{}.{}", view.node().op.base(), rule);
  if (in_body.size() != in_graph.size())
    return broken(label, "the subgraph '{}' has {} of them, {} are needed", body.name, in_body.size(), in_graph.size());
  for (std::size_t i = 0; i < in_body.size(); ++i) {
    const TensorType &a = body[in_body[i]].type, &b = view.graph()[in_graph[i]].type;
    if (a.dtype != b.dtype || a.shape.sizes() != b.shape.sizes())
      return broken(label, "value {} of the subgraph '{}' is {}, {} is needed", i, body.name, to_string(a),
                    to_string(b));
  }
  return std::nullopt;
}

inline std::vector<Tensor> owned(std::span<const TensorView> views) {
  std::vector<Tensor> tensors;
  for (const TensorView& v : views) tensors.push_back({v.type, Bytes::copy(v.data, v.type.storage_bytes())});
  return tensors;
}

inline Status copy_results(const Run& run, const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < run.out.size(); ++i) {
    if (i >= results.size() || results[i].data.size() != run.out[i].type.storage_bytes())
      return error("run.region", fmt::format("{}: a subgraph gave no fitting result {}", run.view.node().op.base(), i));
    std::memcpy(run.out[i].data, results[i].data.data(), results[i].data.size());
  }
  return {};
}

// True when the one element of a boolean tensor is.
inline bool holds(const void* data) { return *static_cast<const std::uint8_t*>(data) != 0; }

}  // namespace tosaic::tosa
