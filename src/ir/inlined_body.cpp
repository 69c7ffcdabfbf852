// SPDX-License-Identifier: Apache-2.0
#include "ir/inlined_body.h"

namespace tosaic {
namespace {

LocRef inside(const LocRef& body, const LocRef& holder) {
  if (!body || !holder) return body ? body : holder;
  auto loc = std::make_shared<Loc>(*body);
  loc->name = holder->name;
  loc->also = holder->also;
  return loc;
}

}  // namespace

Attr renamed(Attr attr, const std::map<std::string, std::string>& names) {
  const auto rename = [&](SymbolicArgument& a) {
    if (const auto found = names.find(a.name); found != names.end()) a.name = found->second;
  };
  if (auto* one = std::get_if<SymbolicArgument>(&attr)) rename(*one);
  if (auto* list = std::get_if<std::vector<SymbolicArgument>>(&attr))
    for (SymbolicArgument& a : *list) rename(a);
  return attr;
}

InlinedBody inlined_body(Graph& into, const Graph& body, std::span<const ValueId> given, const LocRef& holder,
                         const FreshName& fresh) {
  std::vector<ValueId> of(body.values.size(), no_value);
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < given.size(); ++i) of[body.inputs[i]] = given[i];
  for (ValueId v = 0; v < body.values.size(); ++v) {
    if (of[v] == no_value) {
      of[v] = into.add_value(fresh(body[v].name), body[v].type);
      into[of[v]].constant = body[v].constant;
      into[of[v]].size = body[v].size;
    }
    names.emplace(body[v].name, into[of[v]].name);
  }
  InlinedBody made;
  for (const Node& from : body.nodes) {
    Node& node = made.nodes.emplace_back(from);
    for (auto* list : {&node.inputs, &node.outputs})
      for (ValueId& v : *list)
        if (v != no_value) v = of[v];
    for (const auto& [name, attr] : from.attrs) node.attrs.set(name, renamed(attr, names));
    node.loc = inside(from.loc, holder);
  }
  for (ValueId v : body.outputs) made.results.push_back(of[v]);
  return made;
}

}  // namespace tosaic
