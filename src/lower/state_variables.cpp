// SPDX-License-Identifier: Apache-2.0
#include "lower/state_variables.h"

#include <algorithm>
#include <iterator>

namespace tosaic {
namespace {

// TOSA 1.0's VARIABLE: of these types, and without dimensions of 0.
bool may_be_variable(const TensorType& type) {
  const bool known = type.dtype == DType::f32 || type.dtype == DType::f16 || type.dtype == DType::i8;
  return known && !type.quantised() && type.shape.is_static() && type.shape.elements() > 0;
}

std::size_t uses(const Graph& graph, ValueId v) {
  std::size_t found = static_cast<std::size_t>(std::ranges::count(graph.outputs, v));
  for (const Node& node : graph.nodes) found += static_cast<std::size_t>(std::ranges::count(node.inputs, v));
  for (const State& state : graph.states) found += state.output == v || state.input == v;
  return found;
}

// Where in the list a value stands, once and for all.
std::size_t place_of(const std::vector<ValueId>& list, ValueId v) {
  return static_cast<std::size_t>(std::ranges::find(list, v) - list.begin());
}

Node variable_node(const std::string& op, const std::string& name) {
  Node node;
  node.op = "tosa." + op;
  node.attrs.set("name", name);
  return node;
}

void keep_inside(Graph& region, ValueId before, ValueId after, const State& state) {
  const TensorType type = region[before].type;
  Bytes initial = state.initial.null() ? Bytes::of(std::vector<std::byte>(type.storage_bytes())) : state.initial;
  Node declared = variable_node("variable", state.name);
  declared.attrs.set("var_shape", type.shape.sizes());
  declared.attrs.set("type", type.dtype);
  declared.inputs = {region.add_value(state.name + ".initial", type, std::move(initial))};
  Node read = variable_node("variable_read", state.name), write = variable_node("variable_write", state.name);
  read.outputs = {before};
  write.inputs = {after};
  // Whatever stands between reads what the variable held before.
  region.nodes.insert(region.nodes.begin(), std::move(read));
  region.nodes.insert(region.nodes.begin(), std::move(declared));
  region.nodes.push_back(std::move(write));
}

// The only call that reads the state, if that writes it, too.
Node* call_around(Graph& outer, const State& state) {
  if (state.input == state.output || uses(outer, state.input) != 2) return nullptr;  // by the call, and as a state
  for (Node& node : outer.nodes) {
    if (node.op != "delegate" || std::ranges::count(node.inputs, state.input) != 1) continue;
    return std::ranges::count(node.outputs, state.output) == 1 ? &node : nullptr;
  }
  return nullptr;
}

template <class T>
void erase_at(std::vector<T>& list, std::size_t at) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

bool kept_inside(Graph& outer, std::vector<Graph>& regions, const State& state) {
  if (!may_be_variable(outer[state.input].type)) return false;
  Node* call = call_around(outer, state);
  if (!call) return false;
  Graph& region = regions.at(static_cast<std::size_t>(call->attrs.get<std::int64_t>("region")));
  const std::size_t in = place_of(call->inputs, state.input), out = place_of(call->outputs, state.output);
  const ValueId before = region.inputs.at(in), after = region.outputs.at(out);
  if (!(region[before].type == outer[state.input].type) || !(region[after].type == region[before].type)) return false;
  const bool given = uses(outer, state.output) > 1;  // beside the state
  if (!given && call->outputs.size() == 1) return false;
  keep_inside(region, before, after, state);
  erase_at(call->inputs, in);
  erase_at(region.inputs, in);
  if (!given) {
    erase_at(call->outputs, out);
    erase_at(region.outputs, out);
  }
  return true;
}

}  // namespace

void states_as_variables(Graph& outer, std::vector<Graph>& regions) {
  const std::size_t all = outer.states.size();
  for (std::size_t i = 0; i < outer.states.size();) {
    const State state = outer.states[i];
    if (kept_inside(outer, regions, state))
      erase_at(outer.states, i);
    else
      ++i;
  }
  if (outer.states.size() < all) drop_dead(outer);
}

}  // namespace tosaic
