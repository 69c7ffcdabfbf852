// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "formats/spirv/graph/attributes.h"
#include "formats/spirv/graph/graph_module.h"
#include "formats/spirv/module.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::spirv {
namespace {

// Up to this many elements stand in the module itself: from there on a tensor of the file is the smaller form.
constexpr std::int64_t most_inline_elements = 4;

class Writer {
 public:
  Writer(const Graph& graph, const WriteOptions& options)
      : graph_(graph), domains_(options.custom_domains), ids_(graph.values.size(), 0) {
    module_.use_replicated_composites(options.replicated_composites);
  }

  Result<GraphModule> write(const std::string& entry_point, const std::vector<Word>& bindings) {
    choose_labels();
    for (const Value& value : graph_.values) TOSAIC_CHECK(check(value));
    const Id graph_id = module_.fresh();
    std::vector<Id> types, interface;
    auto expose = [&](ValueId v) {
      types.push_back(type_of(v));
      const auto place = static_cast<Word>(interface.size());
      interface.push_back(module_.variable(types.back(), bindings.empty() ? place : bindings[place]));
      module_.name(interface.back(), graph_[v].name);
    };
    for (ValueId v : graph_.inputs) expose(v);
    for (ValueId v : graph_.outputs)
      if (std::find(made_.outputs.begin(), made_.outputs.end(), v) == made_.outputs.end()) {
        made_.outputs.push_back(v);
        expose(v);
      }
    module_.entry_point(graph_id, entry_point, interface);
    const auto inputs = static_cast<std::uint32_t>(graph_.inputs.size());
    const std::vector<Id> outputs(types.begin() + inputs, types.end());
    const Id graph_type = module_.graph_type(inputs, types);
    module_.body(Opcode::graph, {graph_type, graph_id});
    for (std::uint32_t i = 0; i < inputs; ++i) {
      const Id id = result(graph_.inputs[i]);
      module_.body(Opcode::graph_input, {types[i], id, module_.integer(i)});
    }
    for (const Node& node : graph_.nodes)
      if (Status status = write(node); !status.ok()) return located(std::move(status.error()), node.loc);
    std::set<Id> set;
    for (std::uint32_t i = 0; i < made_.outputs.size(); ++i) {
      Id id = read(made_.outputs[i]);
      if (!set.insert(id).second) id = copied(made_.outputs[i], id);  // drivers set one output from one value
      module_.body(Opcode::graph_set_output, {id, module_.integer(i)});
    }
    module_.body(Opcode::graph_end, {});
    made_.words = module_.words();
    return std::move(made_);
  }

 private:
  Status check(const Value& value) const {
    if (!value.type.shape.is_static())
      return error("spirv.dynamic", fmt::format("tensor '{}' has shape [{}], but a graph for Vulkan has fixed shapes",
                                                value.name, to_string(value.type.shape)));
    if (value.type.dtype == DType::f64 || value.type.dtype == DType::i64)
      return error("spirv.type", fmt::format("tensor '{}' is {}, which VGF files do not have", value.name,
                                             name_of(value.type.dtype)));
    for (std::int64_t d : value.type.shape.sizes())
      if (d > 0xffffffffll)
        return error("spirv.type", fmt::format("tensor '{}' has a dim of {}, above 32 bits", value.name, d));
    return {};
  }

  Id type_of(ValueId v) { return module_.tensor(graph_[v].type.dtype, graph_[v].type.shape); }

  // A new id for a value that an instruction computes.
  Id result(ValueId v) {
    ids_[v] = module_.fresh();
    if (const auto label = labels_.find(v); label != labels_.end()) module_.name(ids_[v], label->second);
    return ids_[v];
  }

  // What a tool shows of an instruction: the user's module that computes it, or without one the name of its result,
  // unless the compiler made that up of an operator and a number. Of the instructions that make up one layer the last
  // has the layer's name. Inputs and outputs have theirs on the variables.
  void choose_labels() {
    std::map<std::string, ValueId> last;
    for (const Node& node : graph_.nodes)
      for (ValueId v : node.outputs)
        if (v != no_value)
          if (std::string text = label(v, node.loc); !text.empty()) last[std::move(text)] = v;
    for (auto& [text, v] : last) labels_[v] = text;
  }
  std::string label(ValueId v, const LocRef& loc) const {
    if (loc && !loc->module_path.empty()) return loc->module_path;
    std::string_view name = graph_[v].name;
    bool made_up = false;
    for (std::size_t dot; (dot = name.rfind('.')) != std::string_view::npos && is_number(name.substr(dot + 1));) {
      name = name.substr(0, dot);
      made_up = true;
    }
    return made_up && tosa::find(name) ? "" : std::string(name);
  }
  // "12", "t12": what later stages put behind a name to make another.
  static bool is_number(std::string_view text) {
    if (text.size() > 1 && (text[0] < '0' || text[0] > '9')) text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  Id copied(ValueId v, Id from) {
    const TensorType& type = graph_[v].type;
    const Id shape = type.rank() == 0 ? module_.list({1}) : module_.list(type.shape.sizes());
    const Id id = module_.fresh();
    module_.body(Opcode::ext_inst,
                 {type_of(v), id, module_.tosa_instructions(), tosa::find("reshape")->spirv_number, from, shape});
    return id;
  }

  // Data that is the graph's own output must not be null in the module: the emulation layer never writes those.
  bool is_inline(ValueId v) const {
    const TensorType& type = graph_[v].type;
    if (type.dtype == DType::shape) return true;
    if (is_output(v)) return false;
    return type.shape.elements() <= most_inline_elements || module_.is_uniform(type.dtype, graph_[v].constant);
  }

  Id read(ValueId v) {
    if (ids_[v] || !graph_[v].is_constant()) return ids_[v];
    const Value& value = graph_[v];
    return ids_[v] = is_inline(v) ? constant(value) : outside(v);
  }
  Id outside(ValueId v) {
    const Id id = module_.graph_constant(type_of(v), static_cast<std::uint32_t>(made_.constants.size()));
    made_.constants.push_back(v);
    return id;
  }
  bool is_output(ValueId v) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), v) != graph_.outputs.end();
  }

  Id constant(const Value& value) {
    // The shape of a rank-0 tensor has no elements; in SPIR-V that tensor is [1].
    if (value.type.shape.elements() == 0 && value.type.dtype == DType::shape) return module_.list({1});
    return module_.tensor_constant(value.type.dtype, value.type.shape, value.constant);
  }

  Status write(const Node& node) {
    if (node.op == tosa::op::identity) {
      const ValueId from = node.inputs[0], to = node.outputs[0];
      ids_[to] = graph_[from].is_constant() && is_output(to) ? outside(from) : read(from);
      return {};
    }
    if (node.op == tosa::op::custom) return write_call(node);
    const tosa::Op* op = tosa::find(node.op);
    if (!op || op->spirv_number == 0xffff)
      return error("spirv.no-instruction", fmt::format("{} has no instruction in {}", node.op, tosa_set))
          .hint("control flow and variables cannot be part of a graph for Vulkan");
    std::vector<Word> operands{0, 0, module_.tosa_instructions(), op->spirv_number};
    for (const tosa::AttrDef& def : op->attrs) operands.push_back(attribute(node, def));
    write_results(node, std::move(operands));
    return {};
  }

  // CUSTOM: a call of its domain's number. The import that the call names bears the domain's name.
  Status write_call(const Node& node) {
    const auto& domain = node.attrs.get<std::string>("domain_name");
    const auto& name = node.attrs.get<std::string>("operator_name");
    const auto number = domains_.find(domain);
    if (number == domains_.end())
      return error("spirv.no-instruction", fmt::format("no instruction is known for the custom operator '{}' of domain "
                                                       "'{}'",
                                                       name, domain))
          .hint("give the domain a number of " + std::string(call_set) +
                ": --vgf-flags=--custom-op-domain-to-opcode=DOMAIN:NUMBER");
    auto set = call_sets_.find(domain);
    if (set == call_sets_.end()) {
      set = call_sets_.emplace(domain, module_.instructions(call_set)).first;
      module_.name(set->second, domain);
    }
    write_results(node, {0, 0, set->second, call_instruction, number->second, module_.text(name),
                         module_.text(node.attrs.get<std::string>("implementation_attrs"))});
    return {};
  }

  // The instruction that begins with these operands and takes the node's tensors; several results come out of a
  // structure.
  void write_results(const Node& node, std::vector<Word> operands) {
    for (ValueId v : node.inputs) operands.push_back(read(v));
    if (node.outputs.size() == 1) {
      operands[0] = type_of(node.outputs[0]);
      operands[1] = result(node.outputs[0]);
      return module_.body(Opcode::ext_inst, operands);
    }
    std::vector<Id> members;
    for (ValueId v : node.outputs) members.push_back(type_of(v));
    operands[0] = module_.structure(members);
    operands[1] = module_.fresh();
    module_.body(Opcode::ext_inst, operands);
    for (std::size_t i = 0; i < members.size(); ++i)
      module_.body(Opcode::composite_extract, {members[i], result(node.outputs[i]), operands[1], static_cast<Word>(i)});
  }

  Id attribute(const Node& node, const tosa::AttrDef& def) {
    const Attrs& attrs = node.attrs;
    switch (def.kind) {
      case tosa::AttrKind::i32: return module_.integer(static_cast<std::uint32_t>(attrs.get<std::int64_t>(def.name)));
      case tosa::AttrKind::boolean: return module_.boolean(attrs.get<bool>(def.name));
      case tosa::AttrKind::i32_list: return module_.list(attrs.get<std::vector<std::int64_t>>(def.name));
      case tosa::AttrKind::nan_mode:
      case tosa::AttrKind::rounding_mode:
      case tosa::AttrKind::resize_mode: {
        const auto names = names_of(def.kind);
        const auto found = std::find(names.begin(), names.end(), attrs.get<std::string>(def.name));
        return module_.integer(static_cast<std::uint32_t>(found - names.begin()) + 1);
      }
      case tosa::AttrKind::dtype: {
        const auto found = std::find(accumulators.begin(), accumulators.end(), attrs.get<DType>(def.name));
        return module_.integer(static_cast<std::uint32_t>(found - accumulators.begin()) + 1);
      }
      case tosa::AttrKind::number: return number(*attrs.find(def.name), graph_[node.inputs[0]].type.dtype);
      case tosa::AttrKind::string: break;  // only operators without an instruction have one
    }
    return 0;
  }

  Id number(const Attr& value, DType type) {
    const bool integer = std::holds_alternative<std::int64_t>(value);
    const Bytes element = integer ? constant_bytes(type, std::vector{std::get<std::int64_t>(value)})
                                  : constant_bytes(type, std::vector{std::get<double>(value)});
    return module_.scalar(type, element.data());
  }

  const Graph& graph_;
  const std::map<std::string, Word>& domains_;
  std::map<std::string, Id> call_sets_;  // by domain
  Module module_;
  std::vector<Id> ids_;  // by value; 0: none yet
  std::map<ValueId, std::string> labels_;
  GraphModule made_;
};

}  // namespace

Result<GraphModule> write_graph(const Graph& graph, const std::string& entry_point, const WriteOptions& options,
                                const std::vector<Word>& bindings) {
  return Writer(graph, options).write(entry_point, bindings);
}

}  // namespace tosaic::spirv
