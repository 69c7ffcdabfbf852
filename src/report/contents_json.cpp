// SPDX-License-Identifier: Apache-2.0
#include "report/contents_json.h"

#include "report/json_writer.h"

namespace tosaic::reporting {
namespace {

const char* name_of(ShownGraph::Kind kind) {
  switch (kind) {
    case ShownGraph::Kind::program: return "program";
    case ShownGraph::Kind::instructions: return "instructions";
    case ShownGraph::Kind::delegate: return "delegate";
  }
  return "";
}

void write(JsonWriter& out, const ShownValue& value) {
  out.object([&] {
    out.member("name", value.name);
    out.member("type", value.type);
    if (value.bytes) out.member("bytes", value.bytes);
    if (value.is_constant) out.member("constant", true);
    if (!value.scales) return;
    const ShownScales& s = *value.scales;
    out.member("scale", s.scale);
    if (s.channels > 1) {
      out.member("largest_scale", s.largest_scale);
      out.member("channels", s.channels);
    }
    out.member("zero_point", s.zero_point);
    out.array("range", [&] {
      out.item(s.lowest_real);
      out.item(s.highest_real);
    });
  });
}

void write(JsonWriter& out, const ShownNode& node) {
  out.object([&] {
    out.member("name", node.name);
    out.member("op", node.op);
    out.member_unless_empty("text", node.text);
    out.member_unless_empty("module", node.module);
    out.member_unless_empty("module_type", node.module_type);
    out.member_unless_empty("place", node.place);
    out.member_unless_empty("source", node.source);
    out.member_unless_empty("exported", node.exported);
    out.member_unless_empty("inputs", node.inputs);
    out.member_unless_empty("outputs", node.outputs);
    if (node.delegate) out.member("delegate", *node.delegate);
    if (node.reason) {
      out.member("code", node.reason->code);
      out.member("reason", node.reason->notes.empty() ? node.reason->message : node.reason->notes.front());
      out.member_unless_empty("help", node.reason->help);
    }
  });
}

void write(JsonWriter& out, const ShownGraph& graph) {
  out.object([&] {
    out.member("name", graph.name);
    out.member("kind", name_of(graph.kind));
    if (graph.kind == ShownGraph::Kind::delegate) {
      out.member("delegate", graph.delegate);
      out.member("id", graph.id);
      out.member("bytes", graph.bytes);
    }
    if (graph.sequence) out.member("sequence", true);
    out.member_unless_empty("inputs", graph.inputs);
    out.member_unless_empty("outputs", graph.outputs);
    out.array("values", [&] {
      for (const ShownValue& value : graph.values) write(out, value);
    });
    out.array("nodes", [&] {
      for (const ShownNode& node : graph.nodes) write(out, node);
    });
  });
}

void write(JsonWriter& out, const ShownMemory& memory) {
  out.object([&] {
    out.member("name", memory.name);
    out.member("how", memory.how);
    out.member("graph", memory.graph);
    out.member("arena_bytes", memory.arena_bytes);
    out.member("peak_bytes", memory.peak_bytes);
    out.member("peak", memory.peak);
    out.array("buffers", [&] {
      for (const ShownMemory::Buffer& b : memory.buffers)
        out.object([&] {
          out.member("value", b.value);
          out.member("bytes", b.bytes);
          out.member("offset", b.offset);
          out.member("first", b.first);
          out.member("last", b.last);
        });
    });
  });
}

}  // namespace

std::string contents_json(const Contents& contents, const std::string& version) {
  JsonWriter out;
  out.object([&] {
    out.member("tosaic", version);
    out.member("command", "report");
    out.member("schema", schema);
    out.member("name", contents.name);
    out.member("format", contents.format);
    out.member_unless_empty("target", contents.target);
    out.member_unless_empty("tosa", contents.tosa_spec);
    out.member("bytes", contents.bytes);
    out.member_unless_empty("sha256", contents.sha256);
    out.array("graphs", [&] {
      for (const ShownGraph& graph : contents.graphs) write(out, graph);
    });
    out.array("memory", [&] {
      for (const ShownMemory& memory : contents.memory) write(out, memory);
    });
    out.array("messages", [&] {
      for (const Diagnostic& message : contents.messages) out.raw_item(render_json(message));
    });
    out.raw_member("manifest", contents.manifest);
    out.raw_member("inspection", contents.inspection);
    out.raw_member("profile", contents.profile);
    out.raw_member("comparison", contents.comparison);
  });
  return out.take();
}

}  // namespace tosaic::reporting
