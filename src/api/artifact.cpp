// SPDX-License-Identifier: Apache-2.0
#include "api/artifact.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>

#include "api/c_array.h"
#include "api/compile_options.h"
#include "api/guard.h"
#include "api/program.h"
#include "formats/ptd/ptd_file.h"
#include "formats/tosa/tosa_file.h"
#include "ir/source_notes.h"
#include "pipeline/question.h"
#include "pipeline/supports.h"

namespace tosaic {
namespace {

// "tosa" of the only delegate, "tosa/1" of one of several.
std::string of_delegate(const std::string& kind, std::size_t i, std::size_t count) {
  return count == 1 ? kind : fmt::format("{}/{}", kind, i);
}

// What the delegates keep in the .ptd file of that name; those with equal parts share them.
Rope ptd_file(const Compiled& compiled, const std::string& name) {
  std::vector<ptd::Entry> entries;
  for (const Emitted& emitted : compiled.emitted)
    for (const ExternalData& part : emitted.external) {
      const bool known = std::any_of(entries.begin(), entries.end(), [&](const auto& e) { return e.key == part.key; });
      if (part.file == name && !known) entries.push_back({part.key, part.data});
    }
  return ptd::write(entries);
}

struct Piece {
  std::string name;
  std::function<Result<Rope>()> make;
};

// All that there is, nothing of it made yet.
std::vector<Piece> pieces_of(const Artifact::Impl& artifact) {
  const Compiled& compiled = artifact.compiled;
  const bool strip = artifact.options.strip;
  std::vector<Piece> list;
  const auto held = [&](std::string name, const Rope& file) {
    list.push_back({std::move(name), [file]() -> Result<Rope> { return file; }});
  };
  if (!compiled.program.empty()) {
    held("pte", compiled.program);
    list.push_back({"header", [&]() -> Result<Rope> { return c_array(artifact.compiled, artifact.options.emit); }});
  }
  const std::size_t count = compiled.lowered.size();
  for (std::size_t i = 0; i < count; ++i)
    list.push_back({of_delegate("tosa", i, count), [&compiled, i, strip]() -> Result<Rope> {
                      if (compiled.target.payload_is_tosa) return compiled.emitted[i].payload;
                      if (strip) return tosa_file::write(without_source_notes(compiled.lowered[i]));
                      return tosa_file::write(compiled.lowered[i]);
                    }});
  for (std::size_t i = 0; i < compiled.emitted.size(); ++i) {
    const Emitted& emitted = compiled.emitted[i];
    held(of_delegate("payload", i, count), emitted.payload);
    if (!compiled.target.emits) continue;
    const std::string piece = of_delegate(compiled.target.emits->name, i, count);
    if (!compiled.target.emits->is_file_in_folder) held(piece, emitted.payload);
    for (const auto& [name, file] : emitted.files) held(piece + "/" + name, file);
  }
  for (const std::string& name : external_names(compiled))
    list.push_back({external_piece + name, [&compiled, name]() -> Result<Rope> { return ptd_file(compiled, name); }});
  return list;
}

bool is_conversion(const Node& node, const Placement& placement) {
  if (placement.region < 0) return placement.reason.code == "target.conversion";
  return !node.loc && node.op.is_conversion();  // of our quantiser, not the user's
}

std::vector<NodeVerdict> node_verdicts(const std::vector<Verdict>& verdicts) {
  std::vector<NodeVerdict> list;
  for (const Verdict& v : verdicts) {
    NodeVerdict row{.name = v.node.name,
                    .op = v.node.op,
                    .module = v.node.loc ? v.node.loc->module_path : "",
                    .place = place_text(v.node.loc),
                    .taken = v.taken,
                    .pieces = v.pieces,
                    .delegates = v.delegates,
                    .reason = std::nullopt};
    if (!v.taken) row.reason = v.reason;
    list.push_back(std::move(row));
  }
  return list;
}

void describe(const Program& program, const Compiled& compiled, Summary& summary) {
  const Graph& graph = compiled.quantised;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Placement& placement = compiled.partition.placements[n];
    NodePlacement row;
    row.name = node.outputs.empty() || node.outputs[0] == no_value ? "" : graph[node.outputs[0]].name;
    row.op = node.op.text();
    row.place = place_text(node.loc);
    if (node.loc) {
      row.module = node.loc->module_path;
      for (std::string_view name : exported_names(*node.loc)) row.exported.emplace_back(name);
    }
    row.delegate = placement.region;
    if (placement.region < 0) row.reason = placement.reason;
    row.conversion = is_conversion(node, placement);
    summary.delegated += placement.region >= 0 && !row.conversion;
    summary.conversions += row.conversion;
    summary.nodes.push_back(std::move(row));
  }
  summary.exported = node_verdicts(compiled.verdicts);
  summary.target = compiled.target.name;
  summary.tosa_spec = compiled.target.spec.text();
  summary.delegates = compiled.lowered.size();
  summary.stage_seconds = {{"read", program.impl().read_seconds}};
  summary.stage_seconds.insert(summary.stage_seconds.end(), compiled.stage_seconds.begin(),
                               compiled.stage_seconds.end());
  summary.model_bytes = program.impl().file.size();
  for (const Program& part : program.impl().parts) summary.model_bytes += part.impl().file.size();
  summary.program_bytes = compiled.program.size();
  summary.samples = compiled.samples;
  summary.self_check_seconds = compiled.self_check_seconds;
  summary.methods = compiled.methods;
  summary.printed = compiled.printed;
  for (const Emitted& e : compiled.emitted) {
    summary.payload_bytes += e.payload.size();
    summary.peer_seconds += e.peer_seconds;
    if (e.estimate) summary.estimates.push_back(*e.estimate);
  }
  for (const Graph& region : compiled.lowered) summary.tosa_operators += region.nodes.size();
}

Diagnostic no_program() {
  return error("program.empty", "there is no program: it has no methods").hint("give one that Program::open returned");
}

}  // namespace

std::vector<std::string> external_names(const Compiled& compiled) {
  std::set<std::string> names;
  for (const Emitted& emitted : compiled.emitted)
    for (const ExternalData& part : emitted.external)
      if (!part.file.empty()) names.insert(part.file);
  return {names.begin(), names.end()};
}

Result<Rope> file_of(const Artifact::Impl& artifact, std::string_view name) {
  const auto pieces = pieces_of(artifact);
  for (const Piece& piece : pieces)
    if (piece.name == name) return piece.make();
  std::vector<std::string> names;
  for (const Piece& piece : pieces) names.push_back(piece.name);
  return error("artifact.no-piece", fmt::format("the artifact has no piece '{}'", name))
      .hint(names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", ")));
}

SamplesFor samples_from(const SampleSource& source) {
  if (!source) return {};
  return [source](const Graph& graph) -> Result<Samples> {
    Samples samples;
    for (;;) {
      std::vector<InputTensor> lent;
      TOSAIC_TRY(const bool more, source(lent));
      if (!more) break;
      if (lent.size() != graph.inputs.size())
        return error("calibrate.sample-count", fmt::format("sample {} has {} tensors, the program takes {}",
                                                           samples.size(), lent.size(), graph.inputs.size()));
      auto& sample = samples.emplace_back();
      for (std::size_t i = 0; i < lent.size(); ++i) {
        const Value& input = graph[graph.inputs[i]];
        auto tensor =
            borrowed(lent[i], input.type, fmt::format("input '{}' of sample {}", input.name, samples.size() - 1));
        if (!tensor.ok()) {
          tensor.error().code = "calibrate.sample-type";
          return std::move(tensor.error());
        }
        sample.push_back({tensor->type, Bytes::copy(tensor->data.data(), tensor->data.size())});
      }
    }
    if (samples.empty())
      return error("calibrate.no-samples", "the source gives no samples").hint("give at least one sample per input");
    return samples;
  };
}

Result<const Method*> method_of_samples(const Program& program, const std::string& name) {
  const std::vector<Method>& methods = program.impl().exported.methods;
  if (methods.empty()) return no_program();
  if (name.empty() && methods.size() == 1) return &methods[0];
  std::string all;
  for (const Method& method : methods) {
    if (method.name == name) return &method;
    all += (all.empty() ? "" : ", ") + method.name;
  }
  if (!name.empty())
    return error("calibrate.methods",
                 fmt::format("samples are given for '{}', which is no method of the program", name))
        .hint("it has " + all);
  return error("calibrate.methods", fmt::format("the program has the methods {}: whose samples are these?", all))
      .hint(fmt::format(
          "name the method: --calibrate {0}=FILE, in Python calibration={{\"{0}\": ...}}. What is left out is "
          "calibrated with the sample inputs that are saved in its .pt2",
          methods[0].name));
}

Result<SamplesOfMethods> by_method(const Program& program, std::vector<std::pair<std::string, SamplesFor>> samples) {
  SamplesOfMethods found;
  for (auto& [name, source] : samples) {
    if (!source) continue;
    TOSAIC_TRY(const Method* method, method_of_samples(program, name));
    if (!found.try_emplace(method->name, std::move(source)).second)
      return error("calibrate.methods", fmt::format("samples are given twice for method '{}'", method->name))
          .hint("put them in one folder: --calibrate takes that, too");
  }
  return found;
}

Result<SamplesOfMethods> of_only_method(const Program& program, const SampleSource& samples) {
  std::vector<std::pair<std::string, SamplesFor>> sources;
  sources.emplace_back("", samples_from(samples));
  return by_method(program, std::move(sources));
}

Result<CompileCallbacks> callbacks_of(const Program& program, const Callbacks& callbacks, const SampleSource& samples) {
  TOSAIC_TRY(SamplesOfMethods given, of_only_method(program, samples));
  const Sink sink = [&callbacks](const Diagnostic& message) {
    if (callbacks.message) callbacks.message(message);
  };
  return CompileCallbacks{sink, std::move(given), callbacks.progress, callbacks.cancelled};
}

Result<Artifact> make_artifact(const Program& given, const std::string& target, const Options& options,
                               const Callbacks& callbacks, SamplesOfMethods samples, Request request) {
  if (given.methods().empty()) return no_program();
  TOSAIC_TRY(CompileOptions how, compile_options_for(target, options));
  TOSAIC_TRY(const Program program, given.with_input_layout(how.input_layout));
  auto impl = std::make_shared<Artifact::Impl>(Artifact::Impl{program, std::move(how), std::move(request), {}, {}});
  Summary& summary = impl->summary;
  const Sink sink = [&](Diagnostic message) {
    if (callbacks.message) callbacks.message(message);
    summary.messages.push_back(std::move(message));
  };
  TOSAIC_TRY(impl->compiled,
             compile_model(program.impl().exported, impl->options,
                           {sink, std::move(samples), callbacks.progress, callbacks.cancelled}, impl->request));
  describe(program, impl->compiled, summary);
  return Artifact(std::move(impl));
}

SampleSource samples_of(std::vector<std::vector<OwnedTensor>> samples) {
  auto all = std::make_shared<const std::vector<std::vector<OwnedTensor>>>(std::move(samples));
  auto next = std::make_shared<std::size_t>(0);
  return [all, next](std::vector<InputTensor>& sample) -> Result<bool> {
    if (*next >= all->size()) {
      *next = 0;  // ready for another compilation
      return false;
    }
    sample.clear();
    for (const OwnedTensor& tensor : (*all)[*next]) sample.push_back(tensor.view());
    ++*next;
    return true;
  };
}

Result<Artifact> compile(const Program& program, const std::string& target, const Options& options,
                         const Callbacks& callbacks, const SampleSource& samples) {
  return guarded(program.name(), [&]() -> Result<Artifact> {
    TOSAIC_TRY(SamplesOfMethods given, of_only_method(program, samples));
    return make_artifact(program, target, options, callbacks, std::move(given), {});
  });
}

Result<Artifact> compile(const Program& program, const std::string& target, const Options& options,
                         const Callbacks& callbacks, const MethodSamples& samples) {
  return guarded(program.name(), [&]() -> Result<Artifact> {
    std::vector<std::pair<std::string, SamplesFor>> sources;
    for (const auto& [method, source] : samples) sources.emplace_back(method, samples_from(source));
    TOSAIC_TRY(SamplesOfMethods given, by_method(program, std::move(sources)));
    return make_artifact(program, target, options, callbacks, std::move(given), {});
  });
}

// What tells a program at some sizes from the same at others.
static std::string sizes_of(const AskedMethod& asked) {
  std::string text = asked.varies ? "varies " : "";
  for (ValueId v : asked.graph.inputs) text += to_string(asked.graph[v].type.shape) + " ";
  return text;
}

// What a program becomes at several sizes is one program for all of them, or it is not taken: only lowering it at each
// tells. The node that stands in the way is named; error: there is none.
static Status is_one_at_all_sizes(const ExportedProgram& program, const std::string& target, const Options& options,
                                  std::vector<Verdict>& verdicts) {
  TOSAIC_TRY(CompileOptions how, compile_options_for(target, options));
  auto made = compile_model(program, how, {}, Request::question());
  if (made.ok()) return {};
  for (Verdict& v : verdicts) {
    if (made.error().context != "node " + v.node.name) continue;
    v.taken = false;
    v.reason = made.error();
    return {};
  }
  return std::move(made).error();
}

Result<std::vector<NodeVerdict>> supports(const Program& given, const std::string& target, const Options& options) {
  return guarded(given.name(), [&]() -> Result<std::vector<NodeVerdict>> {
    TOSAIC_TRY(CompileOptions how, compile_options_for(target, options));
    TOSAIC_TRY(const Program program, given.with_input_layout(how.input_layout));
    const Program::Impl& impl = program.impl();
    TOSAIC_TRY(AskedMethod asked, asked_method(impl.exported, how));
    how.target.spec = asked.spec;
    how.quantise.request = how.quantise.request.of(asked.method->name);
    const FormFor form = form_for(how, asked.spec);
    std::vector<Verdict> verdicts;
    {
      const std::lock_guard<std::mutex> lock(impl.asking);
      std::unique_ptr<Supports>& supports = impl.supports[sizes_of(asked)];
      if (!supports) supports = std::make_unique<Supports>(std::move(asked.graph), exported_nodes(asked.method->graph));
      TOSAIC_TRY(verdicts, supports->about({asked.spec, how.in_integers(), how_to_quantise(how, asked.method->graph),
                                            form.keeps_quantised_weights, form.weight_quantisation, how.quantised_io}));
    }
    if (asked.varies && std::ranges::all_of(verdicts, &Verdict::taken))
      TOSAIC_CHECK(is_one_at_all_sizes(impl.exported, target, options, verdicts));
    return node_verdicts(verdicts);
  });
}

Result<Artifact> explain(const Program& program, const std::string& target, const Options& options,
                         const Callbacks& callbacks) {
  return guarded(program.name(),
                 [&] { return make_artifact(program, target, options, callbacks, {}, Request::question()); });
}

std::string one_line(const Diagnostic& reason) { return reason.notes.empty() ? reason.message : reason.notes.front(); }

Artifact::Artifact(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {
  static const auto none = std::make_shared<const Impl>(Impl{Program(nullptr), {}, {}, {}, {}});
  if (!impl_) impl_ = none;
}

const Summary& Artifact::summary() const { return impl_->summary; }

std::vector<std::string> Artifact::pieces() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_of(*impl_)) names.push_back(piece.name);
  return names;
}

Result<Bytes> Artifact::piece(std::string_view name) const {
  return guarded(impl_->program.name(), [&]() -> Result<Bytes> {
    TOSAIC_TRY(const Rope file, file_of(*impl_, name));
    return file.joined();
  });
}

Result<std::string> Artifact::manifest() const {
  return guarded(impl_->program.name(), [&]() -> Result<std::string> { return tosaic::manifest(*impl_); });
}

}  // namespace tosaic
