// SPDX-License-Identifier: Apache-2.0
// SELECT by a condition that is known: masks of attention (is_causal, or a boolean buffer).
#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::ethos_u {
namespace {

struct Bounds {
  ValueId where_true = no_value, where_false = no_value;
};

// Constants of the condition's shape: the dtype's highest number where an operand is chosen, its lowest elsewhere.
Bounds bounds_of(Graph& graph, const TensorType& condition, const Bytes& chosen, DType dtype) {
  const IntegerRange range = range_of(dtype);
  Ints where_true, where_false;
  for (std::int64_t i = 0; i < condition.shape.elements(); ++i) {
    const bool holds = element_as_integer(DType::boolean, chosen.data(), static_cast<std::size_t>(i)) != 0;
    where_true.push_back(holds ? range.highest : range.lowest);
    where_false.push_back(holds ? range.lowest : range.highest);
  }
  const TensorType type{DType::i32, condition.shape, {}};
  return {graph.add_value("chosen", type, constant_bytes(DType::i32, where_true)),
          graph.add_value("others", type, constant_bytes(DType::i32, where_false))};
}

}  // namespace

// max(min(a, highest where a is chosen), min(b, highest where b is)): of a number and the lowest one, the number wins.
bool select_by_bounds(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::select) return false;
  const tosa::View view(graph, node);
  const Bytes chosen = view.constant(0);
  const TensorType result = view.out();
  if (chosen.null() || (result.dtype != DType::i8 && result.dtype != DType::i16)) return false;
  const Bounds bounds = bounds_of(graph, view.in(0), chosen, result.dtype);
  const LocRef loc = node.loc;
  const auto add = [&](Operator op, ValueId x, ValueId y) {  // which has no form of 8 and 16 bits
    const TensorType type{DType::i32, tosa::broadcast_shape(graph[x].type.shape, graph[y].type.shape), {}};
    return out.add(op, {x, y}, {{"nan_mode", std::string("propagate")}}, type, loc);
  };
  const auto bounded = [&](ValueId x, ValueId by) {
    const TensorType wide{DType::i32, graph[x].type.shape, {}};
    return add(tosa::op::minimum, out.rescaled_by_one(x, wide, loc), by);
  };
  const ValueId a = bounded(node.inputs[1], bounds.where_true), b = bounded(node.inputs[2], bounds.where_false);
  out.rescaled_by_one(add(tosa::op::maximum, a, b), result, loc, node.outputs[0]);
  return true;
}

}  // namespace tosaic::ethos_u
