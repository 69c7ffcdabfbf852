// SPDX-License-Identifier: Apache-2.0
// The table of extension operators, made from the files of ops/extension/, and their definitions put in their places.
#include "ops/definitions/extension.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/generated_list.h"
#include "ops/definitions/block_scaled.h"
#include "ops/definitions/verify.h"

namespace tosaic::extension {

std::span<const ListEntry<Op>> extension_list();  // generated

namespace {
const std::unordered_map<Operator, Op>& by_operator() {
  static const auto all = [] {
    std::unordered_map<Operator, Op> map;
    for (const auto& entry : extension_list())
      map.emplace(Operator(fmt::format("tosaic.{}", entry.file)), entry.make());
    return map;
  }();
  return all;
}

// The values that a definition made, from `first` on, are named: results as the node's outputs, others one after the
// other.
void name_results(Graph& graph, std::size_t first_node, ValueId first, const std::vector<ValueId>& results,
                  const std::vector<ValueId>& outputs) {
  std::vector<ValueId> named;
  ValueId next = first;
  for (ValueId v = first; v < graph.values.size(); ++v) {
    const auto result = std::ranges::find(results, v);
    if (result != results.end()) {
      named.push_back(outputs[static_cast<std::size_t>(result - results.begin())]);
      continue;
    }
    named.push_back(next);
    if (next != v) graph[next] = std::move(graph[v]);
    ++next;
  }
  graph.values.resize(next);
  for (std::size_t n = first_node; n < graph.nodes.size(); ++n)
    for (auto* values : {&graph.nodes[n].inputs, &graph.nodes[n].outputs})
      for (ValueId& v : *values)
        if (v != no_value && v >= first) v = named[v - first];
}

bool is_extension(const Node& node) { return find(node.op) != nullptr; }

using Define = std::vector<ValueId> (*)(Definition& definition);
using DefinitionOf = Define (*)(const Graph&, const Node&);

// With each node by what `definition_of` gives for it, if that is anything, and makes anything of it.
Graph replaced(Graph made, DefinitionOf definition_of) {
  std::vector<Node> nodes = std::move(made.nodes);
  made.nodes.clear();
  for (Node& node : nodes) {
    for (Graph& region : node.regions) region = replaced(std::move(region), definition_of);
    const Define define = definition_of(made, node);
    const std::size_t first_node = made.nodes.size(), first = made.values.size();
    Definition definition(made, node);
    const std::vector<ValueId> results = define ? define(definition) : std::vector<ValueId>();
    if (results.empty())
      made.nodes.push_back(std::move(node));
    else
      name_results(made, first_node, static_cast<ValueId>(first), results, node.outputs);
  }
  return made;
}

Define definition_of_extension(const Graph&, const Node& node) {
  const Op* op = find(node.op);
  return op ? op->to_tosa : nullptr;
}

bool is_block_scaled(const Graph& graph, const Node& node) {
  const auto of_blocks = [&](ValueId v) { return v != no_value && is_of_blocks(graph[v].type.dtype); };
  return std::ranges::any_of(node.inputs, of_blocks) || std::ranges::any_of(node.outputs, of_blocks);
}

// Of an operator of 1.0 types may be newer.
Define definition_in_1_0(const Graph& graph, const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  const auto newer_type = [&](ValueId v) {
    return v != no_value && (graph[v].type.dtype == DType::i64 || graph[v].type.dtype == DType::boolean);
  };
  if (!op || (!op->newer && std::ranges::none_of(node.inputs, newer_type))) return nullptr;
  for (std::size_t i = 0; i < std::min(op->inputs.size(), node.inputs.size()); ++i)
    if (op->inputs[i].constant && !graph[node.inputs[i]].is_constant()) return nullptr;
  return op->in_1_0;
}

Define definition_but_of_blocks(const Graph& graph, const Node& node) {
  return is_block_scaled(graph, node) ? nullptr : definition_in_1_0(graph, node);
}

bool any_defined(const Graph& graph, DefinitionOf definition_of) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return definition_of(graph, node) ||
           std::ranges::any_of(node.regions, [&](const Graph& region) { return any_defined(region, definition_of); });
  });
}

// Whoever runs the program gives or gets elements of block-scaled tensors: they stay what they are.
bool takes_blocks(const Graph& graph) {
  const auto of_blocks = [&](ValueId v) { return is_of_blocks(graph[v].type.dtype); };
  return std::ranges::any_of(graph.inputs, of_blocks) || std::ranges::any_of(graph.outputs, of_blocks);
}

// In types of TOSA 1.0 that hold the same numbers.
void carry_blocks(Graph& graph) {
  for (Value& value : graph.values) {
    const DType carrier = tosa::block_scaled::carrier(value.type.dtype);
    if (carrier == value.type.dtype) continue;
    if (value.is_constant()) value.constant = converted({value.type, value.constant.data()}, carrier);
    value.type.dtype = carrier;
  }
  for (Node& node : graph.nodes)
    for (Graph& region : node.regions) carry_blocks(region);
}

std::vector<Pattern> made_patterns(const Ending& ending) {
  std::vector<Pattern> made;
  for (const auto& entry : extension_list()) {
    const Operator op(fmt::format("tosaic.{}", entry.file));
    const auto forms = find(op)->forms;
    if (!forms) continue;
    std::vector<Form> all = forms(ending);
    made.reserve(made.size() + all.size());
    for (Form& form : all) {
      Graph graph;
      Node node{op, {}, std::move(form.attrs), {}, nullptr, {}};
      for (TensorType& type : form.operands) node.inputs.push_back(graph.add_value("operand", std::move(type)));
      graph.inputs = node.inputs;
      for (TensorType& type : form.results) node.outputs.push_back(graph.add_value("result", std::move(type)));
      graph.outputs = node.outputs;
      graph.nodes.push_back(node);
      Pattern pattern{node, *in_tosa(graph)};
      if (pattern.definition.nodes.back().op == ending.op) made.push_back(std::move(pattern));
    }
  }
  return made;
}

}  // namespace

const Op* find(Operator op) {
  const auto found = by_operator().find(op);
  return found == by_operator().end() ? nullptr : &found->second;
}

std::shared_ptr<const std::vector<Pattern>> patterns(const Ending& ending) {
  constexpr std::size_t most_kept = 1000;
  static std::mutex lock;
  static std::unordered_map<std::string, std::shared_ptr<const std::vector<Pattern>>> kept;
  std::string key = fmt::format("{} {}", ending.op, to_string(ending.result));
  for (const auto* types : {&ending.operands, &ending.viewed})
    for (const TensorType& type : *types) key += " " + to_string(type);
  {
    const std::lock_guard guard(lock);
    if (const auto found = kept.find(key); found != kept.end()) return found->second;
  }
  auto made = std::make_shared<const std::vector<Pattern>>(made_patterns(ending));
  const std::lock_guard guard(lock);
  if (kept.size() >= most_kept) kept.clear();
  return kept.try_emplace(std::move(key), std::move(made)).first->second;
}

tosa::Check verify_node(const tosa::View& view) {
  const Op* op = find(view.node().op);
  if (!op) return tosa::Violation{"unknown-operator", fmt::format("there is no operator '{}'", view.node().op)};
  try {
    return tosa::verify_as(op->row, view, tosa::Spec::everything());
  } catch (const UnknownSize&) { return std::nullopt; }
}

std::optional<Graph> in_tosa(const Graph& graph) {
  if (std::ranges::none_of(graph.nodes, is_extension)) return std::nullopt;
  Graph made = graph;
  while (std::ranges::any_of(made.nodes, is_extension))  // definitions may hold others
    made = replaced(std::move(made), definition_of_extension);
  make_names_unique(made);
  return made;
}

std::optional<Graph> in_tosa_1_0(const Graph& graph) {
  std::optional<Graph> made = in_tosa(graph);
  const bool with_blocks = !takes_blocks(graph);
  const DefinitionOf definition_of = with_blocks ? definition_in_1_0 : definition_but_of_blocks;
  if (!any_defined(made ? *made : graph, definition_of)) return made;
  Graph older = replaced(made ? *std::move(made) : graph, definition_of);
  if (with_blocks) carry_blocks(older);
  make_names_unique(older);
  return older;
}

std::vector<std::int64_t> Definition::integers(ValueId constant) const {
  const Value& value = graph_[constant];
  std::vector<std::int64_t> list(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = element_as_integer(value.type.dtype, value.constant.data(), i);
  return list;
}

ValueId Definition::call(Operator op, std::vector<ValueId> inputs, TensorType type, Attrs attrs) {
  const ValueId v = graph_.add_value(graph_[node_.outputs[0]].name, std::move(type));
  graph_.nodes.push_back({op, std::move(inputs), std::move(attrs), {v}, node_.loc, {}});
  return v;
}

ValueId Definition::clamp(ValueId v, double lowest, double highest) {
  return call(tosa::op::clamp, {v}, type(v),
              {{"min_val", lowest}, {"max_val", highest}, {"nan_mode", std::string("propagate")}});
}

ValueId Definition::reduce(Operator op, ValueId v, std::int64_t axis) {
  TensorType reduced = type(v);
  reduced.shape.set(static_cast<int>(axis), 1);
  Attrs attrs{{"axis", axis}};
  if (op != tosa::op::reduce_sum) attrs.set("nan_mode", std::string("propagate"));
  return call(op, {v}, std::move(reduced), std::move(attrs));
}

ValueId Definition::mul(ValueId a, ValueId b) {
  const ValueId shift =
      graph_.add_value("shift", {DType::i8, Shape{1}, {}}, constant_bytes(DType::i8, std::vector{0.0}));
  return call(tosa::op::mul, {a, b, shift}, type(a));
}

ValueId Definition::shaped(ValueId v, Shape shape) {
  if (type(v).shape == shape) return v;
  TensorType wanted = type(v).with(shape);
  if (graph_[v].is_constant()) return graph_.add_value(graph_[v].name, std::move(wanted), graph_[v].constant);
  return call(tosa::op::reshape, {v, sizes(shape.sizes())}, std::move(wanted));
}

ValueId Definition::slice(ValueId v, int axis, std::int64_t begin, std::int64_t size) {
  TensorType part{type(v).dtype, type(v).shape, {}};
  part.shape.set(axis, size);
  std::vector<std::int64_t> start(static_cast<std::size_t>(part.shape.rank()), 0);
  start[static_cast<std::size_t>(axis)] = begin;
  const ValueId first = sizes(start), all = sizes(part.shape.sizes());
  return call(tosa::op::slice, {v, first, all}, std::move(part));
}

ValueId Definition::sizes(const std::vector<std::int64_t>& list) {
  const TensorType of{DType::shape, Shape{std::ssize(list)}, {}};
  return graph_.add_value("shape", of, constant_bytes(DType::shape, std::span<const std::int64_t>(list)));
}

ValueId Definition::number(DType type, int rank, double value) {
  return constant(type, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1)), {value});
}

ValueId Definition::constant(DType type, Shape shape, std::vector<double> values) {
  return graph_.add_value("number", {type, std::move(shape), {}}, constant_bytes(type, values));
}

}  // namespace tosaic::extension
