// SPDX-License-Identifier: Apache-2.0
#include "base/loop_limit.h"
#include "ops/definitions/region.h"

namespace tosaic::tosa {
namespace {

// Operands are the loop's variables; regions {cond, body}.
std::vector<TensorType> infer(const View& view) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < view.inputs(); ++i) types.push_back(view.in(i));
  return types;
}

Check check(const View& view) {
  if (Check c = check_region_count(view, 2)) return c;
  const Node& node = view.node();
  const Graph &condition = node.regions[0], &body = node.regions[1];
  if (node.inputs.size() != node.outputs.size())
    return broken("while_loop.outputs", "{} operands and {} results", node.inputs.size(), node.outputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (view.in(i).dtype != view.out(i).dtype || view.in(i).shape.sizes() != view.out(i).shape.sizes())
      return broken("while_loop.outputs", "operand {} is {}, the result {}", i, to_string(view.in(i)),
                    to_string(view.out(i)));
  if (Check c = check_signature(view, "cond-inputs", condition, condition.inputs, node.inputs)) return c;
  if (Check c = check_signature(view, "body-inputs", body, body.inputs, node.inputs)) return c;
  if (Check c = check_signature(view, "body-outputs", body, body.outputs, node.inputs)) return c;
  if (condition.outputs.size() != 1 || condition[condition.outputs[0]].type.shape.elements() != 1)
    return broken("while_loop.cond-output-size", "the condition '{}' must give one element", condition.name);
  if (const DType type = condition[condition.outputs[0]].type.dtype; type != DType::boolean)
    return broken("while_loop.cond-output-type", "the condition '{}' gives {}, not bool", condition.name,
                  name_of(type));
  return std::nullopt;
}

Status eval(const Run& run) {
  const Graph &condition = run.view.node().regions[0], &body = run.view.node().regions[1];
  std::vector<Tensor> values = owned(run.in);
  TOSAIC_TRY(const std::int64_t most, most_turns());
  for (std::int64_t turns = 0;; ++turns) {
    TOSAIC_TRY(const std::vector<Tensor> verdict, (*run.region)(condition, values));
    if (verdict.size() != 1 || verdict[0].data.empty())
      return error("run.region", "while_loop: the condition gave no result");
    if (!holds(verdict[0].data.data())) return copy_results(run, values);
    if (turns == most) return too_many_turns(most);
    TOSAIC_TRY(std::vector<Tensor> next, (*run.region)(body, std::move(values)));
    values = std::move(next);
  }
}

}  // namespace

Op tosa_while_loop() {
  return {
      .name = "while_loop",
      .schema_number = 71,
      .spirv_number = 0xffff,
      .summary = "runs a graph as long as another one gives true",
      .inputs = {{.name = "input_list", .type = "", .list = true}},
      .attrs = {},  // the schema names its bodies; here they are the node's regions
      .outputs = {{.name = "output_list", .type = "", .list = true}},
      .types = {{{Feature::controlflow}, {}}},
      .infer = infer,
      .check = check,
      .eval = eval,
  };
}
}  // namespace tosaic::tosa
