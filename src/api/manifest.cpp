// SPDX-License-Identifier: Apache-2.0
// The manifest of a compilation as JSON: versions, options, hashes, estimates, the location of every node.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <filesystem>

#include "api/artifact.h"
#include "api/program.h"
#include "ir/source_notes.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

std::string hash_text(const Rope& file) { return fmt::format("{:016x}", hash_of(file)); }

// What Vela says of each operator, tied to TOSA, PyTorch and the user's module.
std::string estimates_json(const std::vector<NpuEstimate>& estimates) {
  std::string out;
  for (const NpuEstimate& e : estimates) {
    out += fmt::format(
        "{}\n    {{\"accelerator\": {}, \"system_config\": {}, \"memory_mode\": {}, \"cycles\": {}, "
        "\"inferences_per_second\": {}, \"macs\": {}, \"npu_operators\": {}, \"cpu_operators\": {}, "
        "\"sram_bytes\": {}, \"dram_bytes\": {}, \"flash_bytes\": {}, \"sram_traffic_bytes\": {}, "
        "\"dram_traffic_bytes\": {}, \"flash_traffic_bytes\": {}, \"layers\": [",
        out.empty() ? "" : ",", json_quote(e.accelerator), json_quote(e.system_config), json_quote(e.memory_mode),
        e.cycles, e.inferences_per_second, e.macs, e.npu_operators, e.cpu_operators, e.sram_bytes, e.dram_bytes,
        e.flash_bytes, e.sram_traffic_bytes, e.dram_traffic_bytes, e.flash_traffic_bytes);
    for (std::size_t i = 0; i < e.layers.size(); ++i) {
      const NpuLayer& l = e.layers[i];
      out += fmt::format(
          "{}\n      {{\"name\": {}, \"operation\": {}, \"processor\": {}, \"tosa\": {}, \"aten\": {}, \"node\": {}, "
          "\"module\": "
          "{}, \"place\": {}, \"cycles\": {}, \"npu_cycles\": {}, \"macs\": {}, \"utilisation_percent\": {:.2f}, "
          "\"staging_bytes\": {}}}",
          i ? "," : "", json_quote(l.name), json_quote(l.operation), json_quote(l.processor), json_quote(l.tosa),
          json_quote(l.aten), json_quote(l.node), json_quote(l.module), json_quote(l.place), l.cycles, l.npu_cycles,
          l.macs, l.utilisation_percent, l.staging_bytes);
    }
    out += "]}";
  }
  return out;
}

// A row per node of the user's ep.graph.
std::string exported_json(const std::vector<NodeVerdict>& verdicts) {
  std::string out;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const NodeVerdict& v = verdicts[i];
    out += fmt::format(
        "    {{\"name\": {}, \"op\": {}, \"module\": {}, \"place\": {}, \"taken\": {}, \"pieces\": {}, "
        "\"delegates\": [{}]",
        json_quote(v.name), json_quote(v.op), json_quote(v.module), json_quote(v.place), v.taken, v.pieces,
        fmt::join(v.delegates, ", "));
    if (v.reason)
      out += fmt::format(", \"code\": {}, \"reason\": {}", json_quote(v.reason->code), json_quote(one_line(*v.reason)));
    out += i + 1 < verdicts.size() ? "},\n" : "}\n";
  }
  return out;
}

}  // namespace

std::string manifest(const Artifact::Impl& artifact, bool with_nodes) {
  const Compiled& compiled = artifact.compiled;
  const Summary& summary = artifact.summary;
  const CompileOptions& options = artifact.options;
  const Program::Impl& model = artifact.program.impl();
  std::string out = "{\n";
  out += fmt::format("  \"tosaic\": {},\n", json_quote(version()));
  out += fmt::format("  \"command\": \"{}\",\n", artifact.request.pack ? "compile" : "explain");
  const std::string model_name = json_quote(std::filesystem::path(model.name).filename().string());
  if (model.file.empty())
    out += fmt::format("  \"model\": {{\"file\": null, \"name\": {}}},\n", model_name);  // it came from memory
  else
    out += fmt::format("  \"model\": {{\"file\": {}, \"bytes\": {}, \"xxh3\": \"{}\"}},\n", model_name,
                       model.file.size(), hash_text(model.file));
  out += fmt::format("  \"target\": {{\"name\": {}, \"tosa\": {}}},\n", json_quote(summary.target),
                     json_quote(summary.tosa_spec));
  out += fmt::format(
      "  \"options\": {{\"quantise\": \"{}\", \"observer\": \"{}\", \"weights\": \"{}\", \"io\": \"{}\", \"samples\": "
      "{}}},\n",
      !options.quantise_always                     ? "automatic"
      : options.quantise.scheme == Scheme::int16x8 ? "int16x8"
                                                   : "int8",
      options.quantise.observer == Observer::minmax ? "minmax" : "histogram",
      options.quantise.four_bits      ? "int4"
      : options.quantise.sixteen_bits ? "int16"
      : options.quantise.per_channel  ? "per-channel"
                                      : "per-tensor",
      options.quantised_io ? "quantised" : "as-written", summary.samples);
  out += fmt::format("  \"program\": {{\"bytes\": {}, \"xxh3\": \"{}\"}},\n", compiled.program.size(),
                     hash_text(compiled.program));
  if (!summary.methods.empty()) {
    std::vector<std::string> names;
    for (const std::string& m : summary.methods) names.push_back(json_quote(m));
    out += fmt::format("  \"methods\": [{}],\n", fmt::join(names, ", "));
  }
  out += fmt::format("  \"delegated\": {},\n  \"delegates\": [", summary.delegated);
  for (std::size_t i = 0; i < compiled.lowered.size(); ++i) {
    out += fmt::format("{}{{\"id\": {}, \"operators\": {}", i ? ", " : "", json_quote(compiled.target.delegate_id),
                       compiled.lowered[i].nodes.size());
    if (i < compiled.emitted.size())
      out += fmt::format(", \"bytes\": {}, \"xxh3\": \"{}\"", compiled.emitted[i].payload.size(),
                         hash_text(compiled.emitted[i].payload));
    out += "}";
  }
  SourceNotes source;  // what the files say of it
  if (!options.strip)
    for (const Graph& region : compiled.lowered) {
      const SourceNotes notes = source_notes(region);
      source.nodes += notes.nodes;
      source.lines += notes.lines;
      source.files.insert(notes.files.begin(), notes.files.end());
    }
  std::vector<std::string> files;
  for (const std::string& file : source.files) files.push_back(json_quote(file));
  out += fmt::format(
      "],\n  \"source_in_files\": {{\"stripped\": {}, \"operators\": {}, \"lines\": {}, \"files\": [{}]}},\n",
      options.strip, source.nodes, source.lines, fmt::join(files, ", "));
  out += "  \"estimates\": [" + estimates_json(summary.estimates);
  out += fmt::format("],\n  \"self_check\": {},\n  \"peer_seconds\": {:.6f},\n  \"stages\": {{",
                     summary.self_check_seconds ? "\"passed\"" : "null", summary.peer_seconds);
  for (std::size_t i = 0; i < summary.stage_seconds.size(); ++i)
    out += fmt::format("{}{}: {:.6f}", i ? ", " : "", json_quote(summary.stage_seconds[i].first),
                       summary.stage_seconds[i].second);
  out += "},\n  \"nodes\": [\n";
  for (std::size_t i = 0; with_nodes && i < summary.nodes.size(); ++i) {
    const NodePlacement& n = summary.nodes[i];
    std::vector<std::string> exported;
    for (const std::string& name : n.exported) exported.push_back(json_quote(name));
    out += fmt::format(
        "    {{\"name\": {}, \"op\": {}, \"place\": {}, \"module\": {}, \"exported\": [{}], \"delegate\": {}",
        json_quote(n.name), json_quote(n.op), json_quote(n.place), json_quote(n.module), fmt::join(exported, ", "),
        n.delegate);
    if (n.reason)
      out += fmt::format(", \"code\": {}, \"reason\": {}", json_quote(n.reason->code), json_quote(one_line(*n.reason)));
    out += i + 1 < summary.nodes.size() ? "},\n" : "}\n";
  }
  out += "  ],\n  \"exported\": [\n" + exported_json(summary.exported) + "  ]";
  if (!compiled.printed.empty()) out += ",\n  \"printed\": " + json_quote(compiled.printed);
  return out + "\n}\n";
}

}  // namespace tosaic
