// SPDX-License-Identifier: Apache-2.0
#include "read/program_nodes.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_set>

#include "ir/inlined_body.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ops/op.h"
#include "ops/operator_name.h"
#include "read/node_location.h"
#include "read/program_arguments.h"
#include "read/read_error.h"

namespace tosaic {
namespace {

// "torch.ops.aten.add.Tensor" -> "aten.add.Tensor"; "_operator.mul" stays.
std::string op_name(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.";
  return std::string(target.starts_with(prefix) ? target.substr(prefix.size()) : target);
}

// Newer torch names nodes; otherwise the first output's name is as good.
std::string node_name(const Json& node) {
  if (auto name = node.find("name")) return std::string(name->text());
  for (const Json& output : node.at("outputs").items()) {
    auto [tag, value] = output.tagged();
    if (auto names = tensor_names(tag, value); names && !names->empty()) return std::string(names->front());
  }
  return "";
}

// Calls that compute what their body does, under circumstances that matter to training alone.
bool runs_its_body(const Node& node) {
  return node.regions.size() == 1 && ((node.op.is_control_flow() && node.op.base().starts_with("wrap")) ||
                                      node.op == higher_order::op::tag_activation_checkpoint);
}

// A call that is made for what it does to something, which an unknown operator's name does not tell: for all that is
// known, to each of its operands (`acts_on_operands`, normalise.h). PyTorch's own that take no tensor give what is no
// tensor: torch.promote_types a dtype, which its readers state themselves.
void mark_effect(const Schema* schema, Node& node) {
  if (schema || node.op.same_space(python::op::add)) return;
  const auto any = [](const std::vector<ValueId>& values) {
    return std::any_of(values.begin(), values.end(), [](ValueId v) { return v != no_value; });
  };
  if (node.op.is_aten() && !any(node.inputs) && !any(node.outputs)) return;
  const bool results = any(node.outputs);
  const bool asserts =
      node.op.is_aten() && (node.op.base().starts_with("_assert") || node.op.base().starts_with("sym_constrain"));
  if (name_says_out(node.op) || (!results && node.regions.empty() && !asserts)) set_mark(node, mark::effect, true);
}

}  // namespace

void ProgramNodes::read_nodes() {
  const auto nodes = json_.at("nodes").items();
  graph_.nodes.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node node;
    try {
      node.op = Operator(op_name(nodes[i].at("target").text()));
      const auto metadata = nodes[i].find("metadata");
      node.loc = read_location(metadata, node.op.text(), node_name(nodes[i]));
      if (auto by = metadata ? metadata->find("decomposed_by") : std::nullopt)
        decomposed_.emplace(node.loc->op, by->text());
      if (metadata && metadata->find("undecomposed")) set_mark(node, mark::undecomposed, true);
      read_node(nodes[i], node);
    } catch (ReadError& e) {
      // The innermost node is the place; the text tells which one it was even without a source line.
      Diagnostic why = located(std::move(e.why), node.loc);
      if (why.notes.empty() || !why.notes.back().starts_with("in node "))
        why.notes.push_back(fmt::format(
            "in node {} of graph '{}', {}{}", i, graph_.name, node.op.none() ? "without target" : node.op.name(),
            node.loc && !node.loc->name.empty() ? fmt::format(" ('{}')", node.loc->name) : ""));
      throw ReadError{std::move(why)};
    }
    if (!node.op.none()) graph_.nodes.push_back(std::move(node));  // it may have become its body's
  }
}

void ProgramNodes::say_decomposed() const {
  for (const auto& [op, by] : decomposed_) {
    std::vector<std::string_view> pieces;
    LocRef first;
    std::unordered_set<std::string_view> calls;
    for (const Node& node : graph_.nodes) {
      if (!node.loc || node.loc->op != op || node.op.name() == op) continue;
      if (!first) first = node.loc;
      calls.insert(node.loc->name);
      if (std::find(pieces.begin(), pieces.end(), node.op.name()) == pieces.end()) pieces.push_back(node.op.name());
    }
    if (!first) continue;
    Diagnostic note = error("model.decomposed",
                            fmt::format("{} is not known to tosaic; {} decomposes it into other operators", op, by))
                          .note(fmt::format("{} of it, made of {}",
                                            calls.size() == 1 ? "one call" : fmt::format("{} calls", calls.size()),
                                            fmt::join(pieces, ", ")));
    note.severity = Severity::note;
    source_.sink(located(std::move(note), first));
  }
}

void ProgramNodes::read_node(const Json& json, Node& node) {
  std::vector<Argument> arguments;
  for (const Json& item : json.at("inputs").items()) {
    auto [tag, value] = item.at("arg").tagged();
    auto name = item.find("name");
    arguments.push_back({name ? name->text() : std::string_view(), tag, value});
  }
  const FoundOp found = find_aten(node.op);
  if (found.schema)
    read_known(*found.schema, arguments, node);
  else
    read_unknown(arguments, node);
  if (runs_its_body(node)) return splice(json.at("outputs"), node);
  for (const Json& output : json.at("outputs").items()) read_output(output, node);
  note_writes(found.schema, node);
  mark_effect(found.schema, node);
}

// The body's nodes in the call's place. A write inside is one to what the call was given.
void ProgramNodes::splice(const Json& outputs, Node& node) {
  const Attr* enabled = node.op == higher_order::op::wrap_with_autocast ? node.attrs.find("arg2") : nullptr;
  if (enabled && !(std::holds_alternative<bool>(*enabled) && !std::get<bool>(*enabled)))
    unsupported("the program computes a part in torch.autocast, which leaves out the casts",
                "let PyTorch write them: exported.run_decompositions({})", node.loc);
  if (node.regions[0].inputs.size() != node.inputs.size() || !node.regions[0].states.empty())
    fail("pt2.bad-json", fmt::format("the subgraph of {} takes {} values and is given {}", node.op,
                                     node.regions[0].inputs.size(), node.inputs.size()));
  InlinedBody body = inlined_body(graph_, node.regions[0], node.inputs, node.loc,
                                  [&](const std::string& name) { return fmt::format("{}.{}", node.loc->name, name); });
  for (Node& inner : body.nodes) {
    const FoundOp found = find_aten(inner.op);
    note_writes(found.schema, inner);
    graph_.nodes.push_back(std::move(inner));
  }
  std::vector<std::string_view> names;
  for (const Json& output : outputs.items()) {
    auto [tag, value] = output.tagged();
    if (auto tensors = tensor_names(tag, value))
      names.insert(names.end(), tensors->begin(), tensors->end());
    else if (auto symbol = symbol_name(tag, value))
      names.push_back(*symbol);
    else
      names.emplace_back();  // a literal: whoever needs it holds it itself
  }
  if (names.size() != body.results.size())
    fail("pt2.bad-json",
         fmt::format("the subgraph of {} gives {} values, the call {}", node.op, body.results.size(), names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    define(names[i], {body.results[i], "", ""});
    locations_[std::string(names[i])] = node.loc;
  }
  node.op = {};
}

void ProgramNodes::read_known(const Schema& schema, const std::vector<Argument>& arguments, Node& node) {
  std::vector<const Argument*> given(schema.arguments.size(), nullptr);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::size_t index = i;
    if (!arguments[i].name.empty()) {
      const SchemaArgument* a = schema.argument(arguments[i].name);
      index = a ? static_cast<std::size_t>(a - schema.arguments.data()) : given.size();
    }
    if (index >= given.size()) {
      // A newer torch may have given the operator one more argument. A tensor there cannot be ignored.
      if (tensor_names(arguments[i].tag, arguments[i].value))
        fail("pt2.unknown-argument",
             fmt::format("{} has no argument '{}' that tosaic knows of", node.op, arguments[i].name));
      node.attrs.set(std::string(arguments[i].name), attribute(arguments[i].tag, arguments[i].value));
      continue;
    }
    if (given[index])
      fail("pt2.duplicate-name",
           fmt::format("{} is given its argument '{}' twice", node.op, schema.arguments[index].name));
    given[index] = &arguments[i];
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const SchemaArgument& a = schema.arguments[i];
    if (!a.is_tensor()) {
      if (given[i]) node.attrs.set(a.name, attribute(given[i]->tag, given[i]->value));
    } else if (!given[i] || given[i]->tag == "as_none") {
      if (!a.is_tensor_list()) node.inputs.push_back(no_value);
    } else if (auto names = tensor_names(given[i]->tag, given[i]->value)) {
      add_operands(*names, node);
    } else if (auto symbol = symbol_name(given[i]->tag, given[i]->value)) {
      node.inputs.push_back(use(*symbol));
    } else if (a.is_tensor_list()) {
      // PyTorch writes an empty list with the tag of some other type.
      if (!given[i]->value.items().empty()) fail("pt2.bad-json", fmt::format("argument '{}' must be tensors", a.name));
    } else {
      // x * 2 arrives as mul.Tensor(x, 2): PyTorch promotes numbers by rules of their own, so it stays one.
      node.inputs.push_back(no_value);
      node.attrs.set(a.name, attribute(given[i]->tag, given[i]->value));
    }
  }
  if (schema.argument("stride") && schema.argument("storage_offset")) look_at_memory(node);
}

// as_strided counts in the memory of its operand, whose elements may lie there in another order, or not from the
// beginning on. Then it is called on the tensor that owns the memory.
void ProgramNodes::look_at_memory(Node& node) {
  const ValueId self = node.inputs.at(0);
  if (self == no_value) return;
  const auto offset = row_major_offset(self);
  if (offset == 0) return;
  const auto seen = looks_at_.find(self);
  const ValueId owner = seen == looks_at_.end() ? self : seen->second.root;
  if (row_major_offset(owner) != 0 || graph_[owner].type.dtype != graph_[self].type.dtype)
    unsupported(fmt::format("{} looks at the memory of '{}', whose elements lie there in an order of their own",
                            node.op, graph_[self].name),
                "call it on x.contiguous()", node.loc);
  node.inputs[0] = owner;
  const Attr* given = node.attrs.find("storage_offset");
  if (!given || std::holds_alternative<std::monostate>(*given)) node.attrs.set("storage_offset", memory_offset(self));
}

// Of an operator without schema the arguments' order and names are all that a caller of its kernel can go by.
void ProgramNodes::read_unknown(const std::vector<Argument>& arguments, Node& node) {
  std::vector<std::string> order;
  std::vector<std::int64_t> counts;  // of tensors, by argument
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    if (a.tag == "as_graph") {
      node.regions.push_back(
          read_region(a.value.at("graph"), std::string(a.value.at("name").text()), source_, depth_ + 1));
      continue;
    }
    const std::string name = a.name.empty() ? fmt::format("arg{}", i) : std::string(a.name);
    if (auto names = tensor_names(a.tag, a.value)) {
      add_operands(*names, node);
      counts.push_back(static_cast<std::int64_t>(names->size()));
      order.push_back(a.tag.ends_with("s") ? fmt::format("Tensor?[] {} {}", names->size(), name) : "Tensor? " + name);
    } else if (auto symbol = symbol_name(a.tag, a.value); symbol && node.op.is_control_flow()) {
      node.inputs.push_back(use(*symbol));  // a condition on sizes, or what a body takes
      counts.push_back(1);
    } else {
      order.push_back(name);
      node.attrs.set(name, attribute(a.tag, a.value));
    }
  }
  if (node.regions.empty())
    set_mark(node, mark::argument_order, std::move(order));
  else
    set_mark(node, mark::operands, std::move(counts));
}

void ProgramNodes::add_operands(const std::vector<std::string_view>& names, Node& node) {
  for (std::string_view name : names) node.inputs.push_back(name.empty() ? no_value : use(name));
}

void ProgramNodes::read_output(const Json& output, Node& node) {
  auto [tag, value] = output.tagged();
  if (auto names = tensor_names(tag, value)) {
    for (std::string_view name : *names) {
      node.outputs.push_back(name.empty() ? no_value : define_result(name, node));
      if (!name.empty()) locations_[std::string(name)] = node.loc;
    }
  } else if (auto symbol = symbol_name(tag, value)) {
    node.outputs.push_back(define_symbol(tag, *symbol));
  } else if (tag == "as_none" || tag == "as_int" || tag == "as_bool" || tag == "as_float" ||
             tag.starts_with("as_sym_")) {
    node.outputs.push_back(no_value);  // a literal: whoever needs it holds it itself
  } else {
    unsupported(fmt::format("{} returns an object that is not a tensor ('{}')", node.op, tag),
                "export a model of plain tensors", node.loc);
  }
}

// Remembers which buffers and inputs the node changes, directly or through views.
void ProgramNodes::note_writes(const Schema* schema, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == no_value) return;
  const bool writes = schema ? schema->in_place : name_says_in_place(node.op);
  const bool sees_pairs = node.op == aten::op::view_as_real || node.op == aten::op::view_as_complex ||
                          node.op == aten::op::real || node.op == aten::op::imag;
  if (!writes && !(schema && schema->view) && !sees_pairs) return;
  auto seen = looks_at_.find(node.inputs[0]);
  Looks at = seen == looks_at_.end() ? Looks{node.inputs[0], true} : seen->second;
  at.whole = at.whole && writes;
  for (ValueId v : node.outputs)  // what `to` converts is a copy
    if (v != no_value && graph_[v].type.dtype == graph_[node.inputs[0]].type.dtype) looks_at_[v] = at;
  const ValueId root = at.root;
  // detach_ is no write: it cuts the gradient.
  if (!writes || (node.op.is_aten() && node.op.base() == "detach_")) return;
  if (std::find(graph_.inputs.begin(), graph_.inputs.end(), root) != graph_.inputs.end())
    written_inputs_.emplace(root, node.loc);
  if (!graph_[root].is_constant()) return;
  const auto found = scope_.find(graph_[root].name);
  if (found == scope_.end()) return;
  // A parameter, and a tensor that the module holds without having registered it, is kept from run to run, too.
  set_state(root, found->second.weight,
            at.whole && !node.outputs.empty() && node.outputs[0] != no_value ? node.outputs[0] : root);
}

void ProgramNodes::set_state(ValueId input, const std::string& buffer, ValueId output) {
  for (State& state : graph_.states)
    if (state.input == input) {
      state.output = output;
      return;
    }
  graph_.states.push_back({buffer, input, output});
}

}  // namespace tosaic
