// SPDX-License-Identifier: Apache-2.0
#include "stored_values.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "execute/executable.h"
#include "formats/npy/npy.h"
#include "ops/composer.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::domain {

std::vector<Tensor> Stored::of(std::size_t index, const char* which) const {
  std::vector<Tensor> result;
  for (std::size_t k = 0;; ++k) {
    auto it = arrays.find(fmt::format("{}.{}.{}", index, which, k));
    if (it == arrays.end()) return result;
    result.push_back(it->second);
  }
}

Result<Stored> load_values(std::string_view op) {
  const std::string stem = fmt::format("{}/ops/values/{}", TOSAIC_TEST_DATA, op);
  TOSAIC_TRY(Bytes archive, map_file(stem + ".npz"));
  TOSAIC_TRY(Bytes text, map_file(stem + ".txt"));
  TOSAIC_TRY(auto arrays, npy::read_npz(archive, stem + ".npz"));
  Stored stored;
  for (auto& [name, tensor] : arrays) stored.arrays.emplace(name, std::move(tensor));
  std::istringstream lines{std::string(text.text())};
  for (std::string line; std::getline(lines, line);) stored.calls.push_back(line);
  return stored;
}

Tensor converted_to(const Tensor& tensor, DType dtype) {
  if (tensor.type.dtype == dtype) return tensor;
  return {tensor.type.with(dtype), converted({tensor.type, tensor.data.data()}, dtype)};
}

Tensor narrowed(const Tensor& tensor) {
  if (tensor.type.dtype == DType::i64) return converted_to(tensor, DType::i32);
  if (tensor.type.dtype == DType::f64) return converted_to(tensor, DType::f32);
  return tensor;
}

Attr narrowed(const Attr& attr) {
  const auto* dtype = std::get_if<DType>(&attr);
  if (!dtype) return attr;
  return *dtype == DType::i64 ? DType::i32 : *dtype == DType::f64 ? DType::f32 : *dtype;
}

namespace {
Tensor counted(const Tensor& tensor, Integers integers) {
  if (integers == Integers::narrowed) return narrowed(tensor);
  return tensor.type.dtype == DType::i32 ? converted_to(tensor, DType::i64) : tensor;
}
}  // namespace

Call program_of(const Case& parsed, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  Call call;
  Node node;
  node.op = Operator(parsed.schema->full_name());
  std::map<std::string, std::vector<ValueId>> given;
  std::size_t next = 0;
  for (const Argument& a : parsed.arguments) {
    if (!a.is_tensor) {
      if (!std::holds_alternative<std::monostate>(a.literal)) node.attrs.set(a.name, narrowed(a.literal));
      continue;
    }
    for (const auto& g : a.tensors) {
      if (!g) {
        given[a.name].push_back(no_value);
        continue;
      }
      Tensor tensor = narrowed(inputs.at(next));
      // Weights are constants in programs, whatever the domain says.
      const bool constant = g->constant || a.name == "weight" || a.name == "bias";
      ValueId id = call.graph.add_value(fmt::format("in.{}", next++), tensor.type, constant ? tensor.data : Bytes{});
      given[a.name].push_back(id);
      if (constant) continue;
      call.graph.inputs.push_back(id);
      call.inputs.push_back(std::move(tensor));
    }
  }
  for (const SchemaArgument& formal : parsed.schema->arguments) {
    if (!formal.is_tensor()) continue;
    auto it = given.find(formal.name);
    if (it != given.end())
      node.inputs.insert(node.inputs.end(), it->second.begin(), it->second.end());
    else if (!formal.is_tensor_list())
      node.inputs.push_back(no_value);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    node.outputs.push_back(call.graph.add_value(fmt::format("out.{}", k), narrowed(outputs[k]).type));
    call.graph.outputs.push_back(node.outputs.back());
  }
  call.graph.nodes.push_back(std::move(node));
  return call;
}

Result<Lowered> lower_case(const Case& parsed, const std::string& op, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& outputs, DType real, bool pieces, Integers integers) {
  Lowered result;
  Graph& graph = result.graph;
  const std::unique_ptr<Builder> made = pieces ? std::make_unique<Composer>(graph) : std::make_unique<Builder>(graph);
  Builder& builder = *made;
  std::map<std::string, std::vector<std::optional<Val>>> given;
  Attrs attrs;
  std::size_t next = 0;
  for (const Argument& a : parsed.arguments) {
    if (!a.is_tensor) {
      if (!std::holds_alternative<std::monostate>(a.literal))
        attrs.set(a.name, integers == Integers::wide ? a.literal : narrowed(a.literal));
      continue;
    }
    for (const auto& g : a.tensors) {
      if (!g) {
        given[a.name].push_back(std::nullopt);
        continue;
      }
      if (next >= inputs.size()) return error("domain.stale-values", "fewer stored inputs than tensors in the call");
      Tensor tensor = counted(inputs[next], integers);
      if (tensor.type.dtype == DType::f32) tensor = converted_to(tensor, real);
      ValueId id = graph.add_value(fmt::format("in.{}", next++), tensor.type, g->constant ? tensor.data : Bytes{});
      given[a.name].push_back(Val(&builder, id));
      if (g->constant) continue;
      graph.inputs.push_back(id);
      result.inputs.push_back(std::move(tensor));
    }
  }
  std::vector<std::optional<Val>> operands;
  for (const SchemaArgument& formal : parsed.schema->arguments) {
    if (!formal.is_tensor()) continue;
    auto it = given.find(formal.name);
    if (it != given.end())
      operands.insert(operands.end(), it->second.begin(), it->second.end());
    else if (!formal.is_tensor_list())
      operands.push_back(std::nullopt);
  }
  std::vector<TensorType> declared;
  for (const Tensor& t : outputs) {
    declared.push_back(counted(t, integers).type);
    for (const auto& [name, attr] : attrs)
      if (attr == Attr(DType::i32) && t.type.dtype == DType::i32) declared.back() = t.type;
    if (declared.back().dtype == DType::f32) declared.back().dtype = real;
  }
  try {
    for (Val v : lower_call(builder, Operator(op), std::move(operands), attrs, declared))
      graph.outputs.push_back(v.id());
  } catch (Refusal& refusal) { return std::move(refusal.why); }
  drop_dead(graph);
  TOSAIC_CHECK(verify(graph));
  if (pieces || integers == Integers::wide) return result;
  // TOSA has no u8, our executors have: targets are asked by quantised_test.cpp.
  const bool bytes = std::ranges::any_of(graph.values, [](const Value& v) { return v.type.dtype == DType::u8; });
  TOSAIC_CHECK(bytes ? execute::Executable::check_lowering(graph)
                     : tosa::verify_graph(graph, tosa::Spec::everything()));
  return result;
}

std::string difference(const Tensor& want, const Tensor& got, double rtol, double atol) {
  const DType dtype = got.type.dtype;
  if (want.type.shape != got.type.shape)
    return fmt::format("shape {} instead of {}", to_string(got.type.shape), to_string(want.type.shape));
  if (is_float(want.type.dtype) != is_float(dtype) || (!is_float(dtype) && want.type.dtype != dtype))
    return fmt::format("dtype {} instead of {}", name_of(dtype), name_of(want.type.dtype));
  const Tensor same = converted_to(want, dtype);
  for (std::int64_t i = 0; i < got.type.shape.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double w = element_as_double(dtype, same.data.data(), at), g = element_as_double(dtype, got.data.data(), at);
    if ((std::isnan(w) && std::isnan(g)) || w == g) continue;
    if (is_float(dtype) && std::isfinite(w) && std::fabs(w - g) <= atol + rtol * std::fabs(w)) continue;
    return fmt::format("element {} is {} instead of {}", i, g, w);
  }
  return {};
}

}  // namespace tosaic::domain
