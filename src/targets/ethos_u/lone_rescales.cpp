// SPDX-License-Identifier: Apache-2.0
// A RESCALE to or from 32 bits that Vela fuses into no command next to it becomes a cast and a product, for which 5.2.0
// forgets that it reads a part of a tensor, or writes one (docs/developer/ethos-u.md, 3.7; U55, U65). So a CLAMP stands
// between such a RESCALE and a CONCAT, PAD or SLICE: a command for the whole tensor, of 8 or 16 bits.
#include "ir/tosa_operators.h"
#include "targets/ethos_u/rewrites.h"

namespace tosaic::ethos_u {
namespace {

bool joins(const Node& node) { return node.op == tosa::op::concat || node.op == tosa::op::pad; }
bool takes_parts(const Node& node) { return joins(node) || node.op == tosa::op::slice; }

bool narrow(const TensorType& type) { return type.dtype == DType::i8 || type.dtype == DType::i16; }

class Lone {
 public:
  explicit Lone(const Graph& graph)
      : graph_(graph), made_by_(producers(graph)), joined_(graph.values.size(), 0), alone_(graph.values.size(), 0) {
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const Node& node = graph.nodes[n];
      if (joins(node))
        for (ValueId v : node.inputs)
          if (v != no_value) joined_[v] = 1;
      if (node.op == tosa::op::reshape && joined_[node.outputs[0]]) joined_[node.inputs[0]] = 1;
      if (in_32_bits(node))
        for (ValueId v : node.inputs)
          if (v != no_value) alone_[v] = 1;
    }
  }

  // Of a RESCALE that widens: it stands alone, and what it reads was put together or cut out.
  bool reads_parts(const Node& node) const {
    if (!widens(node) || !alone_[node.outputs[0]]) return false;
    const Node* before = maker(node.inputs[0]);
    while (before && before->op == tosa::op::reshape) before = maker(before->inputs[0]);
    return before && takes_parts(*before);
  }
  // Of a RESCALE that narrows: it stands alone, and what it writes becomes part of a tensor.
  bool writes_part(const Node& node) const {
    if (node.op != tosa::op::rescale || graph_[node.inputs[0]].type.dtype != DType::i32 ||
        !narrow(graph_[node.outputs[0]].type) || !joined_[node.outputs[0]])
      return false;
    const Node* before = maker(node.inputs[0]);
    return before && in_32_bits(*before);
  }

 private:
  const Node* maker(ValueId v) const {
    return v < made_by_.size() && made_by_[v] >= 0 ? &graph_.nodes[static_cast<std::size_t>(made_by_[v])] : nullptr;
  }
  bool widens(const Node& node) const {
    return node.op == tosa::op::rescale && graph_[node.outputs[0]].type.dtype == DType::i32 &&
           narrow(graph_[node.inputs[0]].type);
  }
  // An elementwise operator one of whose operands is 32-bit integers by itself, a constant for one: no RESCALE is fused
  // into it then.
  bool in_32_bits(const Node& node) const {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->elementwise || node.op == tosa::op::rescale || node.op == tosa::op::cast) return false;
    for (ValueId v : node.inputs)
      if (v != no_value && graph_[v].type.dtype == DType::i32)
        if (const Node* before = maker(v); !before || !widens(*before)) return true;
    return false;
  }

  const Graph& graph_;
  const std::vector<std::int32_t> made_by_;
  std::vector<char> joined_, alone_;
};

}  // namespace

void separate_lone_rescales(Graph& graph) {
  std::vector<char> reads(graph.nodes.size(), 0), writes(graph.nodes.size(), 0);
  {
    const Lone lone(graph);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      reads[n] = lone.reads_parts(graph.nodes[n]);
      writes[n] = lone.writes_part(graph.nodes[n]);
    }
  }
  Rewriter out(graph);
  const auto whole = [&](ValueId v, const LocRef& loc, ValueId to) {
    const auto [lowest, highest] = range_of(graph[v].type.dtype);
    return out.add(tosa::op::clamp, {v},
                   {{"min_val", lowest}, {"max_val", highest}, {"nan_mode", std::string("propagate")}}, graph[v].type,
                   loc, to);
  };
  for (std::size_t n = 0; n < out.nodes().size(); ++n) {
    Node& node = out.nodes()[n];
    if (reads[n]) node.inputs[0] = whole(node.inputs[0], node.loc, no_value);
    if (!writes[n]) {
      out.keep(std::move(node));
      continue;
    }
    const ValueId y = node.outputs[0];
    const ValueId made = out.add(node.op, node.inputs, node.attrs, graph[y].type, node.loc);
    whole(made, node.loc, y);
  }
}

}  // namespace tosaic::ethos_u
