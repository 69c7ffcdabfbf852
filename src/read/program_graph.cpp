// SPDX-License-Identifier: Apache-2.0
#include "read/program_graph.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/inlined_body.h"
#include "ir/program_operators.h"
#include "ops/op.h"
#include "ops/operator_name.h"
#include "read/node_location.h"
#include "read/program_arguments.h"
#include "read/read_error.h"

namespace tosaic {
namespace {

constexpr int max_nesting = 32;  // graphs inside graphs

// "torch.ops.aten.add.Tensor" -> "aten.add.Tensor"; "_operator.mul" stays.
std::string op_name(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.";
  return std::string(target.starts_with(prefix) ? target.substr(prefix.size()) : target);
}

[[noreturn]] void unsupported(const std::string& construct, const std::string& hint, const LocRef& loc = {}) {
  fail(located(error("pt2.unsupported-construct", construct + ", which is not supported yet").hint(hint), loc));
}

class GraphReader {
 public:
  GraphReader(const Json& graph, std::string name, const ProgramSource& source, int depth)
      : json_(graph), source_(source), depth_(depth) {
    if (depth > max_nesting) fail("pt2.nesting", fmt::format("graphs are nested more than {} deep", max_nesting));
    graph_.name = std::move(name);
    for (const auto& [value, meta] : graph.at("tensor_values").members()) types_.emplace(value, meta);
    if (auto symbols = graph.find("sym_int_values"))
      for (const auto& [value, content] : symbols->members()) sizes_.emplace(value, source.types.size(content));
  }

  // The whole program: its signature says what inputs and outputs are.
  ProgramGraph read(const Json& signature) {
    const auto input_specs = signature.at("input_specs").items();
    const auto inputs = json_.at("inputs").items(), outputs = json_.at("outputs").items();
    const auto output_specs = signature.at("output_specs").items();
    if (inputs.size() != input_specs.size())
      fail("pt2.bad-json", fmt::format("the graph has {} inputs, its signature {}", inputs.size(), input_specs.size()));
    if (outputs.size() != output_specs.size())
      fail("pt2.bad-json",
           fmt::format("the graph has {} outputs, its signature {}", outputs.size(), output_specs.size()));
    for (const Json& spec : input_specs) read_input_spec(spec);
    read_nodes();
    return_written_inputs();
    for (const Json& spec : output_specs) read_output_spec(spec);
    finish_states();
    say_decomposed();
    std::vector<std::pair<std::string, ValueId>> read_buffers;
    for (const auto& [buffer, placeholder] : buffers_)
      if (const ValueId v = scope_.at(placeholder).id; v != no_value && graph_[v].is_constant())
        read_buffers.emplace_back(buffer, v);
    std::ranges::sort(read_buffers);
    return {std::move(graph_),          std::move(fixed_inputs_), std::move(fixed_outputs_),
            std::move(number_outputs_), std::move(read_buffers),  std::move(outputs_of_inputs_)};
  }

  // The body of a control flow operator: all inputs and outputs are its operands and results.
  Graph read_region() {
    for (const Json& input : json_.at("inputs").items()) {
      auto [tag, value] = input.tagged();
      add_input(tag, value);
    }
    read_nodes();
    for (const Json& output : json_.at("outputs").items()) {
      auto [tag, value] = output.tagged();
      add_output(tag, value);
    }
    say_decomposed();
    return std::move(graph_);
  }

 private:
  // What a name stands for: a value, or weights not yet looked at.
  struct Entry {
    ValueId id = no_value;
    std::string_view kind;  // "parameter", "buffer", "constant", "custom object": not yet loaded
    std::string weight;     // fully qualified name, empty for none
  };

  void define(std::string_view name, Entry entry) {
    if (!scope_.emplace(name, std::move(entry)).second)
      fail("pt2.duplicate-name", fmt::format("two values of graph '{}' are named '{}'", graph_.name, name));
  }
  ValueId define_value(std::string_view name, TensorType type) {
    const ValueId id = graph_.add_value(std::string(name), std::move(type));
    define(name, {id, "", ""});
    return id;
  }
  TensorType type_of(std::string_view name) const {
    auto meta = types_.find(name);
    if (meta == types_.end()) fail("pt2.bad-json", fmt::format("tensor_values does not state the type of '{}'", name));
    return source_.types.tensor_type(meta->second, fmt::format("tensor '{}'", name));
  }
  ValueId define_tensor(std::string_view name) { return define_value(name, type_of(name)); }
  // A call's result. Complex ones are pairs, and their call says so.
  ValueId define_result(std::string_view name, Node& node) {
    if (!is_complex(name)) return define_tensor(name);
    node.attrs.set("complex_results", true);
    const ValueId id = define_value(name, pairs_type_of(name));
    complex_.insert(id);
    return id;
  }
  bool is_complex(std::string_view name) const {
    const auto meta = types_.find(name);
    return meta != types_.end() && ProgramTypes::is_complex(meta->second);
  }
  TensorType pairs_type_of(std::string_view name) const {
    return source_.types.pairs_type(types_.at(name), fmt::format("tensor '{}'", name));
  }

  // The value that a name stands for; weights are loaded here, when first used.
  ValueId use(std::string_view name) {
    auto found = scope_.find(name);
    if (found == scope_.end()) fail_undefined(name);
    Entry& entry = found->second;
    if (entry.id != no_value) return entry.id;
    if (entry.kind == "custom object")
      unsupported(fmt::format("'{}' is a custom class object", name), "export a model of plain tensors");
    Tensor tensor = source_.weights.load(entry.weight, entry.kind);
    const bool complex = is_complex(name);
    const TensorType declared = complex ? pairs_type_of(name) : type_of(name);
    if (declared.dtype != tensor.type.dtype || declared.shape != tensor.type.shape)
      fail(error("pt2.weight-mismatch", fmt::format("the program takes {} '{}' as {}, but {} is stored", entry.kind,
                                                    entry.weight, to_string(declared), to_string(tensor.type)))
               .hint("the file is damaged: save the program again"));
    entry.id =
        graph_.add_value(complex ? fmt::format("{}.pairs", name) : std::string(name), declared, std::move(tensor.data));
    if (complex) entry.id = seen_as_complex(name, entry.id);
    return entry.id;
  }
  // Complex constants are pairs that a call sees as such: nothing but calls says of its results what they are.
  ValueId seen_as_complex(std::string_view name, ValueId pairs) {
    const ValueId id = graph_.add_value(std::string(name), graph_[pairs].type);
    graph_.nodes.push_back({aten::op::view_as_complex, {pairs}, {{"complex_results", true}}, {id}, {}, {}});
    complex_.insert(id);
    return id;
  }

  // What leaves the program: no type outside says what pairs are.
  ValueId use_real(std::string_view name) {
    const ValueId v = use(name);
    if (complex_.contains(v)) type_of(name);  // which refuses it
    return v;
  }

  [[noreturn]] void fail_undefined(std::string_view name) {
    for (const Json& node : json_.at("nodes").items())
      for (const Json& output : node.at("outputs").items()) {
        auto [tag, value] = output.tagged();
        auto names = tensor_names(tag, value);
        if (names && std::find(names->begin(), names->end(), name) != names->end())
          fail("pt2.use-before-definition",
               fmt::format(
                   "value '{}' is used before the node that makes it: the nodes form a cycle or are out of order",
                   name));
      }
    fail("pt2.undefined-value", fmt::format("value '{}' is used, but nothing defines it", name));
  }

  void add_input(std::string_view tag, const Json& value) {
    if (tag == "as_tensor")
      graph_.inputs.push_back(define_tensor(value.at("name").text()));
    else if (auto symbol = symbol_output(tag, value))
      graph_.inputs.push_back(define_symbol(tag, *symbol));
    else if (tag == "as_custom_obj")
      unsupported("an input is a custom class object", "export a model of plain tensors");
    else  // the exported graph already holds it as a literal
      add_fixed(fixed_inputs_, graph_.inputs.size(), tag, value);
  }

  void add_output(std::string_view tag, const Json& value) {
    if (auto names = tensor_names(tag, value)) {
      for (std::string_view name : *names)
        if (name.empty())
          add_fixed(fixed_outputs_, graph_.outputs.size(), "as_none", value);
        else
          graph_.outputs.push_back(use_real(name));
    } else if (auto symbol = symbol_output(tag, value)) {
      number_outputs_.push_back(graph_.outputs.size());
      graph_.outputs.push_back(use(*symbol));
    } else {
      add_fixed(fixed_outputs_, graph_.outputs.size(), tag, value);
    }
  }

  // One more input or output that is no tensor.
  static void add_fixed(FixedValues& list, std::size_t tensors, std::string_view tag, const Json& value) {
    Attr fixed = read_attribute(tag, value, [](std::string_view) -> std::optional<Dim> { return {}; });
    if (std::holds_alternative<SymbolicArgument>(fixed) ||
        std::holds_alternative<std::vector<SymbolicArgument>>(fixed) || std::holds_alternative<DType>(fixed))
      unsupported(fmt::format("an input or output of the program is of kind '{}'", tag),
                  "pass and return tensors, scalars and None");
    list.push_back({tensors + list.size(), std::move(fixed)});
  }

  // A write to an input is a result: the input is an output, whose readers get its new content.
  void return_written_inputs() {
    for (ValueId v : graph_.inputs) {
      const auto written = written_inputs_.find(v);
      if (written == written_inputs_.end()) continue;
      return_input(graph_[v].name, v, v, written->second);
    }
  }
  void return_input(std::string_view input, ValueId v, ValueId content, const LocRef& loc) {
    warn_written(input, loc);
    outputs_of_inputs_.push_back(static_cast<std::size_t>(std::ranges::find(graph_.inputs, v) - graph_.inputs.begin()));
    graph_.outputs.push_back(content);
  }
  void warn_written(std::string_view input, const LocRef& loc) {
    source_.sink(located(
        warning("pt2.input-mutation", fmt::format("the program writes to its input '{}': the new content is output {}, "
                                                  "before what the model returns, as in ExecuTorch",
                                                  input, graph_.outputs.size()))
            .hint("work on a copy in forward() if nobody needs it: x = x.clone()"),
        loc));
  }

  void read_input_spec(const Json& spec) {
    auto [kind, content] = spec.tagged();
    if (kind == "user_input") {
      auto [tag, value] = content.at("arg").tagged();
      add_input(tag, value);
    } else if (kind == "parameter") {
      define_weight(content, "parameter", "parameter_name");
    } else if (kind == "buffer") {
      define_weight(content, "buffer", "buffer_name");
    } else if (kind == "tensor_constant") {
      define_weight(content, "constant", "tensor_constant_name");
    } else if (kind == "custom_obj") {
      define(content.at("arg").at("name").text(), {no_value, "custom object", ""});
    } else if (kind == "token") {
      unsupported("the program orders side effects by tokens", "remove operators with side effects before exporting");
    } else if (kind == "constant_input") {
      auto [tag, value] = content.at("value").tagged();
      add_fixed(fixed_inputs_, graph_.inputs.size(), tag, value);
    } else {
      fail("pt2.bad-json", fmt::format("an input of the signature has the unknown kind '{}'", kind));
    }
  }
  void define_weight(const Json& content, std::string_view kind, std::string_view key) {
    const std::string_view name = content.at("arg").at("name").text();
    std::string weight(content.at(key).text());
    (kind == "parameter" ? parameters_ : buffers_).emplace(weight, name);
    define(name, {no_value, kind, std::move(weight)});
  }

  void read_output_spec(const Json& spec) {
    auto [kind, content] = spec.tagged();
    if (kind == "user_output") {
      auto [tag, value] = content.at("arg").tagged();
      return add_output(tag, value);
    }
    if (kind == "buffer_mutation" || kind == "parameter_mutation") {  // kept from run to run alike
      const bool is_buffer = kind == "buffer_mutation";
      const std::string buffer(content.at(is_buffer ? "buffer_name" : "parameter_name").text());
      const auto& held = is_buffer ? buffers_ : parameters_;
      auto placeholder = held.find(buffer);
      if (placeholder == held.end())
        fail("pt2.bad-json",
             fmt::format("the mutated {} '{}' is no input of the graph", is_buffer ? "buffer" : "parameter", buffer));
      return set_state(use(placeholder->second), buffer, use(content.at("arg").at("name").text()));
    }
    LocRef loc;
    if (auto argument = content.find("arg"))
      if (auto name = argument->find("name")) loc = locations_[std::string(name->text())];
    if (kind == "user_input_mutation") {
      const std::string_view input = content.at("user_input_name").text();
      return return_input(input, use(input), use(content.at("arg").at("name").text()), loc);
    }
    if (kind == "loss_output" || kind.starts_with("gradient_"))
      unsupported("the program is one for training: it returns gradients", "export the model in eval mode", loc);
    if (kind == "token")
      unsupported("the program orders side effects by tokens", "remove operators with side effects before exporting",
                  loc);
    fail("pt2.bad-json", fmt::format("an output of the signature has the unknown kind '{}'", kind));
  }

  // `buffer` will hold `output` after a run; the same as its input when it is written through a view.
  void set_state(ValueId input, const std::string& buffer, ValueId output) {
    for (State& state : graph_.states)
      if (state.input == input) {
        state.output = output;
        return;
      }
    graph_.states.push_back({buffer, input, output});
  }
  void finish_states() {
    for (State& state : graph_.states) {
      state.initial = std::exchange(graph_[state.input].constant, {});
      if (!(graph_[state.output].type == graph_[state.input].type))
        fail("pt2.bad-json", fmt::format("buffer '{}' of type {} is overwritten by '{}' of type {}", state.name,
                                         to_string(graph_[state.input].type), graph_[state.output].name,
                                         to_string(graph_[state.output].type)));
    }
  }

  void read_nodes() {
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
        if (metadata && metadata->find("undecomposed")) node.attrs.set("undecomposed", true);
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

  // Which calls arrived in pieces, once for each operator.
  void say_decomposed() {
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

  // Newer torch names nodes; otherwise the first output's name is as good.
  static std::string node_name(const Json& node) {
    if (auto name = node.find("name")) return std::string(name->text());
    for (const Json& output : node.at("outputs").items()) {
      auto [tag, value] = output.tagged();
      if (auto names = tensor_names(tag, value); names && !names->empty()) return std::string(names->front());
    }
    return "";
  }

  struct Argument {
    std::string_view name, tag;
    Json value;
    bool keyword = false;
  };

  void read_node(const Json& json, Node& node) {
    std::vector<Argument> arguments;
    for (const Json& item : json.at("inputs").items()) {
      auto [tag, value] = item.at("arg").tagged();
      auto name = item.find("name");
      auto kind = item.find("kind");
      arguments.push_back({name ? name->text() : std::string_view(), tag, value, kind && kind->integer() == 2});
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

  // Calls that compute what their body does, under circumstances that matter to training alone.
  static bool runs_its_body(const Node& node) {
    return node.regions.size() == 1 && ((node.op.is_control_flow() && node.op.base().starts_with("wrap")) ||
                                        node.op == higher_order::op::tag_activation_checkpoint);
  }

  // The body's nodes in the call's place. A write inside is one to what the call was given.
  void splice(const Json& outputs, Node& node) {
    const Attr* enabled = node.op == higher_order::op::wrap_with_autocast ? node.attrs.find("arg2") : nullptr;
    if (enabled && !(std::holds_alternative<bool>(*enabled) && !std::get<bool>(*enabled)))
      unsupported("the program computes a part in torch.autocast, which leaves out the casts",
                  "let PyTorch write them: exported.run_decompositions({})", node.loc);
    if (node.regions[0].inputs.size() != node.inputs.size() || !node.regions[0].states.empty())
      fail("pt2.bad-json", fmt::format("the subgraph of {} takes {} values and is given {}", node.op,
                                       node.regions[0].inputs.size(), node.inputs.size()));
    InlinedBody body = inlined_body(graph_, node.regions[0], node.inputs, node.loc, [&](const std::string& name) {
      return fmt::format("{}.{}", node.loc->name, name);
    });
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
      else if (auto symbol = symbol_output(tag, value))
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

  // A call that is made for what it does to something, which an unknown operator's name does not tell: for all that is
  // known, to each of its operands (`acts_on_operands`, normalise.h).
  static void mark_effect(const Schema* schema, Node& node) {
    if (schema || node.op.same_space(python::op::add)) return;
    const bool results = std::any_of(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v != no_value; });
    const bool asserts =
        node.op.is_aten() && (node.op.base().starts_with("_assert") || node.op.base().starts_with("sym_constrain"));
    if (name_says_out(node.op) || (!results && node.regions.empty() && !asserts)) node.attrs.set("effect", true);
  }

  void read_known(const Schema& schema, const std::vector<Argument>& arguments, Node& node) {
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
        node.attrs.set(std::string(arguments[i].name), attribute(arguments[i]));
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
        if (given[i]) node.attrs.set(a.name, attribute(*given[i]));
      } else if (!given[i] || given[i]->tag == "as_none") {
        if (!a.is_tensor_list()) node.inputs.push_back(no_value);
      } else if (auto names = tensor_names(given[i]->tag, given[i]->value)) {
        add_operands(*names, node);
      } else if (auto symbol = symbol_output(given[i]->tag, given[i]->value)) {
        node.inputs.push_back(use(*symbol));
      } else if (a.is_tensor_list()) {
        // PyTorch writes an empty list with the tag of some other type.
        if (!given[i]->value.items().empty())
          fail("pt2.bad-json", fmt::format("argument '{}' must be tensors", a.name));
      } else {
        // x * 2 arrives as mul.Tensor(x, 2): PyTorch promotes numbers by rules of their own, so it stays one.
        node.inputs.push_back(no_value);
        node.attrs.set(a.name, attribute(*given[i]));
      }
    }
    if (schema.argument("stride") && schema.argument("storage_offset")) look_at_memory(node);
  }

  // as_strided counts in the memory of its operand, whose elements may lie there in another order, or not from the
  // beginning on. Then it is called on the tensor that owns the memory.
  void look_at_memory(Node& node) {
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
  std::int64_t memory_offset(ValueId v) const {
    auto meta = types_.find(graph_[v].name);
    if (meta == types_.end()) return 0;
    auto offset = meta->second.find("storage_offset");
    return offset ? ProgramTypes::plain_integer(*offset, fmt::format("tensor '{}'", graph_[v].name)) : 0;
  }
  // Where a tensor begins in its memory, if it lies there in row-major order; otherwise -1.
  std::int64_t row_major_offset(ValueId v) const {
    auto meta = types_.find(graph_[v].name);
    if (meta == types_.end() || !graph_[v].type.shape.is_static()) return -1;
    const std::string what = fmt::format("tensor '{}'", graph_[v].name);
    const auto strides = ProgramTypes::plain_integers(meta->second.at("strides"), what);
    const Shape& shape = graph_[v].type.shape;
    std::int64_t expected = 1;
    for (int i = shape.rank() - 1; i >= 0; expected *= shape.size(i--))
      if (shape.size(i) != 1 &&
          (static_cast<std::size_t>(i) >= strides.size() || strides[static_cast<std::size_t>(i)] != expected))
        return -1;
    return memory_offset(v);
  }

  // Of an operator without schema the arguments' order and names are all that a caller of its kernel can go by.
  void read_unknown(const std::vector<Argument>& arguments, Node& node) {
    std::vector<std::string> order;
    std::vector<std::int64_t> counts;  // of tensors, by argument
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      if (a.tag == "as_graph") {
        GraphReader body(a.value.at("graph"), std::string(a.value.at("name").text()), source_, depth_ + 1);
        node.regions.push_back(body.read_region());
        continue;
      }
      const std::string name = a.name.empty() ? fmt::format("arg{}", i) : std::string(a.name);
      if (auto names = tensor_names(a.tag, a.value)) {
        add_operands(*names, node);
        counts.push_back(static_cast<std::int64_t>(names->size()));
        order.push_back(a.tag.ends_with("s") ? fmt::format("Tensor?[] {} {}", names->size(), name) : "Tensor? " + name);
      } else if (auto symbol = symbol_output(a.tag, a.value); symbol && node.op.is_control_flow()) {
        node.inputs.push_back(use(*symbol));  // a condition on sizes, or what a body takes
        counts.push_back(1);
      } else {
        order.push_back(name);
        node.attrs.set(name, attribute(a));
      }
    }
    if (node.regions.empty())
      node.attrs.set("argument_order", std::move(order));
    else
      node.attrs.set("operands", std::move(counts));
  }

  void add_operands(const std::vector<std::string_view>& names, Node& node) {
    for (std::string_view name : names) node.inputs.push_back(name.empty() ? no_value : use(name));
  }

  Attr attribute(const Argument& argument) {
    return read_attribute(argument.tag, argument.value, [this](std::string_view name) -> std::optional<Dim> {
      const auto known = sizes_.find(name);
      if (known != sizes_.end() && known->second.is_number()) return known->second;
      if (!scope_.contains(name)) fail_undefined(name);
      return known != sizes_.end() ? std::optional(known->second) : std::nullopt;
    });
  }

  // The name in as_sym_int{as_name}, as_sym_bool{..}, as_sym_float{..}.
  static std::optional<std::string_view> symbol_output(std::string_view tag, const Json& value) {
    if (tag != "as_sym_int" && tag != "as_sym_bool" && tag != "as_sym_float") return std::nullopt;
    auto [kind, content] = value.tagged();
    return kind == "as_name" ? std::optional(content.text()) : std::nullopt;
  }
  ValueId define_symbol(std::string_view tag, std::string_view name) {
    const ValueId id = define_value(name, {tag == "as_sym_int"    ? DType::i64
                                           : tag == "as_sym_bool" ? DType::boolean
                                                                  : DType::f64,
                                           Shape(), std::nullopt});
    if (const auto known = sizes_.find(name); tag == "as_sym_int" && known != sizes_.end())
      graph_[id].size = known->second;
    return id;
  }

  void read_output(const Json& output, Node& node) {
    auto [tag, value] = output.tagged();
    if (auto names = tensor_names(tag, value)) {
      for (std::string_view name : *names) {
        node.outputs.push_back(name.empty() ? no_value : define_result(name, node));
        if (!name.empty()) locations_[std::string(name)] = node.loc;
      }
    } else if (auto symbol = symbol_output(tag, value)) {
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
  void note_writes(const Schema* schema, const Node& node) {
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
    if (!writes || node.op.is_aten() && node.op.base() == "detach_") return;
    if (std::find(graph_.inputs.begin(), graph_.inputs.end(), root) != graph_.inputs.end())
      written_inputs_.emplace(root, node.loc);
    if (!graph_[root].is_constant()) return;
    const auto found = scope_.find(graph_[root].name);
    if (found == scope_.end()) return;
    // A parameter, and a tensor that the module holds without having registered it, is kept from run to run, too.
    set_state(root, found->second.weight,
              at.whole && !node.outputs.empty() && node.outputs[0] != no_value ? node.outputs[0] : root);
  }

  const Json json_;
  const ProgramSource& source_;
  const int depth_;
  Graph graph_;
  std::unordered_map<std::string_view, Json> types_;
  std::unordered_map<std::string_view, Dim> sizes_;  // the integers that follow from sizes, by name
  std::unordered_map<std::string_view, Entry> scope_;
  // What a program may write: its name -> placeholder.
  std::unordered_map<std::string, std::string_view> buffers_, parameters_;
  struct Looks {
    ValueId root;  // the value whose memory it shares
    bool whole;    // it is that value, element by element: only in-place calls lie between
  };
  std::unordered_map<ValueId, Looks> looks_at_;
  std::unordered_map<ValueId, LocRef> written_inputs_;
  std::vector<std::size_t> outputs_of_inputs_;     // which inputs the first outputs are new contents of
  std::unordered_set<ValueId> complex_;            // those that are pairs
  std::map<std::string, std::string> decomposed_;  // operator -> who says it in others
  FixedValues fixed_inputs_, fixed_outputs_;
  std::vector<std::size_t> number_outputs_;
  std::unordered_map<std::string, LocRef> locations_;
};

}  // namespace

ProgramGraph read_program_graph(const Json& graph_module, const std::string& name, const ProgramSource& source) {
  return GraphReader(graph_module.at("graph"), name, source, 1).read(graph_module.at("signature"));
}

}  // namespace tosaic
