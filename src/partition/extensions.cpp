// SPDX-License-Identifier: Apache-2.0
#include "partition/extensions.h"

#include "ir/tosa_operators.h"

#include <algorithm>

namespace tosaic {
namespace {

void collect_floats(const Graph& graph, std::vector<DType>& found) {
  for (const Value& v : graph.values)
    if (is_float(v.type.dtype) && std::ranges::find(found, v.type.dtype) == found.end()) found.push_back(v.type.dtype);
  for (const Node& node : graph.nodes)
    for (const Graph& body : node.regions) collect_floats(body, found);
}

bool holds(DType dtype, const tosa::Spec& spec) {
  Graph alone;
  Node identity;
  identity.op = tosa::op::identity;
  identity.inputs = {alone.add_value("x", {dtype, Shape{1}, {}})};
  identity.outputs = {alone.add_value("y", {dtype, Shape{1}, {}})};
  return !tosa::verify_node(tosa::View(alone, identity), spec);
}

}  // namespace

std::vector<NeededExtension> needed_extensions(const Graph& program, const tosa::Spec& spec) {
  if (spec.product || !spec.has(tosa::Feature::pro_fp)) return {};
  std::vector<DType> floats;
  collect_floats(program, floats);
  std::vector<NeededExtension> needed;
  for (DType dtype : floats) {
    if (holds(dtype, spec)) continue;
    for (auto f = tosa::Feature::int4; f < tosa::Feature::dynamic;
         f = static_cast<tosa::Feature>(static_cast<int>(f) + 1)) {
      tosa::Spec more = spec;
      more.add(f);
      if (holds(dtype, more)) needed.push_back({f, dtype});
    }
  }
  return needed;
}

}  // namespace tosaic
