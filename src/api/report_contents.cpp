// SPDX-License-Identifier: Apache-2.0
#include "api/report_contents.h"

#include <fmt/format.h>
#include <filesystem>

#include "api/program.h"
#include "api/report_payload.h"
#include "formats/bpte/bpte_file.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/sha256.h"
#include "formats/vgf/vgf_graph.h"
#include "report/graph.h"
#include "report/instructions.h"

namespace tosaic {
namespace {

using reporting::Contents;
using reporting::ShownGraph;

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void add(ShownPayload payload, Contents& to) {
  if (payload.memory) {
    payload.memory->graph = to.graphs.size();
    to.memory.push_back(*std::move(payload.memory));
  }
  for (ShownGraph& graph : payload.graphs) to.graphs.push_back(std::move(graph));
}

void add_instructions(const pte::Plan& plan, Contents& to) {
  ShownGraph graph = reporting::shown(plan);
  to.memory.push_back(reporting::planned_memory(plan, graph, to.graphs.size()));
  to.graphs.push_back(std::move(graph));
}

// What is left of a method behind the first when its delegates are taken out.
ShownGraph outer_graph(const FurtherMethod& method, const std::string& name) {
  ShownGraph graph = reporting::shown(method.outer, name, ShownGraph::Kind::program)[0];
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* region = method.outer.nodes[n].attrs.find("region");
    const auto* number = region ? std::get_if<std::int64_t>(region) : nullptr;
    graph.nodes[n].delegate = number ? static_cast<int>(*number) : -1;
  }
  return graph;
}

Status add_program(const pte::Program& program, const std::string& path, const std::map<std::string, Bytes>& data,
                   Contents& to) {
  for (const pte::Plan& plan : program.plans) {
    add_instructions(plan, to);
    for (std::size_t i = 0; i < plan.delegates.size(); ++i) {
      const pte::Delegate& delegate = plan.delegates[i];
      const Bytes bytes = delegate.payload.joined();
      const ProgramDelegate one{plan, i, data, fmt::format("{} (delegate {})", path, i)};
      const std::string name =
          program.plans.size() == 1 ? fmt::format("delegate {}", i) : fmt::format("delegate {} of {}", i, plan.name);
      const PayloadForm* form = form_of(one);
      Result<ShownPayload> shown = form ? form->show(one, bytes, name) : Result<ShownPayload>(ShownPayload{});
      if (!shown.ok()) {  // the program around it is worth seeing all the same
        Diagnostic why = std::move(shown.error());
        why.severity = Severity::warning;
        to.messages.push_back(std::move(why).at({path, 0, ""}));
      }
      ShownPayload payload = shown.ok() ? *std::move(shown) : ShownPayload{};
      if (payload.graphs.empty()) payload.graphs.push_back({.name = name, .kind = ShownGraph::Kind::delegate});
      for (ShownGraph& graph : payload.graphs) {
        graph.id = delegate.id;
        graph.delegate = static_cast<int>(i);
        graph.bytes = bytes.size();
      }
      add(std::move(payload), to);
    }
  }
  return {};
}

}  // namespace

Contents report_contents(const Artifact::Impl& artifact) {
  const Compiled& compiled = artifact.compiled;
  Contents to;
  to.name = file_name(artifact.program.name());
  to.format = "artifact";
  to.target = artifact.summary.target;
  to.tosa_spec = artifact.summary.tosa_spec;
  to.bytes = compiled.program.size();
  const Bytes& model = artifact.program.impl().file;
  to.sha256 = model.empty() ? sha256(compiled.program.joined().text()) : sha256(model.text());
  to.messages = artifact.summary.messages;
  to.manifest = manifest(artifact, false);
  const auto& methods = artifact.program.methods();
  const auto method_name = [&](std::size_t i) {
    return i < methods.size() ? methods[i].name : fmt::format("method {}", i);
  };
  to.graphs = reporting::shown(compiled.quantised, method_name(0), ShownGraph::Kind::program);
  for (std::size_t n = 0; n < compiled.partition.placements.size(); ++n) {
    const Placement& placement = compiled.partition.placements[n];
    to.graphs[0].nodes[n].delegate = placement.region;
    if (placement.region < 0) to.graphs[0].nodes[n].reason = placement.reason;
  }
  for (std::size_t i = 0; i < compiled.further.size(); ++i)
    to.graphs.push_back(outer_graph(compiled.further[i], method_name(i + 1)));
  for (std::size_t i = 0; i < compiled.lowered.size(); ++i) {
    ShownPayload payload = shown_tosa(compiled.lowered[i], fmt::format("delegate {}", i));
    for (ShownGraph& graph : payload.graphs) {
      graph.id = compiled.target.delegate_id;
      graph.delegate = static_cast<int>(i);
      if (i < compiled.emitted.size()) graph.bytes = compiled.emitted[i].payload.size();
    }
    add(std::move(payload), to);
  }
  if (!compiled.program.empty())
    for (const pte::Plan& plan : compiled.packed.plans) add_instructions(plan, to);
  return to;
}

Result<Contents> report_contents(const Bytes& file, const std::string& path, const std::map<std::string, Bytes>& data) {
  Contents to;
  to.name = file_name(path);
  to.bytes = file.size();
  to.sha256 = sha256(file.text());
  const std::string_view head = file.text().substr(0, 16);
  const bool bundle = bpte::is_bpte(file);
  if (bundle || (head.size() >= 8 && head.substr(4, 2) == "ET")) {
    to.format = bundle ? "bpte" : "pte";
    Bytes whole = file;
    if (bundle) {
      TOSAIC_TRY(const bpte::File read, bpte::read(file, path));
      whole = read.program;
    }
    TOSAIC_TRY(const pte::Program program, pte::read(whole, path));
    auto all = data;
    for (const pte::NamedData& named : program.named_data) all.insert_or_assign(named.key, named.data.joined());
    TOSAIC_CHECK(add_program(program, path, all, to));
    return to;
  }
  const bool tosa = tosa_file::is_tosa(file);
  if (!tosa && !vgf::is_vgf(file))
    return error("report.unknown-format", path + " is none of .pte, .bpte, .tosa, .vgf and .pt2, nor a report's JSON")
        .at({path, 0, ""});
  to.format = tosa ? "tosa" : "vgf";
  TOSAIC_TRY(const Graph graph, tosa ? tosa_file::read(file, path) : vgf::read_graph(file, path));
  ShownPayload payload = shown_tosa(graph, to.name);
  payload.graphs[0].id = tosa ? "TOSA" : "VGF";
  payload.graphs[0].bytes = file.size();
  add(std::move(payload), to);
  return to;
}

}  // namespace tosaic
