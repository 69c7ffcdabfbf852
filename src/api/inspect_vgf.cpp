// SPDX-License-Identifier: Apache-2.0
#include "api/inspect_vgf.h"

#include <fmt/format.h>

#include "formats/vgf/vgf_graph.h"

namespace tosaic {
namespace {

std::string shape_text(const vgf::Resource& r) {
  std::string text;
  for (std::int64_t d : r.shape) text += d < 0 ? "?x" : fmt::format("{}x", d);
  return text + vgf::name_of_format(r.format);
}

std::string slot_text(const vgf::File& file, const std::vector<vgf::Slot>& slots, std::size_t i, const char* what,
                      const std::vector<std::string>& names) {
  return fmt::format("  {:<8} {} {} '{}'\n", what, i, shape_text(file.resources[slots[i].resource]),
                     i < names.size() ? names[i] : "");
}

std::string slots_json(const vgf::File& file, const std::vector<vgf::Slot>& slots,
                       const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < slots.size(); ++i)
    text += fmt::format("{}{{\"name\": {}, \"type\": {}}}", i ? ", " : "", json_quote(i < names.size() ? names[i] : ""),
                        json_quote(shape_text(file.resources[slots[i].resource])));
  return "[" + text + "]";
}

}  // namespace

Result<Inspection> inspect_vgf(const Bytes& bytes, const std::string& name) {
  auto read = vgf::read(bytes);
  if (!read.ok()) return std::move(read.error()).at({name, 0, ""});
  const vgf::File& file = *read;
  std::size_t weights = 0;
  for (const vgf::Constant& c : file.constants) weights += c.data.size();
  const auto [major, minor, patch] = file.version;
  Inspection out;
  out.text = fmt::format("{}: VGF {}.{}.{}, {} bytes, {} constants of {} bytes\n", name, major, minor, patch,
                         bytes.size(), file.constants.size(), weights);
  for (std::size_t i = 0; i < file.inputs.size(); ++i)
    out.text += slot_text(file, file.inputs, i, "input", file.input_names);
  for (std::size_t i = 0; i < file.outputs.size(); ++i)
    out.text += slot_text(file, file.outputs, i, "output", file.output_names);
  std::string segments;
  for (const vgf::Segment& s : file.segments) {
    const bool graph = s.kind == vgf::Kind::graph;
    out.text += fmt::format("segment {}: {}, {} bytes of code\n", s.name, graph ? "graph" : "shader",
                            file.modules[s.module].code.size());
    segments += fmt::format("{}{{\"name\": {}, \"kind\": \"{}\", \"code_bytes\": {}}}", segments.empty() ? "" : ", ",
                            json_quote(s.name), graph ? "graph" : "shader", file.modules[s.module].code.size());
  }
  // A file that tosaic cannot run is worth seeing all the same.
  const auto graph = vgf::to_graph(file);
  out.text += graph.ok() ? print(*graph) : fmt::format("not shown as TOSA: {}\n", graph.error().message);
  out.json = fmt::format(
      "{{\"format\": \"vgf\", \"version\": \"{}.{}.{}\", \"bytes\": {}, \"constants\": {}, \"constant_bytes\": {}, "
      "\"inputs\": {}, \"outputs\": {}, \"segments\": [{}]}}",
      major, minor, patch, bytes.size(), file.constants.size(), weights,
      slots_json(file, file.inputs, file.input_names), slots_json(file, file.outputs, file.output_names), segments);
  return out;
}

}  // namespace tosaic
