// SPDX-License-Identifier: Apache-2.0
#include "c_source/print.h"

#include <algorithm>
#include <map>
#include <set>

#include "c_source/elements.h"
#include "c_source/step.h"
#include "c_source/step_functions.h"
#include "c_source/types.h"
#include "ir/lines_about.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"

namespace tosaic::c_source {
std::span<const Take> rows() {
  // In order of preference: what has a kernel, what takes elementwise nodes along, these themselves.
  static constexpr Take all[] = {take_view,      take_scaled_product, take_product, take_pool,
                                 take_reduction, take_resize,         take_fourier, take_movement,
                                 take_indexed,   take_control_flow,   take_call,    take_elements};
  return all;
}

std::int64_t Planning::scalar(ValueId v) const {
  return element_as_integer(graph[v].type.dtype, graph[v].constant.data(), 0);
}

ValueId Planning::add_constant(TensorType of, Bytes data) {
  made_constants.emplace_back(std::move(of), std::move(data));
  return static_cast<ValueId>(graph.values.size() + made_constants.size() - 1);
}

void Planning::add(Step step) {
  for (std::uint32_t n : step.nodes) taken[n] = true;
  std::vector<ValueId> reads;
  for (ValueId v : step.reads)
    if (std::ranges::find(reads, v) == reads.end()) reads.push_back(v);
  step.reads = std::move(reads);
  steps.push_back(std::move(step));
}

namespace {

constexpr std::uint64_t alignment = 16;  // of a vector of Helium

class Printer {
 public:
  Printer(const Graph& graph, const std::string& name, Linkage linkage = Linkage::internal,
          Kernels kernels = Kernels::tosaic)
      : graph_(graph), planning_(graph_, name, kernels), linkage_(linkage) {}

  Result<Printed> print() {
    TOSAIC_CHECK(plan_steps());
    place();
    Printed made;
    for (Printed& body : planning_.bodies) {
      made.code += body.code;
      made.arena_bytes += body.arena_bytes;
      std::ranges::move(body.constants, std::back_inserter(made.constants));
    }
    constants_ = std::move(made.constants);
    std::string calls;
    StepFunctions functions(planning_);
    for (std::size_t i = 0; i < planning_.steps.size(); ++i) {
      const Step& step = planning_.steps[i];
      if (!step.call) continue;
      PrintedStep about{{}, operators_of(step), place_of(step)};
      about.function = functions.of(step, about.operators);
      if (!about.place.empty()) calls += fmt::format("  /* {} */\n", comment(about.place));
      calls += fmt::format("  {}({});\n", about.function, arguments(step, memory_.scratch_offset[i]));
      made.steps.push_back(std::move(about));
    }
    made.code += functions.code();
    for (const plan::Memory::Copy& copy : memory_.copies)
      calls += fmt::format("  memcpy(out{}, {}, {});\n", copy.output, address(copy.from),
                           graph_[copy.from].type.storage_bytes());
    made.arena_bytes += memory_.arena_bytes + planning_.loop_bytes;
    for (ValueId v : memory_.at_peak)
      made.at_peak.push_back({graph_[v].name, graph_[v].type, layer_of(planning_.producer[v])});
    made.function = planning_.name + "_steps";
    made.declaration = declaration();
    if (memory_.arena_bytes > 0)
      made.code +=
          fmt::format("static unsigned char {}_arena[{}] TOSAIC_ARENA;\n", planning_.name, memory_.arena_bytes);
    made.code += fmt::format("{} {{\n{}}}\n\n", made.declaration, calls);
    made.constants = std::move(constants_);
    return made;
  }

  Status plan_steps() {
    const auto count = static_cast<std::uint32_t>(graph_.nodes.size());
    for (const Take take : rows())
      for (std::uint32_t i = 0; i < count; ++i) {
        // Elementwise nodes are taken from the last on, with all that serves them alone.
        const std::uint32_t n = take == take_elements ? count - 1 - i : i;
        if (!planning_.taken[n]) take(planning_, n);
      }
    for (std::uint32_t n = 0; n < count; ++n)
      if (!planning_.taken[n]) return refusal(n);
    std::ranges::sort(planning_.steps, {}, [](const Step& step) { return step.nodes.back(); });
    return {};
  }

 private:
  void place() {
    std::vector<plan::StepMemory> needs;
    std::vector<std::vector<ValueId>> reads;  // without made constants, which the graph does not know
    for (const Step& step : planning_.steps) {
      reads.emplace_back();
      std::ranges::copy_if(step.reads, std::back_inserter(reads.back()),
                           [&](ValueId v) { return !planning_.is_made(v); });
      needs.push_back({reads.back(), step.writes, step.scratch_bytes});
    }
    memory_ = plan::place_values(graph_, planning_.aliases, needs, alignment);
  }

  Diagnostic refusal(std::uint32_t n) const {
    const Node& node = graph_.nodes[n];
    std::string types;
    for (ValueId v : node.inputs)
      if (v != no_value) types += fmt::format("{}{}", types.empty() ? "" : ", ", to_string(graph_[v].type));
    return located(error("c.unsupported", fmt::format("there is no C for {} of ({})", node.op, types)), node.loc);
  }

  std::string operators_of(const Step& step) const {
    std::string text;
    for (std::uint32_t n : step.nodes) {
      std::string name(graph_.nodes[n].op.base());
      std::ranges::transform(name, name.begin(), [](char c) { return 'a' <= c && c <= 'z' ? char(c - 32) : c; });
      if (!text.empty()) text += ", ";
      text += name;
    }
    return text;
  }
  std::string place_of(const Step& step) const { return layer_text(graph_.nodes[step.nodes.back()].loc); }

  std::string layer_of(std::int32_t node) const {
    return node < 0 ? "" : layer_text(graph_.nodes[static_cast<std::size_t>(node)].loc);
  }
  static std::string comment(std::string text) {
    for (std::size_t at; (at = text.find("*/")) != std::string::npos;) text.replace(at, 2, "* /");
    for (char& c : text)
      if (c == '\n' || c == '\r' || c == '\\') c = ' ';
    return text;
  }

  std::string arguments(const Step& step, std::uint64_t scratch_offset) {
    std::string list;
    const auto add = [&](ValueId v, std::string_view qualifier) {
      list += fmt::format("{}({}{} *){}", list.empty() ? "" : ", ", qualifier, c_type(planning_.operand_type(v).dtype),
                          address(v));
    };
    for (ValueId v : step.reads) add(v, "const ");
    for (ValueId v : step.writes) add(v, "");
    if (step.scratch_bytes > 0) list += fmt::format(", {}_arena + {}", planning_.name, scratch_offset);
    return list;
  }

  std::string address(ValueId v) {
    if (planning_.is_made(v)) return constant(planning_.made(v).first, planning_.made(v).second);
    const plan::Location& at = memory_.location[v];
    switch (at.home) {
      case plan::Home::constant: {
        const std::string name = constant(graph_[at.root].type, graph_[at.root].constant);
        return at.offset == 0 ? name : fmt::format("((const char *){} + {})", name, at.offset);
      }
      case plan::Home::input: return pointer(fmt::format("in{}", at.slot), "const char", at.offset);
      case plan::Home::output: return pointer(fmt::format("out{}", at.slot), "char", at.offset);
      default: return fmt::format("({}_arena + {})", planning_.name, at.arena_offset);
    }
  }
  static std::string pointer(const std::string& name, std::string_view type, std::size_t offset) {
    return offset == 0 ? name : fmt::format("(({} *){} + {})", type, name, offset);
  }

  std::string constant(const TensorType& type, const Bytes& data) {
    const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
    const auto [known, added] = known_.try_emplace({type.dtype, bytes}, "");
    if (added) {
      known->second = fmt::format("{}_constant{}", planning_.name, known_.size() - 1);
      constants_.push_back({known->second, type, data});
    }
    return known->second;
  }

  std::string declaration() const {
    std::string parameters;
    const auto add = [&](ValueId v, std::string_view qualifier, std::string_view name, std::size_t i) {
      parameters +=
          fmt::format("{}{}{} *{}{}", parameters.empty() ? "" : ", ", qualifier, c_type(graph_[v].type.dtype), name, i);
    };
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) add(graph_.inputs[i], "const ", "in", i);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) add(graph_.outputs[i], "", "out", i);
    return fmt::format("{}void {}_steps({})", linkage_ == Linkage::internal ? "static " : "", planning_.name,
                       parameters.empty() ? "void" : parameters);
  }

  const Graph& graph_;
  Planning planning_;
  Linkage linkage_;
  plan::Memory memory_;
  std::vector<ConstantArray> constants_;
  std::map<std::pair<DType, std::string_view>, std::string> known_;
};

}  // namespace

Result<Printed> print_function(const Graph& graph, const std::string& name, Linkage linkage, Kernels kernels) {
  for (ValueId v : graph.inputs)
    if (c_type(graph[v].type.dtype).empty())
      return error("c.unsupported", fmt::format("there is no C for inputs of {}", name_of(graph[v].type.dtype)));
  const std::optional<Graph> in_tosa = extension::in_tosa_1_0(graph);
  return Printer(in_tosa ? *in_tosa : graph, name, linkage, kernels).print();
}

bool has_c(const tosa::View& view) {
  // The node alone: what stands beside it decides only with what it is computed together.
  Graph alone;
  std::map<ValueId, ValueId> of;
  Node node = view.node();
  for (ValueId& v : node.inputs) {
    if (v == no_value) continue;
    const auto [known, added] = of.try_emplace(v, no_value);
    if (added) {
      const Value& value = view.graph()[v];
      known->second = alone.add_value(fmt::format("v{}", v), value.type, value.constant);
      if (!value.is_constant()) alone.inputs.push_back(known->second);
    }
    v = known->second;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    node.outputs[i] = alone.add_value(fmt::format("out{}", i), view.out(i));
    alone.outputs.push_back(node.outputs[i]);
  }
  alone.nodes.push_back(std::move(node));
  const Graph* const asked = &alone;
  return Printer(*asked, "asked").plan_steps().ok();
}

std::string print_array(const ConstantArray& array, Linkage linkage) {
  const auto count = static_cast<std::size_t>(array.type.shape.elements());
  std::string text = fmt::format("{}const {} {}[{}] TOSAIC_WEIGHTS = {{", linkage == Linkage::internal ? "static " : "",
                                 c_type(array.type.dtype), array.name, count);
  text.reserve(text.size() + count * (is_float(array.type.dtype) ? 14 : 5));
  std::size_t line = 0;  // where it begins
  const auto add = [&](std::string_view element) {
    if (line == 0 || text.size() - line + element.size() >= 118) {
      text += "\n  ";
      line = text.size() - 2;
    }
    text += element;
    text += ',';
  };
  const auto narrow = [&]<class T>(const T* elements) {  // most weights: nothing special among the numbers
    for (std::size_t i = 0; i < count; ++i) {
      const fmt::format_int digits(static_cast<int>(elements[i]));
      add({digits.data(), digits.size()});
    }
  };
  if (storage_size(array.type.dtype) == 1 && array.type.dtype != DType::u8 && array.type.dtype != DType::boolean)
    narrow(reinterpret_cast<const std::int8_t*>(array.data.data()));
  else
    for (std::size_t i = 0; i < count; ++i) add(c_element(array.type.dtype, array.data.data(), i));
  return text + "\n};\n";
}

}  // namespace tosaic::c_source
