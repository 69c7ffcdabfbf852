// SPDX-License-Identifier: Apache-2.0
#include "cpu/elementwise/byte_function.h"

#include <numeric>

#include "cpu/elementwise/chain.h"

namespace tosaic::cpu {
namespace {

constexpr std::int64_t min_elements = 1024;

struct Operands {
  const Graph& graph;
  const plan::Expression& expression;

  const Node& node(std::size_t call) const { return graph.nodes[expression.calls[call].node]; }
  const Value& value(int operand) const {
    return graph[operand < 0 ? node(static_cast<std::size_t>(~operand)).outputs[0]
                             : expression.inputs[static_cast<std::size_t>(operand)].value];
  }
  bool is_i8(int operand) const { return value(operand).type.dtype == DType::i8; }
  bool is_number(int operand) const {
    return value(operand).is_constant() && value(operand).type.shape.elements() == 1;
  }
  // The i8 operand, as early as possible, that alone decides the result of `call`; `earlier`: those of the calls
  // before.
  std::optional<int> only(std::size_t call, const std::vector<std::optional<int>>& earlier) const {
    if (node(call).attrs.get_or<bool>("per_channel", false)) return std::nullopt;
    std::optional<int> only;
    for (int operand : expression.calls[call].operands) {
      if (is_number(operand)) continue;
      std::optional<int> from = operand < 0 ? earlier[static_cast<std::size_t>(~operand)] : std::nullopt;
      if (!from && is_i8(operand)) from = operand;
      if (!from || (only && only != from)) return std::nullopt;
      only = from;
    }
    return only;
  }
  // The nodes from `operand` to `call`.
  std::vector<std::uint32_t> between(int operand, std::size_t call) const {
    std::vector<bool> used(call + 1, false);
    used[call] = true;
    std::vector<std::uint32_t> nodes;
    for (std::size_t k = call + 1; k-- > 0;) {
      if (!used[k]) continue;
      nodes.insert(nodes.begin(), expression.calls[k].node);
      for (int o : expression.calls[k].operands)
        if (o < 0 && o != operand) used[static_cast<std::size_t>(~o)] = true;
    }
    return nodes;
  }
};

// The chain's own results for the 256 values.
std::vector<std::int8_t> results(const Graph& graph, const Chain& chain) {
  std::vector<std::int8_t> values(256), table(256);
  std::iota(values.begin(), values.end(), std::int8_t{-128});
  std::vector<std::byte*> address(graph.values.size(), nullptr);
  address[chain.output()] = reinterpret_cast<std::byte*>(table.data());
  std::vector<std::byte> scratch(chain.scratch_bytes());
  ThreadPool pool(1);
  const Frame frame{address.data(), pool, nullptr, nullptr, nullptr, nullptr};
  chain.run(frame, 0, 256, values.data(), scratch.data());
  return table;
}

}  // namespace

std::optional<ByteFunction> byte_function(const Graph& graph, const plan::Expression& expression, std::size_t call) {
  const Operands operands{graph, expression};
  const int result = ~static_cast<int>(call);
  if (!operands.is_i8(result) || operands.value(result).type.shape.elements() < min_elements) return std::nullopt;
  std::vector<std::optional<int>> only;
  for (std::size_t k = 0; k <= call; ++k) only.push_back(operands.only(k, only));
  if (!only.back()) return std::nullopt;
  ByteFunction function{*only.back(), operands.between(*only.back(), call), {}};
  if (function.nodes.size() == 1) return std::nullopt;
  const ValueId from = function.operand < 0 ? operands.node(static_cast<std::size_t>(~function.operand)).outputs[0]
                                            : expression.inputs[static_cast<std::size_t>(function.operand)].value;
  const auto chain = Chain::make(graph, function.nodes, from, Chain::Tables::none);
  if (!chain) return std::nullopt;
  function.table = results(graph, *chain);
  return function;
}

}  // namespace tosaic::cpu
