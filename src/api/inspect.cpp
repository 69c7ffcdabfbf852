// SPDX-License-Identifier: Apache-2.0
// What is in a file, distinguished by its first bytes: text for people, JSON for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/guard.h"
#include "api/inspect_ethos_u.h"
#include "api/inspect_graph.h"
#include "api/inspect_vgf.h"
#include "api/inspect_vulkan_backend.h"
#include "api/payload_forms.h"
#include "boards/firmware.h"
#include "formats/bpte/bpte_file.h"
#include "formats/npy/npy.h"
#include "formats/ptd/ptd_file.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/raw_output.h"
#include "formats/vgf/vgf.h"
#include "formats/vulkan_backend/vulkan_backend.h"
#include "formats/zip/zip.h"
#include "read/pt2.h"
#include "session/named_data.h"

namespace tosaic {
namespace {

Result<Inspection> inspect_pt2(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(ExportedProgram program, read_pt2(file, name, {}));
  Inspection out;
  out.text = fmt::format("{}: exported PyTorch program, torch {}, schema {}.{}, {} bytes\n", name,
                         program.torch_version, program.schema_major, program.schema_minor, file.size());
  std::string methods;
  for (const Method& m : program.methods) {
    out.text += fmt::format("method {}: {} nodes, {} sets of sample inputs\n{}\n{}", m.name, m.graph.nodes.size(),
                            m.sample_inputs.size(), counted(m.graph), print(m.graph, ConstantText::brief, true));
    methods += fmt::format("{}{{\"name\": {}, \"samples\": {}, \"graph\": {}}}", methods.empty() ? "" : ", ",
                           json_quote(m.name), m.sample_inputs.size(), graph_json(m.graph));
  }
  out.json =
      fmt::format("{{\"format\": \"pt2\", \"bytes\": {}, \"torch\": {}, \"schema\": \"{}.{}\", \"methods\": [{}]}}",
                  file.size(), json_quote(program.torch_version), program.schema_major, program.schema_minor, methods);
  return out;
}

std::string pte_type(const pte::TensorValue& t) {
  std::string text;
  for (auto d : t.sizes) text += fmt::format("{}x", d);
  text += name_of(t.dtype);
  if (t.is_planned) text += fmt::format(" @{}:{}", t.planned.memory_id, t.planned.offset);
  if (!t.constant.null()) text += " constant";
  if (!t.external_name.empty()) text += " external " + t.external_name;
  return text;
}

std::string pte_value(const pte::Value& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, pte::None>)
          return "none";
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::int64_t>)
          return std::to_string(v);
        else if constexpr (std::is_same_v<T, double>)
          return to_string(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return json_quote(v);
        else if constexpr (std::is_same_v<T, pte::TensorValue>)
          return pte_type(v);
        else if constexpr (std::is_same_v<T, pte::IntList> || std::is_same_v<T, pte::TensorList>) {
          std::string text;
          for (auto i : v.items) text += fmt::format("{}v{}", text.empty() ? "" : ", ", i);
          return "[" + text + "]";
        } else {
          std::string text;
          for (auto x : v) text += fmt::format("{}{}", text.empty() ? "" : ", ", x);
          return "[" + text + "]";
        }
      },
      value);
}

std::string arguments(const std::vector<std::int32_t>& args) {
  std::string text;
  for (auto a : args) text += fmt::format("{}v{}", text.empty() ? "" : ", ", a);
  return "(" + text + ")";
}

std::string instruction_text(const pte::Plan& plan, const pte::Instruction& instruction) {
  return std::visit(
      [&]<class T>(const T& i) -> std::string {
        if constexpr (std::is_same_v<T, pte::KernelCall>) {
          const auto& op = plan.operators[static_cast<std::size_t>(i.op)];
          return fmt::format("kernel   {}{}{}{}", op.name, op.overload.empty() ? "" : ".", op.overload,
                             arguments(i.args));
        } else if constexpr (std::is_same_v<T, pte::DelegateCall>) {
          return fmt::format("delegate {} {}{}", i.delegate, plan.delegates[static_cast<std::size_t>(i.delegate)].id,
                             arguments(i.args));
        } else if constexpr (std::is_same_v<T, pte::MoveCall>) {
          return fmt::format("move     v{} -> v{}", i.from, i.to);
        } else if constexpr (std::is_same_v<T, pte::JumpFalseCall>) {
          return fmt::format("jump     to {} unless v{}", i.destination, i.condition);
        } else {
          return fmt::format("free     v{}", i.value);
        }
      },
      instruction);
}

Result<Inspection> inspect_pte(const Bytes& file, const std::string& name, const InspectOptions& options) {
  TOSAIC_TRY(pte::Program program, pte::read(file, name));
  TOSAIC_TRY(auto data, read_named_data(options.data));
  for (const pte::NamedData& named : program.named_data) data.insert_or_assign(named.key, named.data.joined());
  Inspection out;
  out.text = fmt::format("{}: ExecuTorch program, {} bytes\n", name, file.size());
  std::string plans;
  for (const pte::Plan& plan : program.plans) {
    std::int64_t arena = 0;
    for (auto bytes : plan.arena_sizes) arena += bytes;
    out.text += fmt::format("method {}: {} instructions, {} values, arena {} bytes\n", plan.name,
                            plan.instructions.size(), plan.values.size(), arena);
    std::string inputs, outputs, delegates;
    auto list = [&](const char* what, const std::vector<std::int32_t>& ids, std::string& json) {
      for (auto v : ids) {
        out.text += fmt::format("  {:<8} v{} {}\n", what, v, pte_value(plan.values[static_cast<std::size_t>(v)]));
        json += fmt::format("{}{}", json.empty() ? "" : ", ",
                            json_quote(pte_value(plan.values[static_cast<std::size_t>(v)])));
      }
    };
    list("input", plan.inputs, inputs);
    list("output", plan.outputs, outputs);
    for (std::size_t i = 0; i < plan.instructions.size(); ++i)
      out.text += fmt::format("  {:>4} {}\n", i, instruction_text(plan, plan.instructions[i]));
    for (std::size_t i = 0; i < plan.delegates.size(); ++i) {
      const pte::Delegate& d = plan.delegates[i];
      const Bytes payload = d.payload.joined();
      out.text += fmt::format("  delegate {}: {} bytes\n", d.id, payload.size());
      for (const auto& spec : d.specs) out.text += fmt::format("    spec {} ({} bytes)\n", spec.key, spec.value.size());
      delegates +=
          fmt::format("{}{{\"id\": {}, \"bytes\": {}", delegates.empty() ? "" : ", ", json_quote(d.id), payload.size());
      const ProgramDelegate one{plan, i, data, fmt::format("{} (delegate {})", name, i)};
      if (const PayloadForm* form = form_of(one)) {
        TOSAIC_TRY(const Inspection inner, form->inspect(one, payload, options));
        out.text += inner.text;
        if (!inner.json.empty()) delegates += fmt::format(", \"{}\": {}", form->member, inner.json);
      }
      delegates += "}";
    }
    plans += fmt::format(
        "{}{{\"name\": {}, \"inputs\": [{}], \"outputs\": [{}], \"instructions\": {}, \"arena_bytes\": {}, "
        "\"delegates\": [{}]}}",
        plans.empty() ? "" : ", ", json_quote(plan.name), inputs, outputs, plan.instructions.size(), arena, delegates);
  }
  // What a board needs, for programs that a firmware runs.
  std::string firmware;
  if (boards::may_be_firmware(program)) {
    if (const auto arena = boards::firmware_arena(program); arena.ok()) {
      out.text += fmt::format("firmware arena {} bytes\n", *arena);
      firmware = fmt::format(", \"firmware_arena_bytes\": {}", *arena);
    }
  }
  out.json = fmt::format("{{\"format\": \"pte\", \"bytes\": {}, \"methods\": [{}]{}}}", file.size(), plans, firmware);
  return out;
}

std::string bundled_types(const std::vector<bpte::Value>& values) {
  std::vector<std::string> types;
  for (const bpte::Value& value : values) {
    const auto* tensor = std::get_if<Tensor>(&value);
    types.push_back(tensor                                        ? to_string(tensor->type)
                    : std::holds_alternative<std::int64_t>(value) ? "int"
                    : std::holds_alternative<bool>(value)         ? "bool"
                                                                  : "float");
  }
  return fmt::format("({})", fmt::join(types, ", "));
}

Result<Inspection> inspect_bpte(const Bytes& file, const std::string& name, const InspectOptions& options) {
  TOSAIC_TRY(const bpte::File bundle, bpte::read(file, name));
  TOSAIC_TRY(const Inspection program, inspect_pte(bundle.program, name + " program", options));
  Inspection out;
  out.text = fmt::format("{}: bundled program, {} case{}, {} bytes\n", name, bundle.cases.size(),
                         bundle.cases.size() == 1 ? "" : "s", file.size());
  std::string cases;
  for (const bpte::Case& one : bundle.cases) {
    const std::string inputs = bundled_types(one.inputs), outputs = bundled_types(one.outputs);
    out.text += fmt::format("  {}{} -> {}\n", one.method, inputs, outputs);
    cases += fmt::format("{}{{\"method\": {}, \"inputs\": {}, \"outputs\": {}}}", cases.empty() ? "" : ", ",
                         json_quote(one.method), json_quote(inputs), json_quote(outputs));
  }
  out.text += program.text;
  out.json = fmt::format("{{\"format\": \"bpte\", \"bytes\": {}, \"cases\": [{}], \"program\": {}}}", file.size(),
                         cases, program.json);
  return out;
}

Result<Inspection> inspect_arrays(const Bytes& file, const std::string& name, bool archive) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  if (archive) {
    TOSAIC_TRY(arrays, npy::read_npz(file, name));
  } else {
    TOSAIC_TRY(Tensor tensor, npy::read(file, name));
    arrays.emplace_back("", std::move(tensor));
  }
  Inspection out;
  out.text = fmt::format("{}: {} array{}\n", name, arrays.size(), arrays.size() == 1 ? "" : "s");
  std::string json;
  for (const auto& [key, tensor] : arrays) {
    out.text += fmt::format("  {:<20} {}\n", key, to_string(tensor.type));
    json += fmt::format("{}{{\"name\": {}, \"type\": {}}}", json.empty() ? "" : ", ", json_quote(key),
                        json_quote(to_string(tensor.type)));
  }
  out.json = fmt::format("{{\"format\": \"{}\", \"arrays\": [{}]}}", archive ? "npz" : "npy", json);
  return out;
}

// A payload without a program: its blocks, what Vela wrote, or the commands alone.
Result<Inspection> inspect_stream(const vela::Payload& payload, std::size_t bytes, const std::string& what,
                                  const std::string& name, const InspectOptions& options) {
  TOSAIC_TRY(const auto data, read_named_data(options.data));
  auto inner = inspect_ethos_u(payload, {}, data, options, "  ");
  if (!inner.ok()) return std::move(inner.error()).at({name, 0, ""});
  return Inspection{fmt::format("{}: {}, {} bytes\n{}", name, what, bytes, inner->text),
                    fmt::format("{{\"format\": \"ethos-u\", \"bytes\": {}, \"ethos_u\": {}}}", bytes, inner->json)};
}

Result<Inspection> inspect_blocks(const Bytes& file, const std::string& name, const InspectOptions& options) {
  const auto payload = vela::read(file);
  if (!payload.ok()) return Diagnostic(payload.error()).at({name, 0, ""});
  return inspect_stream(*payload, file.size(), "Ethos-U payload", name, options);
}

Result<Inspection> inspect_ptd(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(const auto entries, ptd::read(file, name));
  Inspection out;
  out.text = fmt::format("{}: ExecuTorch data, {} block{}, {} bytes\n", name, entries.size(),
                         entries.size() == 1 ? "" : "s", file.size());
  std::string json;
  for (const ptd::Entry& entry : entries) {
    const std::string type = entry.tensor ? to_string(*entry.tensor) : "";
    out.text += fmt::format("  {} {} bytes {}\n", entry.key, entry.data.size(), type);
    json += fmt::format("{}{{\"name\": {}, \"bytes\": {}, \"type\": {}}}", json.empty() ? "" : ", ",
                        json_quote(entry.key), entry.data.size(), type.empty() ? "null" : json_quote(type));
  }
  out.json = fmt::format("{{\"format\": \"ptd\", \"bytes\": {}, \"data\": [{}]}}", file.size(), json);
  return out;
}

Result<Inspection> inspect_graph_text(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(Graph graph, parse(file.text(), name));
  return Inspection{fmt::format("{}: graph text\n{}\n{}", name, counted(graph), print(graph)),
                    fmt::format("{{\"format\": \"text\", \"graph\": {}}}", graph_json(graph))};
}

Result<Inspection> try_inspect(const std::string& path, const InspectOptions& options) {
  TOSAIC_TRY(Bytes file, map_file(path));
  std::string_view head = file.text().substr(0, 16);
  if (tosa_file::is_tosa(file)) {
    TOSAIC_TRY(const Graph graph, tosa_file::read(file, path));
    return inspect_tosa(graph, file, path);
  }
  if (head.size() >= 8 && head.substr(4, 2) == "ET") return inspect_pte(file, path, options);
  if (bpte::is_bpte(file)) return inspect_bpte(file, path, options);
  if (head.size() >= 8 && head.substr(4, 2) == "FT") return inspect_ptd(file, path);
  if (vgf::is_vgf(file)) return inspect_vgf(file, path);
  if (vulkan_backend::is_payload(file)) {
    TOSAIC_TRY(Inspection inner, inspect_vulkan_backend(file, path, "  "));
    return Inspection{fmt::format("{}: payload of VulkanBackend, {} bytes\n{}", path, file.size(), inner.text),
                      fmt::format("{{\"format\": \"vulkan-backend\", \"bytes\": {}, \"vulkan_backend\": {}}}",
                                  file.size(), inner.json)};
  }
  if (head.starts_with("vela_bin_stream")) return inspect_blocks(file, path, options);
  if (head.starts_with("COP1") || head.starts_with("COP2"))
    return inspect_stream({{file, ""}, {}, 0, {}, {}}, file.size(), "Ethos-U command stream", path, options);
  if (head.starts_with("\x93NUMPY")) return inspect_arrays(file, path, false);
  if (head.starts_with("graph ")) return inspect_graph_text(file, path);
  if (head.starts_with("PK")) {
    TOSAIC_TRY(zip::Archive archive, zip::Archive::open(file, path));
    if (archive.find("cmd_data.npy")) {
      TOSAIC_TRY(const vela::Payload payload, vela::read_raw_output(file, path));
      return inspect_stream(payload, file.size(), "Vela's output for Ethos-U", path, options);
    }
    bool arrays = !archive.entries().empty() && archive.entries()[0].name.ends_with(".npy");
    return arrays ? inspect_arrays(file, path, true) : inspect_pt2(file, path);
  }
  return error("inspect.unknown-format",
               path + " is none of .pt2, .tosa, .vgf, .pte, .bpte, .ptd, .npy, .npz, nor an Ethos-U command stream")
      .at({path, 0, ""});
}

}  // namespace

Result<Inspection> inspect(const std::string& file, const InspectOptions& options) {
  return guarded(file, [&] { return try_inspect(file, options); });
}

}  // namespace tosaic
