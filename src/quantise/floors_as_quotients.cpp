// SPDX-License-Identifier: Apache-2.0
// The table of a function of 16 bits has lines between its knots, and one across each jump: of values near a whole
// number, floor gives what is between two. Quotients are exact: floor(x) = floor(x / 1), ceil(x) = -floor(-x).
#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {

void floors_as_quotients(Graph& graph, const QuantiseOptions& options) {
  if (options.scheme != Scheme::int16x8) return;  // a table of 8 bits has all values
  const Attrs by_one{{"other", 1.0}};
  Rewriter out(graph);
  Composer b(graph);
  for (Node& node : out.nodes()) {
    const bool of_floats = !node.inputs.empty() && node.inputs[0] != no_value &&
                           graph[node.inputs[0]].type.dtype == DType::f32 && !graph[node.inputs[0]].is_constant();
    b.set_loc(node.loc);
    if (of_floats && node.op == aten::op::floor) {
      out.add(aten::op::floor_divide_Scalar, node.inputs, by_one, node.outputs[0], node.loc);
    } else if (of_floats && node.op == aten::op::ceil) {
      const Val negative = calls::unary(aten::op::neg, b.value(node.inputs[0]));
      const Val floor = b.aten(aten::op::floor_divide_Scalar, {negative}, by_one);
      out.add(aten::op::neg, {floor.id()}, {}, node.outputs[0], node.loc);
    } else {
      out.keep(std::move(node));
    }
  }
}

}  // namespace tosaic
