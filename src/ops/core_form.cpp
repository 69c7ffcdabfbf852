// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"

#include <fmt/format.h>

namespace tosaic {

const Attr& CoreCall::attr(std::string_view name) const {
  static const Attr none;
  if (const Attr* a = node.attrs.find(name)) return *a;
  const SchemaArgument* argument = schema.argument(name);
  return argument ? argument->default_value : none;
}

bool CoreCall::has(std::string_view name) const { return !std::holds_alternative<std::monostate>(attr(name)); }

std::int64_t CoreCall::integer(std::string_view name) const {
  const auto* i = std::get_if<std::int64_t>(&attr(name));
  return i ? *i : 0;
}

std::vector<std::int64_t> CoreCall::ints(std::string_view name, std::size_t count) const {
  std::vector<std::int64_t> list;
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&attr(name))) list = *l;
  if (const auto* i = std::get_if<std::int64_t>(&attr(name))) list = {*i};
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

Node CoreCall::call(Operator op, std::vector<ValueId> inputs, Attrs attrs) const {
  return {op, std::move(inputs), std::move(attrs), node.outputs, node.loc, {}};
}

Node CoreCall::renamed(std::string_view name) const {
  Node made = node;
  made.op = Operator(fmt::format("{}.{}.{}", schema.ns, name, schema.overload));
  return made;
}

void CoreCall::add_result(Node& made, DType dtype, Shape shape) const {
  std::string name = fmt::format("{}.result{}", graph[node.outputs[0]].name, made.outputs.size());
  made.outputs.push_back(graph.add_value(std::move(name), {dtype, std::move(shape), {}}));
}

}  // namespace tosaic
