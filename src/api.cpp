// SPDX-License-Identifier: Apache-2.0
// include/tosaic/tosaic.hpp on top of the stages: requests in, plain strings and numbers out, files written whole.
#include <fmt/format.h>
#include <filesystem>

#include "compile.h"
#include "message.h"
#include "ops/op.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string place_text(const LocRef& loc) {
  if (!loc || loc->place.file.empty()) return "";
  return loc->place.line > 0 ? fmt::format("{}:{}", loc->place.file, loc->place.line) : loc->place.file;
}

// One line that says why, for tables: the message, and what the node would have lowered to.
std::string one_line(const Diagnostic& reason) { return reason.notes.empty() ? reason.message : reason.notes.front(); }

std::string hash_text(const Bytes& bytes) { return fmt::format("{:016x}", hash_of(bytes)); }

std::string manifest(const CompileRequest& request, const Compiled& compiled, const CompileOutcome& outcome,
                     const Bytes& model) {
  std::string out = "{\n";
  out += fmt::format("  \"tosaic\": {},\n", json_quote(version()));
  out +=
      fmt::format("  \"model\": {{\"file\": {}, \"bytes\": {}, \"xxh3\": \"{}\"}},\n",
                  json_quote(std::filesystem::path(request.model).filename().string()), model.size(), hash_text(model));
  out += fmt::format("  \"target\": {{\"name\": {}, \"tosa\": {}}},\n", json_quote(request.target),
                     json_quote(compiled.target.spec.text()));
  out += fmt::format(
      "  \"options\": {{\"quantise\": \"{}\", \"observer\": \"{}\", \"weights\": \"{}\", \"io\": \"{}\", \"samples\": "
      "{}}},\n",
      request.quantise == Quantise::int16x8 ? "int16x8"
      : request.quantise == Quantise::int8  ? "int8"
                                            : "automatic",
      request.minmax_observer ? "minmax" : "histogram", request.per_tensor_weights ? "per-tensor" : "per-channel",
      request.quantised_io ? "quantised" : "as-written", outcome.samples);
  out += fmt::format("  \"program\": {{\"bytes\": {}, \"xxh3\": \"{}\"}},\n", compiled.program.size(),
                     hash_text(compiled.program));
  out += "  \"delegates\": [";
  for (std::size_t i = 0; i < compiled.payloads.size(); ++i)
    out += fmt::format("{}{{\"id\": {}, \"bytes\": {}, \"operators\": {}, \"xxh3\": \"{}\"}}", i ? ", " : "",
                       json_quote(compiled.target.delegate_id), compiled.payloads[i].size(),
                       compiled.lowered[i].nodes.size(), hash_text(compiled.payloads[i]));
  out += "],\n  \"stages\": {";
  for (std::size_t i = 0; i < outcome.stage_seconds.size(); ++i)
    out += fmt::format("{}{}: {:.6f}", i ? ", " : "", json_quote(outcome.stage_seconds[i].first),
                       outcome.stage_seconds[i].second);
  out += "},\n  \"nodes\": [\n";
  for (std::size_t i = 0; i < outcome.nodes.size(); ++i) {
    const NodePlacement& n = outcome.nodes[i];
    out += fmt::format("    {{\"name\": {}, \"op\": {}, \"place\": {}, \"delegate\": {}", json_quote(n.name),
                       json_quote(n.op), json_quote(n.place), n.delegate);
    if (n.delegate < 0)
      out += fmt::format(", \"code\": {}, \"reason\": {}", json_quote(n.reason_code), json_quote(n.reason));
    out += i + 1 < outcome.nodes.size() ? "},\n" : "}\n";
  }
  return out + "  ]\n}\n";
}

void describe(const Compiled& compiled, CompileOutcome& outcome) {
  const Graph& graph = compiled.quantised;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Placement& placement = compiled.partition.placements[n];
    NodePlacement row;
    row.name = node.outputs.empty() || node.outputs[0] == no_value ? "" : graph[node.outputs[0]].name;
    row.op = node.op;
    row.place = place_text(node.loc);
    row.delegate = placement.region;
    if (placement.region < 0) {
      row.reason_code = placement.reason.code;
      row.reason = one_line(placement.reason);
      row.reason_text = render(placement.reason, false);
      row.conversion = placement.reason.code == "target.conversion";
      outcome.conversions += row.conversion;
    } else {
      ++outcome.delegated;
    }
    outcome.nodes.push_back(std::move(row));
  }
  outcome.delegates = compiled.partition.regions.size();
  outcome.stage_seconds = compiled.stage_seconds;
  outcome.samples = compiled.samples;
  outcome.printed = compiled.printed;
  outcome.output_bytes = compiled.program.size();
  for (const Bytes& payload : compiled.payloads) outcome.tosa_bytes += payload.size();
  for (const Graph& region : compiled.lowered) outcome.tosa_operators += region.nodes.size();
}

Status write_results(const CompileRequest& request, const Compiled& compiled, const CompileOutcome& outcome) {
  if (!request.emit_tosa.empty()) {
    if (compiled.payloads.empty())
      return error("compile.no-delegate", "no part of the model was delegated, so there is no TOSA graph to write");
    TOSAIC_CHECK(write_file(request.emit_tosa, compiled.payloads[0].data(), compiled.payloads[0].size()));
  }
  if (!request.report.empty()) TOSAIC_CHECK(write_file(request.report, outcome.manifest));
  if (!request.output.empty())
    TOSAIC_CHECK(write_file(request.output, compiled.program.data(), compiled.program.size()));
  return {};
}

// A folder that is missing or read-only is worth saying before the work, not after it.
Status writable(const std::string& path) {
  if (path.empty()) return {};
  auto folder = std::filesystem::path(path).parent_path();
  std::error_code failure;
  if (!folder.empty() && !std::filesystem::is_directory(folder, failure))
    return error("file.unwritable", fmt::format("cannot write {}: the folder {} does not exist", path, folder.string()))
        .at({path, 0, ""})
        .hint("create it first");
  return {};
}

Result<CompileOutcome> try_compile(const CompileRequest& request, const MessageSink& sink) {
  for (const auto* path : {&request.output, &request.emit_tosa, &request.report}) TOSAIC_CHECK(writable(*path));
  CompileOptions options;
  options.model = request.model;
  options.target = request.target;
  options.tosa_spec = request.tosa_spec;
  options.calibrate = request.calibrate;
  options.quantise_always = request.quantise != Quantise::automatic;
  options.quantise.scheme = request.quantise == Quantise::int16x8 ? Scheme::int16x8 : Scheme::int8;
  options.quantise.observer = request.minmax_observer ? Observer::minmax : Observer::histogram;
  options.quantise.per_channel = !request.per_tensor_weights;
  options.quantise.threads = request.threads;
  options.quantise.progress = request.progress;
  options.quantised_io = request.quantised_io;
  options.require_full_delegation = request.require_full_delegation;
  options.pack = !request.dry_run;
  options.invent_samples = request.dry_run;
  options.print_after = request.print_after;
  TOSAIC_TRY(Compiled compiled, compile_model(options, to_messages(sink)));
  CompileOutcome outcome;
  describe(compiled, outcome);
  TOSAIC_TRY(Bytes model, map_file(request.model));
  outcome.model_bytes = model.size();
  if (!request.report.empty() || !request.dry_run) outcome.manifest = manifest(request, compiled, outcome, model);
  if (!request.dry_run) TOSAIC_CHECK(write_results(request, compiled, outcome));
  return outcome;
}

}  // namespace

CompileOutcome compile(const CompileRequest& request, const MessageSink& sink) {
  auto result = try_compile(request, sink);
  if (result.ok()) return *std::move(result);
  CompileOutcome failed;
  failed.error = to_message(result.error());
  return failed;
}

std::vector<TargetInfo> targets() {
  std::vector<TargetInfo> list;
  for (const Target& t : all_targets()) list.push_back({t.name, t.summary, t.spec.text()});
  return list;
}

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> list;
  for (const NamedAtenOp& named : all_aten())
    list.push_back({std::string(named.file),
                    {named.op.schemas.begin(), named.op.schemas.end()},
                    std::string(named.op.summary),
                    std::string(name_of(named.op.rule))});
  return list;
}

std::string version() { return TOSAIC_VERSION; }

}  // namespace tosaic
