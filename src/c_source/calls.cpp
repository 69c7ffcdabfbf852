// SPDX-License-Identifier: Apache-2.0
// Steps that call functions: the bodies of control flow, and what another device does.
#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"

#include <fmt/ranges.h>

namespace tosaic::c_source {

bool take_control_flow(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const bool loop = node.op == tosa::op::while_loop;
  if (!loop && node.op != tosa::op::cond_if) return false;
  std::vector<std::string> functions;
  for (const Graph& body : node.regions) {
    functions.push_back(fmt::format("{}_body{}", planning.name, planning.bodies.size()));
    auto printed = print_function(body, functions.back(), Linkage::internal, planning.kernels);
    if (!printed.ok()) return false;
    planning.bodies.push_back(std::move(*printed));
  }
  const auto list = [](std::span<const ValueId> values, std::string_view prefix) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i)
      names.push_back(prefix.empty() ? name_of_value(values[i]) : fmt::format("{}{}", prefix, i));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  Writer w;
  const std::span<const ValueId> in(node.inputs), out(node.outputs);
  if (!loop) {
    w.line("if ({}[0])", name_of_value(node.inputs[0]));
    for (std::size_t i = 0; i < 2; ++i) {
      w.line("  {}_steps({}{}{});", functions[i], list(in.subspan(1), ""), in.size() > 1 ? ", " : "", list(out, ""));
      if (i == 0) w.line("else");
    }
  } else {
    // The results hold what a turn begins with; what it makes is copied there.
    const auto copy = [&](std::size_t i, const std::string& from) {
      w.line("memcpy({}, {}, {});", name_of_value(out[i]), from, planning.type(out[i]).storage_bytes());
    };
    for (std::size_t i = 0; i < in.size(); ++i) copy(i, name_of_value(in[i]));
    for (std::size_t i = 0; i < in.size(); ++i) {
      const TensorType& type = planning.type(out[i]);
      w.line("static {} next{}[{}] TOSAIC_ARENA;", c_type(type.dtype), i, type.shape.elements());
      planning.loop_bytes += type.storage_bytes();
    }
    w.open("for (;;)");
    w.line("uint8_t goes_on[1];");
    w.line("{}_steps({}, goes_on);", functions[0], list(out, ""));
    w.line("if (!goes_on[0]) break;");
    w.line("{}_steps({}, {});", functions[1], list(out, ""), list(in, "next"));
    for (std::size_t i = 0; i < in.size(); ++i) copy(i, fmt::format("next{}", i));
    w.close();
  }
  planning.add({{n}, node.inputs, node.outputs, w.take()});
  return true;
}

// What another device does: a function that somebody else defines.
bool take_call(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::custom || node.attrs.get_or<std::string>("domain_name", "") != "tosaic") return false;
  std::string list;
  for (const auto* values : {&node.inputs, &node.outputs})
    for (ValueId v : *values) list += (list.empty() ? "" : ", ") + name_of_value(v);
  planning.add(
      {{n}, node.inputs, node.outputs, fmt::format("  {}({});\n", node.attrs.get<std::string>("operator_name"), list)});
  return true;
}

}  // namespace tosaic::c_source
