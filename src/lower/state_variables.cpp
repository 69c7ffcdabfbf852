// SPDX-License-Identifier: Apache-2.0
#include "lower/state_variables.h"

#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/tosa_operators.h"
#include "ops/builder.h"
#include "ops/lowering/conversion.h"

namespace tosaic {
namespace {

// What TOSA 1.0's VARIABLE holds a tensor of a delegate as: of these types, and without dimensions of 0. Booleans are
// i8 there, for CAST makes one of the other.
std::optional<TensorType> held_as(const TensorType& type, const tosa::Spec& spec) {
  if (!type.shape.is_static() || type.shape.elements() == 0) return std::nullopt;
  if (type.dtype == DType::f32 || type.dtype == DType::f16) return type;
  if (!spec.has(tosa::Feature::pro_int)) return std::nullopt;
  if (type.dtype == DType::boolean) return type.with(DType::i8);
  if (type.dtype == DType::i8 && (!type.quantised() || type.scales->per_tensor())) return type;
  return std::nullopt;
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

Node variable_node(Operator op, const std::string& name) {
  Node node;
  node.op = op;
  node.attrs.set("name", name);
  return node;
}

// A program's state at the boundary of the only delegate that reads and writes it. What is a float to the program may
// be quantised values there, after conversions.
struct Crossing {
  Node* call = nullptr;
  ValueId read = no_value, written = no_value;  // what the call takes and gives
  bool given = false;                           // to somebody other than the state
};

void keep_inside(Graph& region, ValueId before, ValueId after, const TensorType& held, const Graph& outer,
                 const State& state, const tosa::Spec& spec) {
  Value initial = outer[state.input];
  initial.constant =
      state.initial.null() ? Bytes::of(std::vector<std::byte>(initial.type.storage_bytes())) : state.initial;
  if (held.quantised()) initial.constant = quantise_constant(initial, held);
  Node declared = variable_node(tosa::op::variable, state.name);
  declared.attrs.set("var_shape", held.shape.sizes());
  declared.attrs.set("type", held.dtype);
  declared.inputs = {region.add_value(state.name + ".initial", held, std::move(initial.constant))};
  Node read = variable_node(tosa::op::variable_read, state.name),
       write = variable_node(tosa::op::variable_write, state.name);
  const bool booleans = region[before].type.dtype == DType::boolean;
  read.outputs = {booleans ? region.add_value(state.name + ".held", held) : before};
  // Whatever stands between reads what the variable held before.
  if (booleans) region.nodes.insert(region.nodes.begin(), {tosa::op::cast, read.outputs, {}, {before}, nullptr, {}});
  region.nodes.insert(region.nodes.begin(), std::move(read));
  region.nodes.insert(region.nodes.begin(), std::move(declared));
  Builder b(region, &spec);
  b.set_loc(region.nodes.back().loc);
  const Val made(&b, after);
  write.inputs = {booleans ? b.cast(made, held.dtype).id() : held.quantised() ? b.rescale(made, held).id() : after};
  region.nodes.push_back(std::move(write));
}

// The conversion that reads a value (the first), or makes it.
Node* conversion(Graph& outer, Operator op, std::vector<ValueId> Node::*side, ValueId v) {
  for (Node& node : outer.nodes)
    if (node.op == op && (node.*side)[0] == v) return &node;
  return nullptr;
}

Crossing crossing(Graph& outer, const State& state) {
  if (state.input == state.output || uses(outer, state.input) != 2) return {};  // by its reader, and as a state
  Crossing found{nullptr, state.input, state.output, uses(outer, state.output) > 1};
  const Node* to_quantised =
      conversion(outer, quantized_decomposed::op::quantize_per_tensor, &Node::inputs, state.input);
  const Node* from_quantised =
      conversion(outer, quantized_decomposed::op::dequantize_per_tensor, &Node::outputs, state.output);
  if (static_cast<bool>(to_quantised) != static_cast<bool>(from_quantised)) return {};
  if (to_quantised) {
    found.read = to_quantised->outputs[0];
    found.written = from_quantised->inputs[0];
    if (uses(outer, found.read) != 1) return {};
    found.given |= uses(outer, found.written) > 1;
  }
  for (Node& node : outer.nodes)
    if (node.op == op::delegate && std::ranges::count(node.inputs, found.read) == 1 &&
        std::ranges::count(node.outputs, found.written) == 1)
      found.call = &node;
  return found;
}

template <class T>
void erase_at(std::vector<T>& list, std::size_t at) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

bool kept_inside(Graph& outer, std::vector<Graph>& regions, const State& state, const tosa::Spec& spec) {
  const auto [call, read, written, given] = crossing(outer, state);
  if (!call || (!given && call->outputs.size() == 1)) return false;
  Graph& region = regions.at(static_cast<std::size_t>(*find_mark(*call, mark::region)));
  const std::size_t in = place_of(call->inputs, read), out = place_of(call->outputs, written);
  const ValueId before = region.inputs.at(in), after = region.outputs.at(out);
  const auto held = held_as(region[before].type, spec);
  const bool is_quantised = region[before].type.quantised();
  if (!held || is_quantised != region[after].type.quantised() || is_quantised != (read != state.input)) return false;
  if (!is_quantised && !(region[after].type == region[before].type)) return false;
  keep_inside(region, before, after, *held, outer, state, spec);
  erase_at(call->inputs, in);
  erase_at(region.inputs, in);
  if (!given) {
    erase_at(call->outputs, out);
    erase_at(region.outputs, out);
  }
  return true;
}

}  // namespace

void states_as_variables(Graph& outer, std::vector<Graph>& regions, const tosa::Spec& spec,
                         const std::set<std::string>& shared) {
  const std::size_t all = outer.states.size();
  for (std::size_t i = 0; i < outer.states.size();) {
    const State state = outer.states[i];
    if (!shared.contains(state.name) && kept_inside(outer, regions, state, spec))
      erase_at(outer.states, i);
    else
      ++i;
  }
  if (outer.states.size() == all) return;
  drop_dead(outer);
  for (Graph& region : regions) make_names_unique(region);
}

}  // namespace tosaic
