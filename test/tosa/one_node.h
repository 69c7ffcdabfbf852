// SPDX-License-Identifier: Apache-2.0
// A graph of one TOSA node, to verify and to run: what the tests of ops/tosa/ are written with.
#pragma once
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

inline void PrintTo(const TensorType& type, std::ostream* out) { *out << to_string(type); }

// An operand: its values when the node is to run or when it is a constant.
struct Operand {
  TensorType type;
  std::vector<double> values;
  bool constant = false;
};
inline Operand in(DType dtype, Shape shape, std::vector<double> values = {}) {
  return {{dtype, std::move(shape), std::nullopt}, std::move(values), false};
}
inline Operand constant(DType dtype, Shape shape, std::vector<double> values) {
  return {{dtype, std::move(shape), std::nullopt}, std::move(values), true};
}
// The shape operand of RESHAPE, SLICE, ...
inline Operand dims(std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return constant(DType::shape, {n}, std::move(values));
}

struct OneNode {
  std::string op;
  std::vector<Operand> operands;
  Attrs attrs = {};
  std::vector<TensorType> outputs = {};  // empty: what infer says
  std::vector<Graph> regions = {};

  Graph graph() const {
    Graph g;
    Node node{
        .op = Operator("tosa." + op), .inputs = {}, .attrs = attrs, .outputs = {}, .loc = nullptr, .regions = regions};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      Bytes data = operand.constant ? constant_bytes(operand.type.dtype, operand.values) : Bytes();
      const ValueId id = g.add_value("in" + std::to_string(i), operand.type, std::move(data));
      node.inputs.push_back(id);
      if (!operand.constant) g.inputs.push_back(id);
    }
    std::vector<TensorType> types = outputs;
    const tosa::Op* row = tosa::find(op);
    if (types.empty() && row && row->infer) types = row->infer(tosa::View(g, node));
    for (std::size_t i = 0; i < types.size(); ++i) {
      node.outputs.push_back(g.add_value("out" + std::to_string(i), types[i]));
      g.outputs.push_back(node.outputs.back());
    }
    g.nodes.push_back(std::move(node));
    return g;
  }

  // The label of the first broken rule, "" when there is none.
  std::string verify(const tosa::Spec& spec = tosa::Spec::everything()) const {
    const tosa::Check check = failure(spec);
    return check ? check->label : "";
  }
  std::string message(const tosa::Spec& spec = tosa::Spec::everything()) const {
    const tosa::Check check = failure(spec);
    return check ? check->message : "";
  }
  TensorType inferred() const {
    const Graph g = graph();
    return g[g.outputs.at(0)].type;
  }

  // Runs a node that holds to the standard.
  Result<std::vector<Tensor>> run(bool precise = false) const {
    const Graph g = graph();
    if (tosa::Check check = tosa::verify_node(tosa::View(g, g.nodes[0]), tosa::Spec::everything()))
      return error(check->label, check->message);
    std::vector<Tensor> inputs;
    for (const Operand& operand : operands)
      if (!operand.constant) inputs.push_back({operand.type, constant_bytes(operand.type.dtype, operand.values)});
    return interp::run(g, std::move(inputs), {.precise = precise});
  }
  // The elements of the first output; a failure of the test when the run fails.
  std::vector<double> values(bool precise = false) const {
    const auto result = run(precise);
    if (!result.ok()) {
      ADD_FAILURE() << result.error().code << ": " << result.error().message;
      return {};
    }
    const Tensor& tensor = result->at(0);
    std::vector<double> elements(static_cast<std::size_t>(tensor.type.shape.elements()));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = element_as_double(tensor.type.dtype, tensor.data.data(), i);
    return elements;
  }
  // The message of the REQUIRE that fails.
  std::string unpredictable() const {
    const auto result = run();
    if (result.ok() || result.error().code != "tosa.unpredictable") {
      ADD_FAILURE() << "expected tosa.unpredictable, got " << (result.ok() ? "a result" : result.error().message);
      return "";
    }
    return result.error().message;
  }

 private:
  tosa::Check failure(const tosa::Spec& spec) const {
    const Graph g = graph();
    return tosa::verify_node(tosa::View(g, g.nodes[0]), spec);
  }
};

using Doubles = std::vector<double>;

}  // namespace tosaic
