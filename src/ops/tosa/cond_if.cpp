// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/region.h"

namespace tosaic::tosa {
namespace {

// Operands {condition, list...}; regions {then, else}.
std::vector<TensorType> infer(const View& view) {
  std::vector<TensorType> types;
  if (view.node().regions.empty()) return types;
  const Graph& body = view.node().regions[0];
  for (ValueId v : body.outputs) types.push_back(body[v].type);
  return types;
}

Check check(const View& view) {
  if (Check c = check_region_count(view, 2)) return c;
  if (view.in(0).shape.elements() != 1)
    return broken("cond_if.condition-size", "the condition has shape [{}], one element is needed",
                  to_string(view.in(0).shape));
  const Node& node = view.node();
  const auto operands = std::span(node.inputs).subspan(1);
  const Graph &then_body = node.regions[0], &else_body = node.regions[1];
  if (Check c = check_signature(view, "then-inputs", then_body, then_body.inputs, operands)) return c;
  if (Check c = check_signature(view, "else-inputs", else_body, else_body.inputs, operands)) return c;
  if (Check c = check_signature(view, "then-outputs", then_body, then_body.outputs, node.outputs)) return c;
  return check_signature(view, "else-outputs", else_body, else_body.outputs, node.outputs);
}

Status eval(const Run& run) {
  const Graph& body = run.view.node().regions[holds(run.in[0].data) ? 0 : 1];
  TOSAIC_TRY(const std::vector<Tensor> results, (*run.region)(body, owned(run.in.subspan(1))));
  return copy_results(run, results);
}

}  // namespace

Op tosa_cond_if() {
  return {
      .name = "cond_if",
      .schema_number = 70,
      .spirv_number = 0xffff,
      .summary = "runs one of two graphs",
      .inputs = {{"condition", "bool"}, {.name = "input_list", .type = "", .list = true}},
      .attrs = {},  // the schema names its bodies; here they are the node's regions
      .outputs = {{.name = "output_list", .type = "", .list = true}},
      .types = {{{Feature::controlflow}, {}}},
      .infer = infer,
      .check = check,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
