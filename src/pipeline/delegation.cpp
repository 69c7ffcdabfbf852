// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delegation.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "kernels/out_variant.h"
#include "ops/op.h"

namespace tosaic {

void warn_of_kernels(const Partition& partition, const Sink& sink) {
  std::set<std::string> said;
  for (const Node& node : partition.outer.nodes) {
    const bool known = node.op == "delegate" || node.op.starts_with("aten.") || find_aten(node.op).op;
    const auto kernel = known ? std::nullopt : kernels::out_variant_by_name(node.op);
    if (!sink || !kernel || !said.insert(node.op).second) continue;
    const std::string name = fmt::format("{}.{}", kernel->name, kernel->overload);
    sink(located(
        warning("pack.unknown-kernel",
                fmt::format("operator {} is not known to tosaic: the program calls the kernel {}", node.op, name))
            .note("arguments that the exported program leaves at their defaults are not passed")
            .hint("run the program with ExecuTorch, linked with that kernel; `tosaic run` does not have it"),
        node.loc));
  }
}

Status fully_delegated(const Partition& partition) {
  for (std::size_t n = 0; n < partition.placements.size(); ++n) {
    const Placement& p = partition.placements[n];
    if (p.region >= 0) continue;
    Diagnostic why = p.reason;
    if (why.code == "target.conversion") continue;
    why.severity = Severity::error;
    why.notes.emplace_back("--require-full-delegation allows no node outside the delegate");
    return why;
  }
  return {};
}

Diagnostic not_checked(const Diagnostic& why) {
  return warning("self-check.undecided",
                 "the simulator cannot tell what a delegate computes, so it is written unchecked")
      .note(fmt::format("{}: {}", why.code, why.message))
      .hint("compare it on the device, or with another Ethos-U target");
}

bool of_the_graph(const Diagnostic& why) {
  return why.code == "vela.failed" || why.code == "vela.crashed" || why.code == "vela.interface";
}

Diagnostic stays_wrong(Diagnostic why, const Node& node, const CompileOptions& options) {
  const char* option = options.single_delegate ? "--single-delegate" : "--require-full-delegation";
  why.place = {};
  why.context.clear();
  why.notes.push_back(fmt::format("{} is what {} gets wrong; {} allows no node outside the delegate", node.op,
                                  options.target.name, option));
  why.help = fmt::format(
      "without {} it runs on the CPU, or write it in another form there; --emit vela=DIR keeps what shows it", option);
  return located(std::move(why), node.loc);
}

Graph least_graph() {
  Graph graph;
  const TensorType type{DType::i8, Shape{1, 1, 1, 16}, {}};
  graph.inputs = {graph.add_value("x", type)};
  graph.outputs = {graph.add_value("y", type)};
  graph.nodes.push_back({"tosa.identity", graph.inputs, {}, graph.outputs, nullptr, {}});
  return graph;
}

Status delegated_something(const CompileOptions& options, const Partition& partition, bool samples_given,
                           const Sink& sink) {
  const auto& placements = partition.placements;
  if (!partition.regions.empty() || placements.empty() || !options.pack) return {};
  const auto why = std::find_if(placements.begin(), placements.end(),
                                [](const Placement& p) { return p.reason.code != "target.conversion"; });
  if (why == placements.end()) return {};
  Diagnostic nothing =
      warning("target.nothing-delegated",
              fmt::format("no node of the program runs on {}: all stay on the CPU", options.target.name));
  nothing.notes.push_back(fmt::format("the first: {}", why->reason.message));
  nothing.notes.insert(nothing.notes.end(), why->reason.notes.begin(), why->reason.notes.end());
  nothing.help = "`tosaic explain` says of each node why";
  nothing.place = why->reason.place;
  nothing.context = why->reason.context;
  if (samples_given) {
    nothing.severity = Severity::error;
    return nothing;
  }
  if (sink) sink(std::move(nothing));
  return {};
}

Node* delegate_of(Graph& outer, std::int64_t region) {
  for (Node& node : outer.nodes) {
    if (node.op == "delegate" && node.attrs.get<std::int64_t>("region") == region) return &node;
    for (Graph& body : node.regions)
      if (Node* found = delegate_of(body, region)) return found;
  }
  return nullptr;
}

void drop_unread_inputs(Graph& region, Node& delegate) {
  std::vector<char> read(region.values.size(), 0);
  for (const Node& node : region.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value) read[v] = 1;
  for (ValueId v : region.outputs) read[v] = 1;
  if (std::ranges::none_of(region.inputs, [&](ValueId v) { return read[v]; })) return;
  for (std::size_t i = region.inputs.size(); i-- > 0;) {
    if (read[region.inputs[i]]) continue;
    region.inputs.erase(region.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    delegate.inputs.erase(delegate.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  drop_dead(region);
}

}  // namespace tosaic
