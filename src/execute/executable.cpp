// SPDX-License-Identifier: Apache-2.0
#include "execute/executable.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "interp/interp.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::execute {
namespace {

// PyTorch's types that TOSA lacks, as TOSA's of the same kind.
DType standing_in(DType type) {
  switch (type) {
    case DType::i64: return DType::i32;
    case DType::f64: return DType::f32;
    case DType::u8: return DType::i8;
    default: return type;
  }
}

bool foreign(const Graph& graph, const Node& node) {
  for (const auto* ids : {&node.inputs, &node.outputs})
    for (ValueId v : *ids)
      if (v != no_value && standing_in(graph[v].type.dtype) != graph[v].type.dtype) return true;
  return false;
}

// Operands that the row gives one type have one type, not only one stand-in.
bool types_agree(const Graph& graph, const Node& node, const tosa::Op& op) {
  std::map<std::string_view, DType> bound;
  auto agree = [&](const std::vector<tosa::Operand>& operands, const std::vector<ValueId>& ids) {
    for (std::size_t i = 0; i < ids.size() && !operands.empty(); ++i) {
      const tosa::Operand& operand = operands[std::min(i, operands.size() - 1)];
      const DType type = graph[ids[i]].type.dtype;
      const auto fixed = dtype_named(operand.type);
      if (fixed ? *fixed != type : bound.try_emplace(operand.type, type).first->second != type) return false;
    }
    return true;
  };
  return agree(op.inputs, node.inputs) && agree(op.outputs, node.outputs);
}

// A node on those types is held to the standard with the stand-ins.
Status verify_foreign(const Graph& graph, const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  if (node.op == tosa::op::cast && node.inputs.size() == 1 && node.outputs.size() == 1 &&
      graph[node.inputs[0]].type.shape == graph[node.outputs[0]].type.shape)
    return {};
  if (!op || node.op == tosa::op::cast || !types_agree(graph, node, *op))
    return error("kernel.types", node.op.text() + " mixes types");
  constexpr std::size_t parameter_bytes = 4096;  // larger constants are data, which no rule looks at
  Graph one;
  Node copy{node.op, {}, {}, {}, node.loc, {}};
  auto taken = [&](ValueId v) {
    const Value& value = graph[v];
    const DType type = standing_in(value.type.dtype);
    Bytes constant = value.constant;
    if (constant.size() > parameter_bytes)
      constant = {};
    else if (!constant.null() && type != value.type.dtype)
      constant = converted({value.type, constant.data()}, type);
    return one.add_value(std::to_string(one.values.size()), value.type.with(type), std::move(constant));
  };
  for (ValueId v : node.inputs) copy.inputs.push_back(taken(v));
  for (ValueId v : node.outputs) copy.outputs.push_back(taken(v));
  for (const auto& [name, attr] : node.attrs) {
    const auto* number = std::get_if<std::int64_t>(&attr);
    const auto* type = std::get_if<DType>(&attr);
    copy.attrs.set(name, number ? Attr(std::clamp<std::int64_t>(*number, INT32_MIN, INT32_MAX))
                         : type ? Attr(standing_in(*type))
                                : attr);
  }
  if (auto broken = tosa::verify_node(tosa::View(one, copy), tosa::Spec::everything()))
    return error("tosa." + broken->label, broken->message);
  return {};
}

}  // namespace

Status Executable::check_lowering(const Graph& graph) {
  TOSAIC_CHECK(verify(graph));
  for (const Node& node : graph.nodes) {
    if (!node.regions.empty()) {
      const tosa::Op* op = tosa::find(node.op);
      if (!op || !op->check) return error("kernel.types", node.op.text() + " has subgraphs");
      if (auto broken = op->check(tosa::View(graph, node))) return error("tosa." + broken->label, broken->message);
      for (const Graph& body : node.regions) TOSAIC_CHECK(check_lowering(body));
    } else if (foreign(graph, node)) {
      TOSAIC_CHECK(verify_foreign(graph, node));
    } else if (auto broken = tosa::verify_node(tosa::View(graph, node), tosa::Spec::everything())) {
      return error("tosa." + broken->label, broken->message);
    }
  }
  return {};
}

Result<Executable> Executable::make(Graph graph, const Options& options) {
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  return prepared(std::move(graph), options);
}

Result<Executable> Executable::of_lowering(Graph graph, const Options& options) {
  TOSAIC_CHECK(check_lowering(graph));
  return prepared(std::move(graph), options);
}

Result<Executable> Executable::prepared(Graph graph, const Options& options) {
  Executable made;
  for (ValueId v : graph.inputs) made.inputs_.push_back(graph[v].type);
  for (ValueId v : graph.outputs) made.outputs_.push_back(graph[v].type);
  if (options.interpret) {
    made.graph_ = std::make_shared<const Graph>(std::move(graph));
  } else {
    TOSAIC_TRY(made.program_, cpu::Program::compile(graph, {.threads = options.threads,
                                                            .observed = {},
                                                            .memory = options.memory,
                                                            .lasting_weights = options.lasting_weights,
                                                            .timed = options.timed}));
  }
  return made;
}

Status Executable::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (program_) return program_->run(inputs, outputs);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back({inputs_[i], Bytes(nullptr, inputs[i], inputs_[i].storage_bytes())});  // borrowed for this call
  TOSAIC_TRY(auto results, run(tensors));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!results[i].data.empty()) std::memcpy(outputs[i], results[i].data.data(), results[i].data.size());
  return {};
}

Result<std::vector<Tensor>> Executable::run(const std::vector<Tensor>& inputs) {
  if (program_) return program_->run(inputs);
  return interp::run(*graph_, inputs, {.variables = &variables_});
}

void Executable::reset() {
  variables_.clear();
  if (program_) program_->reset();
}

Result<Executable> Executable::clone(const MemorySource& memory) const {
  Executable made;
  made.inputs_ = inputs_;
  made.outputs_ = outputs_;
  made.graph_ = graph_;
  if (program_) { TOSAIC_TRY(made.program_, program_->clone(memory)); }
  return made;
}

void Executable::measure(bool on) {
  if (program_) program_->measure(on);
}

std::vector<cpu::StepTime> Executable::step_times() const {
  return program_ ? program_->step_times() : std::vector<cpu::StepTime>();
}

}  // namespace tosaic::execute
