// SPDX-License-Identifier: Apache-2.0
#include "normalise/known_scalars.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ops/op.h"
#include "ops/operator_name.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

std::optional<double> number_in(const Node& node, std::string_view argument) {
  const Attr* attr = node.attrs.find(argument);
  if (!attr) return std::nullopt;
  if (const auto* i = std::get_if<std::int64_t>(attr)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(attr)) return *d;
  if (const auto* b = std::get_if<bool>(attr)) return *b;
  return std::nullopt;
}

// A call's scalars in their order; the same where one is not known.
std::vector<std::optional<double>> scalars_in(const Node& node) {
  std::vector<std::optional<double>> scalars;
  if (const auto* names = find_mark(node, mark::argument_order))
    for (const std::string& name : *names) scalars.push_back(number_in(node, name));
  if (scalars.empty())
    for (const char* name : {"a", "b"}) scalars.push_back(number_in(node, name));
  return scalars;
}

// What PyTorch's programs compute with sizes and items: Python's operators and torch.sym_*, a set that its exporter
// closes. Integers beyond 2^53 are not followed.
std::optional<double> arithmetic(Operator op, const std::vector<std::optional<double>>& scalars) {
  const auto given = [&](std::size_t count) {
    return scalars.size() >= count && std::all_of(scalars.begin(), scalars.begin() + static_cast<std::ptrdiff_t>(count),
                                                  [](const auto& n) { return n.has_value(); });
  };
  if (op == torch::op::sym_ite && scalars.size() == 3 && scalars[0]) return scalars[*scalars[0] != 0 ? 1 : 2];
  if (!given(1)) return std::nullopt;
  const double a = *scalars[0];
  if (op == python::op::neg) return -a;
  if (op == python::op::pos || op == torch::op::sym_float) return a;
  if (op == torch::op::sym_int || op == math::op::trunc) return std::trunc(a);
  if (op == torch::op::sym_not) return a == 0;
  if (op == torch::op::sym_sqrt || op == torch::op::_sym_sqrt) return std::sqrt(a);
  if (!given(2)) return std::nullopt;
  const double b = *scalars[1];
  if (op == python::op::add) return a + b;
  if (op == python::op::sub) return a - b;
  if (op == python::op::mul) return a * b;
  if (op == python::op::pow) return std::pow(a, b);
  if (op == python::op::lt) return a < b;
  if (op == python::op::le) return a <= b;
  if (op == python::op::gt) return a > b;
  if (op == python::op::ge) return a >= b;
  if (op == python::op::eq) return a == b;
  if (op == python::op::ne) return a != b;
  if (op == torch::op::sym_max) return std::max(a, b);
  if (op == torch::op::sym_min) return std::min(a, b);
  if (op == python::op::lshift) return std::floor(std::ldexp(a, static_cast<int>(b)));
  if (op == python::op::rshift) return std::floor(std::ldexp(a, -static_cast<int>(b)));
  const auto bits = [](double x) { return static_cast<std::int64_t>(x); };
  const bool whole = std::fabs(a) < 0x1p53 && std::fabs(b) < 0x1p53;
  if (op == python::op::and_ && whole) return static_cast<double>(bits(a) & bits(b));
  if (op == python::op::or_ && whole) return static_cast<double>(bits(a) | bits(b));
  if (b == 0) return std::nullopt;
  if (op == python::op::truediv) return a / b;
  if (op == python::op::floordiv) return std::floor(a / b);
  if (op == python::op::mod) return a - b * std::floor(a / b);
  return std::nullopt;
}

// The symbol that a dim is, if it is one and nothing else.
std::optional<Symbol> only_symbol(const Dim& dim) {
  for (const Symbol& symbol : dim.symbols())
    if (dim == Dim(symbol)) return symbol;
  return std::nullopt;
}

}  // namespace

bool take_scalars_as_tensors(Graph& graph) {
  std::map<ValueId, ValueId> tensor_of;
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const bool has_schema = find_aten(node.op).op != nullptr;
    for (ValueId& v : node.inputs) {
      const auto it = v == no_value || !has_schema ? tensor_of.end() : tensor_of.find(v);
      if (it == tensor_of.end()) continue;
      ValueId& tensor = it->second;
      if (graph[tensor].type.rank() > 0) {
        const ValueId flat = graph.add_value(graph[v].name + ".tensor", graph[tensor].type.with(Shape()));
        tensor = out.add(aten::op::view, {tensor}, {{"size", std::vector<std::int64_t>{}}}, flat, node.loc);
      }
      v = tensor;
    }
    if (gives_scalar(node)) tensor_of[node.outputs[0]] = node.inputs[0];
    out.keep(std::move(node));
  }
  return !tensor_of.empty();
}

void KnownScalars::fill_in(const Graph& graph, Node& node) const {
  if (known_.empty()) return;
  if (const FoundOp found = find_aten(node.op); found.op) {
    std::size_t i = 0;
    for (const SchemaArgument& a : found.schema->arguments) {
      if (a.is_tensor_list()) break;
      if (!a.is_tensor() || i++ >= node.inputs.size()) continue;
      ValueId& v = node.inputs[i - 1];
      const auto it = v == no_value ? known_.end() : known_.find(graph[v].name);
      if (it == known_.end()) continue;
      node.attrs.set(a.name, it->second);
      v = no_value;
    }
  }
  std::vector<std::pair<std::string, Attr>> filled;
  for (const auto& [name, attr] : node.attrs) {
    const auto* symbol = std::get_if<SymbolicArgument>(&attr);
    const auto it = symbol ? known_.find(symbol->name) : known_.end();
    if (it != known_.end()) filled.emplace_back(name, it->second);
  }
  for (auto& [name, attr] : filled) node.attrs.set(name, std::move(attr));
}

void KnownScalars::learn(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.outputs[0] == no_value) return;
  const Value& result = graph[node.outputs[0]];
  const auto keep = [&](double number) {
    if (result.type.dtype == DType::i64 && std::fabs(number) < 0x1p53 && number == std::floor(number)) {
      known_[result.name] = static_cast<std::int64_t>(number);
      const auto symbol = result.size ? only_symbol(*result.size) : std::nullopt;
      if (symbol) sizes_[symbol->name] = static_cast<std::int64_t>(number);
    }
    if (is_float(result.type.dtype)) known_[result.name] = number;
    if (result.type.dtype == DType::boolean) known_[result.name] = number != 0;
  };
  if (gives_scalar(node)) {
    const Value& x = graph[node.inputs[0]];
    if (x.is_constant() && x.type.shape.elements() == 1) keep(element_as_double(x.type.dtype, x.constant.data(), 0));
  } else if (node.op == aten::op::sym_size_int && node.inputs.size() == 1 && node.inputs[0] != no_value) {
    // Torch leaves the call in the program where it has found out that the size is always the same.
    const Shape& shape = graph[node.inputs[0]].type.shape;
    auto dim = node.attrs.get_or("dim", std::int64_t{0});
    if (dim < 0) dim += shape.rank();
    if (dim >= 0 && dim < shape.rank() && shape[static_cast<int>(dim)].is_number())
      keep(static_cast<double>(shape.size(static_cast<int>(dim))));
  } else if (const auto number = arithmetic(node.op, scalars_in(node))) {
    keep(*number);
  }
}

Bytes KnownScalars::constant(const Value& value) const {
  const auto known = known_.find(value.name);
  if (known == known_.end()) return {};
  const DType type = value.type.dtype;
  if (const auto* flag = std::get_if<bool>(&known->second))
    return constant_bytes(type, std::vector<std::int64_t>{*flag});
  if (const auto* integer = std::get_if<std::int64_t>(&known->second))
    return constant_bytes(type, std::vector<std::int64_t>{*integer});
  return constant_bytes(type, std::vector<double>{std::get<double>(known->second)});
}

void KnownScalars::learn_sizes(const Graph& graph, const Node& node) {
  const auto fixed = [&](ValueId v) { return v == no_value || graph[v].type.shape.is_static(); };
  if (std::all_of(node.outputs.begin(), node.outputs.end(), fixed) ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), fixed))
    return;
  const auto trial = try_node(graph, undeclared(node));
  if (!trial.ok()) return;
  for (std::size_t i = 0; i < node.outputs.size() && i < trial->results.size(); ++i) {
    if (node.outputs[i] == no_value) continue;
    const Shape &said = graph[node.outputs[i]].type.shape, &found = trial->graph[trial->results[i]].type.shape;
    for (int d = 0; d < said.rank() && d < found.rank(); ++d)
      if (const auto symbol = only_symbol(said[d]); symbol && found[d].is_number())
        sizes_[symbol->name] = found[d].value();
  }
}

}  // namespace tosaic
