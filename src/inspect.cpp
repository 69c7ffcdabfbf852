// SPDX-License-Identifier: Apache-2.0
// What is in a file, told apart by its first bytes: text for people, JSON for programs.
#include <fmt/format.h>
#include <map>

#include "formats/npy/npy.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/zip/zip.h"
#include "message.h"
#include "read/pt2.h"

namespace tosaic {
namespace {

struct Inspected {
  std::string text, json;
};

std::string counted(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op];
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
  for (const Node& node : graph.nodes) ++counts[node.op];
  std::string ops;
  for (const auto& [op, n] : counts) ops += fmt::format("{}{}: {}", ops.empty() ? "" : ", ", json_quote(op), n);
  return fmt::format("{{\"name\": {}, \"inputs\": {}, \"outputs\": {}, \"nodes\": {}, \"operators\": {{{}}}}}",
                     json_quote(graph.name), types_json(graph, graph.inputs), types_json(graph, graph.outputs),
                     graph.nodes.size(), ops);
}

Result<Inspected> inspect_tosa(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(Graph graph, tosa_file::read(file, name));
  Inspected out;
  out.text = fmt::format("{}: TOSA 1.0 graph, {} operators, {} bytes\n{}\n{}", name, graph.nodes.size(), file.size(),
                         counted(graph), print(graph));
  out.json = fmt::format("{{\"format\": \"tosa\", \"bytes\": {}, \"graph\": {}}}", file.size(), graph_json(graph));
  return out;
}

Result<Inspected> inspect_pt2(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(ExportedProgram program, read_pt2(file, name, {}));
  Inspected out;
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

Result<Inspected> inspect_pte(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(pte::Program program, pte::read(file, name));
  Inspected out;
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
    for (const pte::Delegate& d : plan.delegates)
      delegates += fmt::format("{}{{\"id\": {}, \"bytes\": {}}}", delegates.empty() ? "" : ", ", json_quote(d.id),
                               d.payload.size());
    for (std::size_t i = 0; i < plan.instructions.size(); ++i)
      out.text += fmt::format("  {:>4} {}\n", i, instruction_text(plan, plan.instructions[i]));
    for (const pte::Delegate& d : plan.delegates) {
      out.text += fmt::format("  delegate {}: {} bytes\n", d.id, d.payload.size());
      for (const auto& spec : d.specs) out.text += fmt::format("    spec {} ({} bytes)\n", spec.key, spec.value.size());
      if (d.payload.size() >= 8 && d.payload.text().substr(4, 4) == "TOSA") {
        auto inner = inspect_tosa(d.payload, d.id + " payload");
        if (inner.ok()) out.text += inner->text;
      }
    }
    plans += fmt::format(
        "{}{{\"name\": {}, \"inputs\": [{}], \"outputs\": [{}], \"instructions\": {}, \"arena_bytes\": {}, "
        "\"delegates\": [{}]}}",
        plans.empty() ? "" : ", ", json_quote(plan.name), inputs, outputs, plan.instructions.size(), arena, delegates);
  }
  out.json = fmt::format("{{\"format\": \"pte\", \"bytes\": {}, \"methods\": [{}]}}", file.size(), plans);
  return out;
}

Result<Inspected> inspect_arrays(const Bytes& file, const std::string& name, bool archive) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  if (archive) {
    TOSAIC_TRY(arrays, npy::read_npz(file, name));
  } else {
    TOSAIC_TRY(Tensor tensor, npy::read(file, name));
    arrays.emplace_back("", std::move(tensor));
  }
  Inspected out;
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

Result<Inspected> inspect_graph_text(const Bytes& file, const std::string& name) {
  TOSAIC_TRY(Graph graph, parse(file.text(), name));
  return Inspected{fmt::format("{}: graph text\n{}\n{}", name, counted(graph), print(graph)),
                   fmt::format("{{\"format\": \"text\", \"graph\": {}}}", graph_json(graph))};
}

Result<Inspected> try_inspect(const std::string& path) {
  TOSAIC_TRY(Bytes file, map_file(path));
  std::string_view head = file.text().substr(0, 16);
  if (head.size() >= 8 && head.substr(4, 4) == "TOSA") return inspect_tosa(file, path);
  if (head.size() >= 8 && head.substr(4, 2) == "ET") return inspect_pte(file, path);
  if (head.starts_with("\x93NUMPY")) return inspect_arrays(file, path, false);
  if (head.starts_with("graph ")) return inspect_graph_text(file, path);
  if (head.starts_with("PK")) {
    TOSAIC_TRY(zip::Archive archive, zip::Archive::open(file, path));
    bool arrays = !archive.entries().empty() && archive.entries()[0].name.ends_with(".npy");
    return arrays ? inspect_arrays(file, path, true) : inspect_pt2(file, path);
  }
  return error("inspect.unknown-format", path + " is none of .pt2, .tosa, .pte, .npy, .npz").at({path, 0, ""});
}

}  // namespace

InspectOutcome inspect(const std::string& file) {
  auto result = try_inspect(file);
  if (!result.ok()) return {to_message(result.error()), "", ""};
  return {std::nullopt, std::move(result->text), std::move(result->json)};
}

}  // namespace tosaic
