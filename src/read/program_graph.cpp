// SPDX-License-Identifier: Apache-2.0
#include "read/program_graph.h"

#include <fmt/format.h>
#include <algorithm>

#include "read/program_arguments.h"
#include "read/program_nodes.h"
#include "read/read_error.h"

namespace tosaic {
namespace {

constexpr int max_nesting = 32;  // graphs inside graphs

// Inputs and outputs, as the program's signature or a subgraph has them.
class GraphReader : ProgramNodes {
 public:
  GraphReader(const Json& graph, std::string name, const ProgramSource& source, int depth)
      : ProgramNodes(graph, std::move(name), source, depth) {}

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
            std::move(scalar_outputs_), std::move(read_buffers),  std::move(outputs_of_inputs_)};
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
  void add_input(std::string_view tag, const Json& value) {
    if (tag == "as_tensor")
      graph_.inputs.push_back(define_tensor(value.at("name").text()));
    else if (auto symbol = symbol_name(tag, value))
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
    } else if (auto symbol = symbol_name(tag, value)) {
      scalar_outputs_.push_back(graph_.outputs.size());
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

  void finish_states() {
    for (State& state : graph_.states) {
      state.initial = std::exchange(graph_[state.input].constant, {});
      if (!(graph_[state.output].type == graph_[state.input].type))
        fail("pt2.bad-json", fmt::format("buffer '{}' of type {} is overwritten by '{}' of type {}", state.name,
                                         to_string(graph_[state.input].type), graph_[state.output].name,
                                         to_string(graph_[state.output].type)));
    }
  }
  // What a program may write: its name -> placeholder.
  std::unordered_map<std::string, std::string_view> buffers_, parameters_;
  std::vector<std::size_t> outputs_of_inputs_;  // which inputs the first outputs are new contents of
  FixedValues fixed_inputs_, fixed_outputs_;
  std::vector<std::size_t> scalar_outputs_;
};

}  // namespace

Graph read_region(const Json& graph, std::string name, const ProgramSource& source, int depth) {
  if (depth > max_nesting) fail("pt2.nesting", fmt::format("graphs are nested more than {} deep", max_nesting));
  return GraphReader(graph, std::move(name), source, depth).read_region();
}

ProgramGraph read_program_graph(const Json& graph_module, const std::string& name, const ProgramSource& source) {
  return GraphReader(graph_module.at("graph"), name, source, 1).read(graph_module.at("signature"));
}

}  // namespace tosaic
