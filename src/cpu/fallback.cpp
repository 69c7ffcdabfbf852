// SPDX-License-Identifier: Apache-2.0
#include "cpu/fallback.h"

#include "ir/tosa_operators.h"

#include <fmt/format.h>

namespace tosaic::cpu {

bool take_view(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::reshape && node.op != tosa::op::identity) return false;
  planning.aliases.push_back({node.outputs[0], node.inputs[0], 0});
  planning.add({.kernel = "view", .nodes = {n}, .reads = {node.inputs[0]}, .writes = {node.outputs[0]}});
  return true;
}

namespace {

// Runs the region graphs of cond_if and while_loop, each compiled once.
struct Regions {
  tosa::Variables* variables = nullptr;  // of the run; the same at every one
  std::vector<std::pair<const Graph*, Program>> programs = {};
  Result<std::vector<Tensor>> run(const Graph& graph, std::vector<Tensor> inputs) {
    for (auto& [g, program] : programs)
      if (g == &graph) return program.run(inputs);
    TOSAIC_TRY(Program program, Program::compile(graph, {.threads = 1, .variables = variables}));
    programs.emplace_back(&graph, std::move(program));
    return programs.back().second.run(inputs);
  }
};

// What one reference evaluation needs, made once for each program so that a run only fills in pointers.
struct Reference {
  const tosa::Op* op;
  tosa::View view;
  std::vector<TensorView> in;
  std::vector<MutableTensorView> out;
  Regions regions;
  tosa::RunRegion region;
  bool open = false;  // an operand that the standard wants constant is known only now (EXT-DYNAMIC)

  Reference(const tosa::Op* o, const Graph& graph, const Node& node) : op(o), view(graph, node) {
    for (ValueId v : node.inputs) in.push_back({v == no_value ? TensorType{} : graph[v].type, nullptr});
    for (ValueId v : node.outputs) out.push_back({graph[v].type, nullptr});
    for (std::size_t i = 0; i < op->inputs.size() && i < node.inputs.size(); ++i)
      open |= op->inputs[i].constant && node.inputs[i] != no_value && !graph[node.inputs[i]].is_constant();
    region = [this](const Graph& g, std::vector<Tensor> inputs) { return regions.run(g, std::move(inputs)); };
  }
  Status run(const Frame& frame) {
    const Node& node = view.node();
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i].data = node.inputs[i] == no_value ? nullptr : frame.read(node.inputs[i]);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].data = frame.write(node.outputs[i]);
    regions.variables = frame.variables;
    const tosa::Run run{view, in, out, &region, frame.variables};
    if (open) TOSAIC_CHECK(tosa::check_run_time_operands(run));
    return op->eval(run);
  }
};

}  // namespace

bool take_reference(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const tosa::Op* op = tosa::find(node.op);
  if (!op || !op->eval) return false;
  Step step{.kernel = "reference", .nodes = {n}, .writes = node.outputs};
  for (ValueId v : node.inputs)
    if (v != no_value) step.reads.push_back(v);
  step.make_state = [op, &graph = planning.graph, n] { return std::make_shared<Reference>(op, graph, graph.nodes[n]); };
  step.run = [](const Frame& frame) { return static_cast<Reference*>(frame.state)->run(frame); };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
