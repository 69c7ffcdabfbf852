// SPDX-License-Identifier: Apache-2.0
#include "report/mlia_json.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <algorithm>
#include <set>
#include <vector>

#include "base/diagnostic.h"
#include "report/json_writer.h"
#include "report/mlia_performance.h"

namespace tosaic::reporting {
namespace {

using Element = simdjson::dom::element;

// What the target is to MLIA: a kind of component, its family, model and variant, and what runs on it.
struct Component {
  std::string type, family, model, variant, placement;
};
Component component_of(std::string_view target) {
  const std::string name(target);
  if (name.starts_with("ethos-")) {  // ethos-u55-128
    const std::size_t family = sizeof("ethos-") - 1, dash = name.find('-', family);
    const std::string model = name.substr(family, dash == name.npos ? name.npos : dash - family);
    return {"npu", "ethos-u", model, dash == name.npos ? "" : name.substr(dash + 1), "NPU"};
  }
  if (name.starts_with("vulkan")) return {"gpu", "vulkan", "", name, "GPU"};
  if (name.starts_with("vgf")) return {"gpu", "vulkan", "nx", "", "NX"};
  if (name.starts_with("cortex-m")) return {"cpu", "cortex-m", name.substr(sizeof("cortex-") - 1), "", "CPU"};
  return {"specification", "tosa", "", name, ""};
}

// MLIA's name of an exported node, by the name that it has in ep.graph.
std::string entity_id(std::string_view node) { return "source_operator/" + std::string(node); }

// An exported node, and what became of it.
struct Verdict {
  std::string name, op, module, place, code, reason;
  bool taken = false, left_nothing = false, in_delegates = false;

  const char* status() const { return taken ? "pass" : in_delegates ? "partial" : "fail"; }
};

std::vector<Verdict> verdicts_in(const Element& manifest) {
  std::vector<Verdict> rows;
  for (const Element& row : items(manifest, "exported")) {
    Verdict v{.name = text(row, "name"),
              .op = text(row, "op"),
              .module = text(row, "module"),
              .place = text(row, "place"),
              .code = text(row, "code"),
              .reason = text(row, "reason")};
    bool taken = false;
    if (!row["taken"].get(taken)) v.taken = taken;
    v.left_nothing = number(row, "pieces") == 0;
    v.in_delegates = !items(row, "delegates").empty();
    rows.push_back(std::move(v));
  }
  return rows;
}

void write_entity(JsonWriter& out, const Verdict& v, const Component& component) {
  out.object([&] {
    out.member("id", entity_id(v.name));
    out.member("kind", "source_operator");
    out.member("name", v.name);
    // A node that is split has no one place, and neither has one that left nothing to run.
    if (!v.left_nothing && v.taken && !component.placement.empty()) out.member("placement", component.placement);
    if (!v.taken && !v.in_delegates) out.member("placement", "CPU");
    out.object("attributes", [&] {
      out.member("op_type", v.op);
      out.member_unless_empty("module", v.module);
    });
    out.member_unless_empty("stack_trace", v.place);
  });
}

void write_check(JsonWriter& out, const Verdict& v, const Component& component) {
  out.object([&] {
    out.member("id", component.type + "_support_" + entity_id(v.name));
    out.member("status", v.status());
    out.member("entity_id", entity_id(v.name));
    if (v.reason.empty()) return;
    out.object("details", [&] {
      out.array("reasons", [&] {
        out.object([&] {
          out.member("description", v.code);
          out.member("detail", v.reason);
        });
      });
    });
  });
}

// `some`: there is a delegate, be it inside a branch or a loop.
void write_compatibility(JsonWriter& out, const std::vector<Verdict>& verdicts, double percentage, bool some,
                         const Component& component) {
  const bool all = std::ranges::all_of(verdicts, &Verdict::taken);
  out.object([&] {
    out.member("kind", "compatibility");
    out.member("status", all ? "ok" : some ? "partial" : "incompatible");
    out.member("producer", "tosaic");
    out.array("metrics", [&] { write_metric(out, "accelerator_operator_percentage", percentage, "%"); });
    out.array("checks", [&] {
      for (const Verdict& v : verdicts) write_check(out, v, component);
    });
    out.array("entities", [&] {
      for (const Verdict& v : verdicts) write_entity(out, v, component);
    });
  });
}

// Of the nodes that leave something to run, those that delegates run.
double percentage_taken(const std::vector<Verdict>& verdicts) {
  const auto run = [](const Verdict& v) { return !v.left_nothing; };
  const auto all = std::ranges::count_if(verdicts, run);
  const auto taken = std::ranges::count_if(verdicts, [&](const Verdict& v) { return run(v) && v.taken; });
  return all ? 100.0 * static_cast<double>(taken) / static_cast<double>(all) : 100.0;
}

void write_target(JsonWriter& out, const std::string& target, const Component& component, const Element& manifest,
                  const std::vector<Element>& estimates) {
  out.object("target", [&] {
    out.member("profile_name", target);
    out.member("target_type",
               component.type == "npu" ? component.family + component.model.substr(1) : std::string(target));
    out.array("components", [&] {
      out.object([&] {
        out.member("type", component.type);
        out.member("family", component.family);
        out.member_unless_empty("model", component.model);
        out.member_unless_empty("variant", component.variant);
      });
    });
    out.object("configuration", [&] {
      out.member_unless_empty("tosa", text(manifest, "target/tosa"));
      if (estimates.empty()) return;
      out.member("system_config", text(estimates[0], "system_config"));
      out.member("memory_mode", text(estimates[0], "memory_mode"));
    });
  });
}

void write_model(JsonWriter& out, const Element& report, const Element& manifest) {
  // What came from memory has no file: then it is the program that has the hash.
  const std::string format = text(report, "format");
  const std::string model = format == "artifact" ? text(manifest, "model/file") : "";
  const bool from_memory = format == "artifact" && model.empty();
  const std::size_t dot = model.rfind('.');
  out.object("model", [&] {
    out.member("name", model.empty() ? text(report, "name") : model);
    out.member("format", from_memory            ? "pte"
                         : format != "artifact" ? format
                         : dot == model.npos    ? "pt2"
                                                : model.substr(dot + 1));
    out.member("hash", text(report, "sha256"));
    const double bytes = model.empty() ? number(report, "bytes") : number(manifest, "model/bytes");
    out.member("size_bytes", static_cast<std::uint64_t>(bytes));
  });
}

void write_backends(JsonWriter& out, const Element& report, const Element& manifest,
                    const std::vector<Element>& estimates) {
  out.array("backends", [&] {
    out.object([&] {
      out.member("id", "tosaic");
      out.member("name", "tosaic");
      out.member("version", text(report, "tosaic"));
      Element options;
      const bool said = !manifest["options"].get(options);
      out.raw_member("configuration", said ? simdjson::minify(options) : std::string("{}"));
    });
    if (estimates.empty()) return;
    out.object([&] {
      out.member("id", "vela");
      out.member("name", "Vela Compiler");
      out.member("version", "unknown");  // a manifest does not say
      out.object("configuration", [&] {
        out.member("accelerator_config", text(estimates[0], "accelerator"));
        out.member("system_config", text(estimates[0], "system_config"));
        out.member("memory_mode", text(estimates[0], "memory_mode"));
      });
    });
  });
}

}  // namespace

Result<std::string> mlia_json(std::string_view report, const MliaRun& run) {
  simdjson::dom::parser parser;
  Element root;
  simdjson::dom::object manifest_object;
  const simdjson::padded_string padded(report);
  if (parser.parse(padded).get(root)) return internal_error("a report is no JSON");
  Element manifest;
  if (root["manifest"].get(manifest) || manifest.get(manifest_object) || text(root, "sha256").empty())
    return error("report.no-manifest",
                 fmt::format("the report of {} does not say where its nodes run", text(root, "name")));
  const std::string target = text(manifest, "target/name");
  const Component component = component_of(target);
  const std::vector<Verdict> verdicts = verdicts_in(manifest);
  const std::vector<Element> estimates = items(manifest, "estimates");
  const double percentage = percentage_taken(verdicts);
  std::set<std::string> known;
  for (const Verdict& v : verdicts) known.insert(v.name);

  JsonWriter out;
  out.object([&] {
    out.member("schema_version", "1.2.0");
    out.member("run_id", run.id);
    out.member("timestamp", run.timestamp);
    out.object("tool", [&] {
      out.member("name", "tosaic");
      out.member("version", text(root, "tosaic"));
    });
    write_target(out, target, component, manifest, estimates);
    write_model(out, root, manifest);
    out.object("context", [] {});
    write_backends(out, root, manifest, estimates);
    out.array("results", [&] {
      write_compatibility(out, verdicts, percentage, !items(manifest, "delegates").empty(), component);
      if (estimates.empty()) return;
      write_performance(out, estimates, {percentage, number(root, "bytes"), known}, [&] {
        for (const Verdict& v : verdicts) write_entity(out, v, component);
      });
    });
  });
  return out.take();
}

}  // namespace tosaic::reporting
