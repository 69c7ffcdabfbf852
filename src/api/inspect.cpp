// SPDX-License-Identifier: Apache-2.0
// What is in a file, told apart by its first bytes: text for people, JSON for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "api/guard.h"
#include "api/inspect_ethos_u.h"
#include "api/inspect_vgf.h"
#include "api/inspect_vulkan.h"
#include "api/inspect_vulkan_backend.h"
#include "api/named_data.h"
#include "api/tosa_payload.h"
#include "formats/bpte/bpte_file.h"
#include "formats/npy/npy.h"
#include "formats/ptd/ptd_file.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/raw_output.h"
#include "formats/vgf/vgf.h"
#include "formats/vulkan_backend/vulkan_backend.h"
#include "formats/zip/zip.h"
#include "ir/source_notes.h"
#include "read/pt2.h"

namespace tosaic {
namespace {

std::string counted(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op.text()];
  std::string text;
  for (const auto& [op, n] : counts) text += fmt::format("  {:>5} {}\n", n, op);
  return text;
}

std::string types_json(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId v : values)
    text += fmt::format("{}{{\"name\": {}, \"type\": {}}}", text.empty() ? "" : ", ", json_quote(graph[v].name),
                        json_quote(to_string(graph[v].type)));
  return "[" + text + "]";
}

std::string graph_json(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op.text()];
  std::string ops;
  for (const auto& [op, n] : counts) ops += fmt::format("{}{}: {}", ops.empty() ? "" : ", ", json_quote(op), n);
  return fmt::format("{{\"name\": {}, \"inputs\": {}, \"outputs\": {}, \"nodes\": {}, \"operators\": {{{}}}}}",
                     json_quote(graph.name), types_json(graph, graph.inputs), types_json(graph, graph.outputs),
                     graph.nodes.size(), ops);
}

Inspection inspect_tosa(const Graph& graph, const Bytes& file, const std::string& name) {
  // The patch and "draft" mean nothing of 1.0: writers leave the schema's defaults there.
  std::string version = tosa_file::version_of(file);
  if (version.starts_with("1.0.")) version = "1.0";
  const std::size_t bytes = file.size();
  Inspection out;
  const SourceNotes source = source_notes(graph);
  const std::string told = text_of(source);
  out.text = fmt::format("{}: TOSA {} graph, {} operators, {} bytes\n{}{}\n{}", name, version, graph.nodes.size(),
                         bytes, counted(graph),
                         told.empty() ? "" : "  source: " + told + " (--strip leaves that out)\n", print(graph));
  out.json =
      fmt::format("{{\"format\": \"tosa\", \"version\": {}, \"bytes\": {}, \"source_lines\": {}, \"graph\": {}}}",
                  json_quote(version), bytes, source.lines, graph_json(graph));
  return out;
}

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

// The tensors of a delegate's call with the scales that the conversions beside it state.
std::vector<ProgramTensor> delegate_tensors(const pte::Plan& plan, std::size_t delegate) {
  const auto value = [&](std::int32_t i) -> const pte::Value& { return plan.values[static_cast<std::size_t>(i)]; };
  std::vector<ProgramTensor> tensors;
  for (const pte::Instruction& instruction : plan.instructions) {
    const auto* call = std::get_if<pte::DelegateCall>(&instruction);
    if (!call || static_cast<std::size_t>(call->delegate) != delegate) continue;
    for (std::int32_t v : call->args) {
      const auto* known = std::get_if<pte::TensorValue>(&value(v));
      ProgramTensor tensor{
          known ? to_string(TensorType{
                      known->dtype, Shape(std::vector<std::int64_t>(known->sizes.begin(), known->sizes.end())), {}})
                : "no tensor"};
      for (const pte::Instruction& other : plan.instructions) {
        const auto* kernel = std::get_if<pte::KernelCall>(&other);
        if (!kernel || kernel->args.size() < 3) continue;
        const std::string& op = plan.operators[static_cast<std::size_t>(kernel->op)].name;
        const bool gives = op == "quantized_decomposed::quantize_per_tensor" && kernel->args.back() == v;
        const bool takes = op == "quantized_decomposed::dequantize_per_tensor" && kernel->args[0] == v;
        const auto* scale = std::get_if<double>(&value(kernel->args[1]));
        const auto* zero = std::get_if<std::int64_t>(&value(kernel->args[2]));
        if ((gives || takes) && scale && zero) tensor = {tensor.type, true, *scale, *zero};
      }
      tensors.push_back(std::move(tensor));
    }
    break;
  }
  return tensors;
}

// A payload that cannot be read is shown as that: the program around it is worth seeing all the same.
Result<Inspection> inspect_payload(const Bytes& bytes, const std::vector<ProgramTensor>& tensors,
                                   const std::map<std::string, Bytes>& data, const InspectOptions& options,
                                   const std::string& indent) {
  auto payload = vela::read(bytes);
  if (payload.ok()) return inspect_ethos_u(*payload, tensors, data, options, indent);
  if (options.disassemble || options.registers) return payload.error();
  return Inspection{fmt::format("{}unreadable {}\n", indent, payload.error().message),
                    fmt::format("{{\"error\": {}}}", json_quote(payload.error().message))};
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
      if (tosa_file::is_tosa(payload)) {
        const auto graph = tosa_graph(d, data, d.id + " payload");
        if (graph.ok()) out.text += inspect_tosa(*graph, payload, d.id + " payload").text;
      } else if (d.id == "VgfBackend") {
        auto inner = inspect_vgf(payload, d.id + " payload");
        if (!inner.ok()) return std::move(inner.error()).at({fmt::format("{} (delegate {})", name, i), 0, ""});
        out.text += inner->text;
        delegates += ", \"vgf\": " + inner->json;
      } else if (d.id == "VulkanBackend") {
        auto inner = inspect_vulkan_backend(payload, fmt::format("{} (delegate {})", name, i), "    ");
        if (!inner.ok()) return std::move(inner.error());
        out.text += inner->text;
        delegates += ", \"vulkan_backend\": " + inner->json;
      } else if (d.id == "EthosUBackend") {
        auto inner = inspect_payload(payload, delegate_tensors(plan, i), data, options, "    ");
        if (!inner.ok()) return std::move(inner.error()).at({fmt::format("{} (delegate {})", name, i), 0, ""});
        out.text += inner->text;
        delegates += ", \"ethos_u\": " + inner->json;
      } else if (d.id == "TosaicVulkan") {
        auto inner = inspect_vulkan(payload, data, "    ");
        if (!inner.ok()) return std::move(inner.error()).at({fmt::format("{} (delegate {})", name, i), 0, ""});
        out.text += inner->text;
        delegates += ", \"vulkan\": " + inner->json;
      }
      delegates += "}";
    }
    plans += fmt::format(
        "{}{{\"name\": {}, \"inputs\": [{}], \"outputs\": [{}], \"instructions\": {}, \"arena_bytes\": {}, "
        "\"delegates\": [{}]}}",
        plans.empty() ? "" : ", ", json_quote(plan.name), inputs, outputs, plan.instructions.size(), arena, delegates);
  }
  out.json = fmt::format("{{\"format\": \"pte\", \"bytes\": {}, \"methods\": [{}]}}", file.size(), plans);
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
