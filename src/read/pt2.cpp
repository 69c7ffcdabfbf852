// SPDX-License-Identifier: Apache-2.0
// The archive: where each torch version keeps the program, its weights and its sample inputs.
#include "read/pt2.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <utility>

#include "formats/zip/zip.h"
#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ops/operator_name.h"
#include "read/assumption.h"
#include "read/foreign_file.h"
#include "read/guards.h"
#include "read/json.h"
#include "read/program_graph.h"
#include "read/read_error.h"
#include "read/sample_inputs.h"

namespace tosaic {
namespace {

constexpr std::int64_t schema_major = 8, newest_minor = 20;  // torch._export.serde.schema, torch 2.15

// The records that hold one program.
struct Records {
  std::string name;  // of the method
  std::string program, samples;
  std::vector<std::pair<std::string, std::string>> configs;  // JSON record, folder of the raw storages
  std::vector<std::string> pickles;
};

// Everything lies under one folder, named after the file; torch 2.7 and earlier had none.
std::string root_of(const zip::Archive& archive) {
  if (archive.entries().empty() || archive.find("serialized_exported_program.json")) return "";
  const std::string& first = archive.entries().front().name;
  const auto slash = first.find('/');
  return slash == std::string::npos ? "" : first.substr(0, slash + 1);
}

std::vector<Records> find_programs(const zip::Archive& archive, const std::string& root) {
  std::vector<Records> found;
  const std::string folder = root + "models/";
  for (const zip::Entry& entry : archive.entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(".json")) continue;
    const std::string model = entry.name.substr(folder.size(), entry.name.size() - folder.size() - 5);
    Records r;
    r.name = model == "model" ? "forward" : model;
    r.program = entry.name;
    r.samples = root + "data/sample_inputs/" + model + ".pt";
    for (const char* kind : {"weights", "constants"}) {
      const std::string data = root + "data/" + kind + "/";
      r.configs.emplace_back(data + model + "_" + kind + "_config.json", data);
      r.pickles.push_back(data + model + ".pt");  // torch 2.8
    }
    found.push_back(std::move(r));
  }
  if (found.empty() && archive.find(root + "serialized_exported_program.json"))
    found.push_back({"forward",
                     root + "serialized_exported_program.json",
                     root + "serialized_example_inputs.pt",
                     {},
                     {root + "serialized_state_dict.pt", root + "serialized_constants.pt"}});
  return found;
}

std::string_view record_text(const zip::Archive& archive, const std::string& record, Bytes& keep) {
  const zip::Entry* entry = archive.find(record);
  if (!entry) return {};
  keep = value_or_fail(archive.read(*entry));
  return keep.text();
}

void check_version(const ExportedProgram& program, const Sink& sink) {
  const std::string wrote = fmt::format("torch {} (schema {}.{})",
                                        program.torch_version.empty() ? "of unknown version" : program.torch_version,
                                        program.schema_major, program.schema_minor);
  if (program.schema_major != schema_major)
    fail(error("pt2.schema-version",
               fmt::format("the program was saved by {}, but tosaic reads schema {}", wrote, schema_major))
             .note("torch 2.6 to 2.15 write schema 8")
             .hint(program.schema_major < schema_major
                       ? "export the model again with torch 2.9 or later: such old files cannot be loaded by it either"
                       : "export the model with torch 2.15, or look for a newer tosaic"));
  if (program.schema_minor > newest_minor)
    sink(warning("pt2.newer-schema", fmt::format("the program was saved by {}; tosaic knows up to {}.{}", wrote,
                                                 schema_major, newest_minor))
             .note("parts that are new in it are not read"));
}

// The tree specs of the root module's call.
std::pair<std::string_view, std::string_view> tree_specs(const Json& graph_module) {
  if (auto calls = graph_module.find("module_call_graph"))
    for (const Json& call : calls->items())
      if (auto signature = call.find("signature"); signature && call.at("fqn").text().empty())
        return {signature->at("in_spec").text(), signature->at("out_spec").text()};
  return {};
}

// x[mask] has no fewer rows than none, and no more than the mask has elements; nor has torch.where(mask) places: what
// torch.export asserts of every mask.
std::vector<std::string> bounds_of_masked_rows(const Graph& graph) {
  std::vector<std::string> certain;
  for (const Node& node : graph.nodes) {
    const bool rows = node.op == aten::op::index_Tensor, places = gives_indices(node);
    const ValueId mask = node.inputs.empty() ? no_value : node.inputs.back();
    if ((!rows && !places) || mask == no_value || !graph[mask].type.shape.is_static()) continue;
    if (rows && graph[mask].type.dtype != DType::boolean) continue;
    for (ValueId v : node.outputs)
      for (const Dim& dim : v == no_value ? std::vector<Dim>() : graph[v].type.shape.dims())
        for (const Symbol& symbol : dim.symbols()) {
          certain.push_back(symbol.name + " >= 0");
          certain.push_back(fmt::format("{} <= {}", symbol.name, graph[mask].type.shape.elements()));
        }
  }
  return certain;
}

// What a module assumes of numbers that it computes it asserts, and raises an exception; what is compiled goes on
// (api/assumptions.h is for what runs by itself).
// draft_export takes the example's side of a branch: up to torch 2.11 no assertion says so, only the condition is left.
void tell_unchecked_assumptions(const Graph& graph, const Sink& sink) {
  std::vector<std::string> assumed;
  const std::vector<std::string> certain = bounds_of_masked_rows(graph);
  LocRef place, condition;
  for (const Node& node : graph.nodes) {
    if (node.op == aten::op::item && node.outputs.size() == 1 && node.outputs[0] != no_value &&
        graph[node.outputs[0]].type.dtype == DType::boolean)
      condition = node.loc;
    if (node.op != aten::op::_assert_scalar) continue;
    const Attr* text = node.attrs.find("assert_msg");
    const std::string* message = text ? std::get_if<std::string>(text) : nullptr;
    const std::string_view found = message ? computed_assumption(*message) : std::string_view();
    const auto is_among = [&](const std::vector<std::string>& list) {
      return std::ranges::find(list, found) != list.end();
    };
    if (found.empty() || is_among(assumed) || is_among(certain)) continue;
    if (assumed.empty()) place = node.loc;
    assumed.emplace_back(found);
  }
  if (assumed.empty() && !condition) return;
  Diagnostic why =
      warning("pt2.unchecked-assumption",
              assumed.empty()
                  ? "the program takes one side of a branch on computed values, whichever side the module would take"
                  : fmt::format("the program is the module's only where {}, of scalars that it computes from its "
                                "inputs; a compiled program does not check that when it runs",
                                fmt::join(assumed, " and ")));
  why.notes = {
      "torch.export.draft_export assumes such things where it cannot trace a branch, torch._check asserts them"};
  why.help = "for a branch on values use torch.where or torch.cond";
  sink(located(std::move(why), assumed.empty() ? condition : place));
}

// The input that a guard names; strict exports of keyword arguments say its place among the call's leaves.
ValueId named_input(const Graph& graph, const FixedValues& fixed, std::string_view name) {
  for (ValueId v : graph.inputs)
    if (graph[v].name == name) return v;
  constexpr std::string_view leaves = "flat_args_";
  std::size_t place = 0;
  if (!name.starts_with(leaves) ||
      std::from_chars(name.data() + leaves.size(), name.data() + name.size(), place).ec != std::errc())
    return no_value;
  std::size_t tensors = place;
  for (const FixedValue& other : fixed) {
    if (other.position == place) return no_value;
    tensors -= other.position < place;
  }
  return tensors < graph.inputs.size() ? graph.inputs[tensors] : no_value;
}

// Those that hold whatever the sizes are need no keeping.
void read_guards(const Json& root, Graph& graph, const FixedValues& fixed, const Sink& sink) {
  const auto list = root.find("guards_code");
  if (!list) return;
  const SizeOf size_of = [&](std::string_view name, std::int64_t dim) -> std::optional<Dim> {
    const ValueId v = named_input(graph, fixed, name);
    if (v == no_value || dim < 0 || dim >= graph[v].type.rank()) return std::nullopt;
    return graph[v].type.shape[static_cast<int>(dim)];
  };
  std::vector<std::string> unread;
  for (const Json& item : list->items()) {
    auto guard = read_guard(item.text(), size_of);
    if (!guard) {
      unread.push_back(guard_text(item.text()));
    } else if (const Bounds bounds = guard->violation.bounds(); bounds.lowest != 0 || bounds.highest != 0) {
      if (std::ranges::find(graph.guards, *guard) == graph.guards.end()) graph.guards.push_back(*std::move(guard));
    }
  }
  if (!unread.empty())
    sink(warning("pt2.unchecked-assumption",
                 fmt::format("the program is the module's only where {}; that is not checked when it runs",
                             fmt::join(unread, " and "))));
}

// One program more: `root` is what PyTorch serialised. Its sample inputs are read apart.
Method& read_method(const std::string& name, const Json& root, ProgramWeights& weights, const Sink& sink,
                    ExportedProgram& program) {
  const ProgramTypes types(root.find("range_constraints"));
  const Json graph_module = root.at("graph_module");
  ProgramGraph read = read_program_graph(graph_module, name, {types, weights, sink});
  tell_unchecked_assumptions(read.graph, sink);
  const auto [input_spec, output_spec] = tree_specs(graph_module);
  Method method;
  method.name = name;
  method.input_spec = input_spec;
  method.output_spec = output_spec;
  method.graph = std::move(read.graph);
  read_guards(root, method.graph, read.fixed_inputs, sink);
  method.fixed_inputs = std::move(read.fixed_inputs);
  method.fixed_outputs = std::move(read.fixed_outputs);
  method.scalar_outputs = std::move(read.scalar_outputs);
  method.read_buffers = std::move(read.read_buffers);
  method.written_inputs = std::move(read.written_inputs);
  return program.methods.emplace_back(std::move(method));
}

void read_version(const Json& root, const Sink& sink, ExportedProgram& program) {
  const Json schema = root.at("schema_version");
  program.schema_major = schema.at("major").integer();
  program.schema_minor = schema.at("minor").integer();
  if (auto torch = root.find("torch_version")) program.torch_version = torch->text();
  check_version(program, sink);
}

class ArchiveReader {
 public:
  ArchiveReader(const zip::Archive& archive, const std::string& name, const Sink& sink)
      : archive_(archive), name_(name), sink_(sink) {}

  ExportedProgram read() {
    const std::string root = root_of(archive_);
    Bytes keep;
    if (auto order = record_text(archive_, root + "byteorder", keep); !order.empty() && order != "little")
      fail(error("pt2.byte-order", fmt::format("{} was written with byte order '{}'", name_, order))
               .hint("save it on a little-endian machine"));
    const auto programs = find_programs(archive_, root);
    if (programs.empty()) fail(foreign_archive(archive_, name_));
    for (const Records& records : programs) read_program(records);
    return std::move(program_);
  }

 private:
  void read_program(const Records& records) {
    Bytes keep;
    const JsonDocument document(record_text(archive_, records.program, keep), records.program);
    read_version(document.root(), sink_, program_);
    if ((records.configs.empty() || !archive_.find(records.configs[0].first)) && archive_.find(records.pickles[0]))
      sink_(warning("pt2.old-torch", fmt::format("torch {} saved this program in a layout that was soon replaced",
                                                 program_.torch_version))
                .hint("save it again with torch 2.9 or later if anything looks wrong"));

    ProgramWeights weights(archive_, sink_);
    for (const auto& [config, folder] : records.configs) weights.add_config(config, folder);
    for (const auto& pickle : records.pickles) weights.add_pickle(pickle);
    Method& method = read_method(records.name, document.root(), weights, sink_, program_);
    read_samples(records, document.root().at("graph_module"), method);
  }

  // They are a convenience: a program is not refused because of them.
  void read_samples(const Records& records, const Json& graph_module, Method& method) {
    const zip::Entry* entry = archive_.find(records.samples);
    const std::string_view input_spec = tree_specs(graph_module).first;
    if (!entry || input_spec.empty()) return;
    try {
      const Bytes file = value_or_fail(archive_.read(*entry));
      if (file.empty()) return;  // how torch.export.save writes "none"
      method.sample_inputs.push_back(
          read_sample_inputs(file, records.samples, input_spec, graph_module.at("signature"), method.graph));
    } catch (ReadError& e) {
      sink_(warning("pt2.sample-inputs",
                    fmt::format("the sample inputs of '{}' are ignored: {}", method.name, e.why.message)));
    }
  }

  const zip::Archive& archive_;
  const std::string& name_;
  const Sink& sink_;
  ExportedProgram program_;
};

ExportedProgram read_from(HeldProgram held, const std::string& name, const Sink& sink) {
  const zip::Archive none;
  ExportedProgram program;
  const JsonDocument document(held.json, name);
  read_version(document.root(), sink, program);
  ProgramWeights weights(none, sink);
  for (auto& [tensor, t] : held.tensors)
    weights.add_tensor(tensor, {std::move(t.storage), t.dtype, std::move(t.sizes), std::move(t.strides), t.offset});
  Method& method = read_method("forward", document.root(), weights, sink, program);
  for (const std::vector<OwnedTensor>& set : held.samples)
    method.sample_inputs.push_back(sample_set(set, method.graph));
  return program;
}

}  // namespace

Result<ExportedProgram> read_pt2(const Bytes& bytes, const std::string& name, const Sink& sink) {
  const Sink quiet = [](Diagnostic) {};
  const auto archive = zip::Archive::open(bytes, name);
  if (!archive.ok()) {
    auto foreign = archive.error().code == "zip.not-a-zip" ? foreign_file(bytes, name) : std::nullopt;
    return foreign ? *std::move(foreign) : archive.error();
  }
  try {
    return ArchiveReader(*archive, name, sink ? sink : quiet).read();
  } catch (ReadError& e) {
    if (e.why.place.file.empty()) e.why.place.file = name;
    return std::move(e.why);
  }
}

Result<ExportedProgram> read_held(HeldProgram held, const std::string& name, const Sink& sink) {
  try {
    ExportedProgram program = read_from(
        std::move(held), name, sink ? sink : [](Diagnostic) {});
    // What the module writes when it runs must not become what the program begins with.
    for (Method& method : program.methods)
      for (State& state : method.graph.states)
        if (!state.initial.null()) state.initial = Bytes::copy(state.initial.data(), state.initial.size());
    return program;
  } catch (ReadError& e) {
    if (e.why.place.file.empty()) e.why.place.file = name;
    return std::move(e.why);
  }
}

Result<ExportedProgram> read_pt2(const std::string& path, const Sink& sink) {
  TOSAIC_TRY(const Bytes bytes, map_file(path));
  return read_pt2(bytes, path, sink);
}

void keep_together(ExportedProgram& program) {
  std::set<std::string> written;
  for (const Method& method : program.methods)
    for (const State& state : method.graph.states) written.insert(state.name);
  for (Method& method : program.methods) {
    std::erase_if(method.read_buffers, [&](const auto& buffer) {
      const auto& [name, value] = buffer;
      if (!written.contains(name)) return false;
      const Bytes content = std::exchange(method.graph[value].constant, {});
      method.graph.states.push_back({name, value, value, Bytes::copy(content.data(), content.size())});
      return true;
    });
  }
}

Result<const Method*> only_method(const ExportedProgram& program) {
  if (program.methods.size() == 1) return &program.methods[0];
  return error("model.methods", fmt::format("the program has {} methods, one is expected", program.methods.size()))
      .hint("compile them together, or ask about one of them: save it in a .pt2 of its own");
}

}  // namespace tosaic
