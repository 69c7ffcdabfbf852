// SPDX-License-Identifier: Apache-2.0
#include "interp/interp.h"

#include <fmt/format.h>
#include <new>

#include "base/memory.h"
#include "base/system/interrupt.h"
#include "ir/aligned.h"
#include "ops/definitions/extension.h"

namespace tosaic::interp {
namespace {

std::shared_ptr<void> allocate(std::size_t bytes) {
  return {::operator new(bytes ? bytes : 1, std::nothrow), [](void* p) { ::operator delete(p); }};
}

// How many times each value is still to be read: by nodes, and once more by the graph's outputs.
std::vector<std::uint32_t> count_reads(const Graph& graph) {
  std::vector<std::uint32_t> reads(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs) ++reads[v];
  for (ValueId v : graph.outputs) ++reads[v];
  return reads;
}

class Interpreter {
 public:
  Interpreter(bool precise, tosa::Variables& variables) : precise_(precise), variables_(variables) {}

  // The inputs' types have been checked.
  Result<std::vector<Tensor>> run(const Graph& graph, std::vector<Tensor> inputs) {
    std::vector<Tensor> content(graph.values.size());
    std::vector<std::uint32_t> reads = count_reads(graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) content[graph.inputs[i]] = widened(std::move(inputs[i]));
    for (std::size_t v = 0; v < graph.values.size(); ++v)
      if (graph.values[v].is_constant() && reads[v])
        content[v] = widened({graph.values[v].type, graph.values[v].constant});
    for (const Node& node : graph.nodes) {
      TOSAIC_CHECK(go_on());
      if (Status status = run_node(graph, node, content); !status.ok()) return located(status.error(), node.loc);
      for (ValueId v : node.inputs)
        if (--reads[v] == 0) content[v].data = {};
    }
    std::vector<Tensor> outputs;
    for (ValueId v : graph.outputs) {
      if (content[v].data.null()) return never_computed(graph[v]);
      outputs.push_back(content[v]);
    }
    return outputs;
  }

 private:
  // The type that a value has at run time: every float is f64 in precise mode.
  TensorType type_of(const TensorType& type) const {
    return precise_ && is_float(type.dtype) ? type.with(DType::f64) : type;
  }
  Tensor widened(Tensor tensor) const {
    if (!aligned_for(tensor.type, tensor.data.data()))
      tensor.data = Bytes::copy(tensor.data.data(), tensor.data.size());
    TensorType type = type_of(tensor.type);
    if (type.dtype == tensor.type.dtype) return tensor;
    Bytes data = converted({tensor.type, tensor.data.data()}, type.dtype);
    return {std::move(type), std::move(data)};
  }
  static Diagnostic never_computed(const Value& value) {
    return internal_error(fmt::format("value {} is read but nothing has computed it", value.name));
  }

  Status run_node(const Graph& graph, const Node& node, std::vector<Tensor>& content) {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->eval)
      return error("run.unknown-operator", fmt::format("the interpreter runs TOSA operators, not '{}'", node.op));
    std::vector<TensorView> in;
    for (ValueId v : node.inputs) {
      if (content[v].data.null()) return never_computed(graph[v]);
      in.push_back({content[v].type, content[v].data.data()});
    }
    std::vector<MutableTensorView> out;
    for (ValueId v : node.outputs) {
      TensorType type = type_of(graph[v].type);
      const std::size_t bytes = type.storage_bytes();
      TOSAIC_CHECK(check_memory(bytes, fmt::format("'{}', {},", graph[v].name, to_string(type))));
      std::shared_ptr<void> memory = allocate(bytes);
      if (!memory)
        return error("run.out-of-memory", fmt::format("cannot allocate {} bytes for {}", bytes, to_string(type)));
      out.push_back({type, memory.get()});
      content[v] = {std::move(type), Bytes(memory, memory.get(), bytes)};
    }
    const tosa::RunRegion region = [this](const Graph& body, std::vector<Tensor> operands) {
      return this->run(body, std::move(operands));
    };
    const tosa::View view(graph, node);
    const tosa::Run run{view, in, out, &region, &variables_};
    TOSAIC_CHECK(tosa::check_run_time_operands(run));
    return op->eval(run);
  }

  const bool precise_;
  tosa::Variables& variables_;
};

Status check_inputs(const Graph& graph, const std::vector<Tensor>& inputs, bool precise) {
  if (inputs.size() != graph.inputs.size())
    return error("run.input-count",
                 fmt::format("{} inputs are given, the graph takes {}", inputs.size(), graph.inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& wanted = graph[graph.inputs[i]];
    const TensorType& given = inputs[i].type;
    const bool wide = precise && given.dtype == DType::f64 && is_float(wanted.type.dtype);
    if ((given.dtype != wanted.type.dtype && !wide) || given.shape.sizes() != wanted.type.shape.sizes())
      return error("run.input-type", fmt::format("input {} ({}) is {}, the graph takes {}", i, wanted.name,
                                                 to_string(given), to_string(wanted.type)));
    if (inputs[i].data.null() || inputs[i].data.size() != given.storage_bytes())
      return error("run.input-type", fmt::format("input {} ({}) holds {} bytes, its type {} needs {}", i, wanted.name,
                                                 inputs[i].data.size(), to_string(given), given.storage_bytes()));
  }
  return {};
}

}  // namespace

Result<std::vector<Tensor>> run(const Graph& graph, std::vector<Tensor> inputs, const Options& options) {
  if (const auto in_tosa = extension::in_tosa(graph)) return run(*in_tosa, std::move(inputs), options);
  TOSAIC_CHECK(check_inputs(graph, inputs, options.precise));
  tosa::Variables own;
  return Interpreter(options.precise, options.variables ? *options.variables : own).run(graph, std::move(inputs));
}

}  // namespace tosaic::interp
