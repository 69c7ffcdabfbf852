// SPDX-License-Identifier: Apache-2.0
#include "pipeline/lone_delegate.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/program_operators.h"
#include "ir/rewriter.h"

namespace tosaic {
namespace {

Status converts_integers(const Graph& outer, const Node& node) {
  const auto whole = [&](ValueId v) { return is_integer(outer[v].type.dtype); };
  if (whole(node.inputs.at(0)) && whole(node.outputs.at(0))) return {};
  return located(error("model.dynamic-shape", fmt::format("{} is outside the delegate, and its sizes vary", node.op))
                     .hint("choose the sizes: --sizes NAME=SIZE"),
                 node.loc);
}

}  // namespace

Status is_one_delegate(const Tosa& program) {
  for (const Placement& p : program.partition.placements)
    if (p.region < 0 && p.reason.code != "target.conversion") {
      Diagnostic why = p.reason;
      why.severity = Severity::error;
      why.notes.emplace_back("in a program whose sizes vary, all has to run on the device");
      if (why.help.empty()) why.help = "choose the sizes: --sizes NAME=SIZE";
      return why;
    }
  if (program.lowered.size() <= 1) return {};
  return error("model.dynamic-shape",
               fmt::format("the program becomes {} delegates, and its sizes vary", program.lowered.size()))
      .hint("choose the sizes: --sizes NAME=SIZE");
}

Status call_alone(Graph& outer) {
  std::vector<Node> kept;
  Forward forward;
  for (Node& node : outer.nodes) {
    forward.operands(node);
    if (node.op == op::delegate) {
      kept.push_back(node);
      continue;
    }
    const ValueId from = node.inputs.at(0), to = node.outputs.at(0);
    ValueId* written = nullptr;
    for (Node& call : kept)
      for (ValueId& v : call.outputs)
        if (v == from) written = &v;
    if (written && std::ranges::find(outer.outputs, from) == outer.outputs.end())
      *written = to;
    else
      forward.set(to, from);
    TOSAIC_CHECK(converts_integers(outer, node));
  }
  outer.nodes = std::move(kept);
  forward.outputs(outer);
  drop_dead(outer);
  return {};
}

void name_inputs(Graph& region, const Graph& outer) {
  for (const Node& node : outer.nodes)
    for (std::size_t i = 0; node.op == op::delegate && i < region.inputs.size() && i < node.inputs.size(); ++i) {
      const std::string& name = outer[node.inputs[i]].name;
      if (std::ranges::find(region.values, name, &Value::name) == region.values.end())
        region[region.inputs[i]].name = name;
    }
}

}  // namespace tosaic
