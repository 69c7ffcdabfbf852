// SPDX-License-Identifier: Apache-2.0
#include "ops/rules/in_integers.h"

#include <algorithm>
#include <cmath>

#include "ops/builder_bounds.h"

namespace tosaic {
namespace {

// Units are powers of two: whole numbers are shifts then, and constants like 3 and 0.5 are exact. Of 22 bits in all
// what differs from a whole number by no more than the rounding of f32 is one.
constexpr int most_bits = 22;
// A unit beyond x's own step loses what the table was to gain; products of 16-bit values may want one that is.
constexpr double coarsest = 4;

bool has_integers_alone(const Graph& graph, std::size_t first_node) {
  const tosa::Spec all = tosa::Spec::everything();
  return std::all_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(first_node), graph.nodes.end(),
                     [&](const Node& node) {
                       const bool floats = std::any_of(node.outputs.begin(), node.outputs.end(),
                                                       [&](ValueId v) { return is_float(graph[v].type.dtype); });
                       return !floats && !tosa::verify_node(tosa::View(graph, node), all);
                     });
}

std::optional<Vals> in_unit(QuantisedCall call, double unit) {
  Val& x = *call.operands.at(0);
  x = call.b.rescale(x, {DType::i32, x.shape(), Scales{{unit}, {0}}});
  try {
    return call.as_declared();
  } catch (const Refusal&) { return std::nullopt; }
}

}  // namespace

std::optional<Vals> in_integers(const QuantisedCall& call) {
  const Val x = call.operands.at(0).value();
  if (x.dtype() != DType::i16 || !x.type().quantised() || !x.type().scales->per_tensor() ||
      !call.declared.at(0).quantised())
    return std::nullopt;
  Graph& graph = call.b.graph();
  const auto nodes = graph.nodes.size(), values = graph.values.size();
  const double step = x.type().scales->scale[0];
  for (double unit = std::exp2(std::ceil(std::log2(step * 32768)) - most_bits); unit <= coarsest * step; unit *= 2) {
    auto results = in_unit(call, unit);
    const bool sound = results && has_integers_alone(graph, nodes) && call.b.accepts_from(nodes);
    if (sound && !possible_overflow(graph, nodes)) return results;
    graph.nodes.resize(nodes);
    graph.values.resize(values);
    if (!sound) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tosaic
