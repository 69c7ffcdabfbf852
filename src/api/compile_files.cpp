// SPDX-License-Identifier: Apache-2.0
// Compilation from files into files: all of them are written, or none.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>

#include "api/artifact.h"
#include "api/compile_options.h"
#include "api/firmware.h"
#include "api/guard.h"
#include "api/program.h"
#include "base/system/output.h"
#include "read/samples.h"
#include "targets/target.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

// Of the targets' own; nullptr: none of them makes such a thing.
const Target* target_that_emits(const std::string& kind) {
  for (const Target& target : all_targets())
    if (target.emits && target.emits->name == kind) return &target;
  return nullptr;
}

// The pieces that are one file each, and the ending of a file that holds it.
const std::vector<std::pair<std::string, std::string>>& piece_files() {
  static const auto files = [] {
    std::vector<std::pair<std::string, std::string>> list{{"pte", ".pte"}, {"header", ".h"}, {"tosa", ".tosa"}};
    for (const Target& target : all_targets()) {
      if (!target.emits || target.emits->is_file_in_folder) continue;
      const std::pair row(target.emits->name, "." + target.emits->name);
      if (std::ranges::find(list, row) == list.end()) list.push_back(row);
    }
    list.emplace_back(manifest_piece, ".json");
    return list;
  }();
  return files;
}

bool is_one_file(const std::string& kind) {
  return std::ranges::any_of(piece_files(), [&](const auto& row) { return row.first == kind; });
}

// What --emit takes: all but the program and its manifest, which have options of their own.
std::string emit_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, ending] : piece_files())
    if (kind != "pte" && kind != manifest_piece) kinds.push_back(kind);
  for (const Target& target : all_targets())
    if (target.emits && std::ranges::find(kinds, target.emits->name) == kinds.end())
      kinds.push_back(target.emits->name);
  kinds.emplace_back(firmware_piece);
  return fmt::format("{}", fmt::join(kinds, ", "));
}

using Wanted = std::vector<std::pair<std::string, std::string>>;  // kind, path

// What is asked for by name and by the output's ending, which says the same as a name does.
Result<Wanted> wanted_of(const CompileRequest& request) {
  Wanted wanted(request.emit.begin(), request.emit.end());
  for (const auto& [kind, path] : wanted) {
    const auto said = piece_in_file(path);
    if (is_one_file(kind) && said.ok() && *said != kind)
      return error("compile.emit", fmt::format("{} would hold the {}, and its ending says {}", path, kind, *said))
          .hint("end the name with what it holds");
  }
  if (!request.output.empty()) {
    TOSAIC_TRY(std::string kind, piece_in_file(request.output));
    wanted.emplace_back(std::move(kind), request.output);
  }
  if (!request.report.empty()) wanted.emplace_back(manifest_piece, request.report);
  return wanted;
}

// What cannot be written is worth saying before the work, not after it.
Result<Wanted> plan(Outputs& outputs, const CompileRequest& request) {
  for (const auto& [name, path] : request.methods) outputs.reads(path);
  for (const auto& [name, path] : request.calibrate_methods) outputs.reads(path);
  for (const std::string& path :
       {request.model, request.calibrate, request.options.text("vela-config"), request.options.text("plan")})
    outputs.reads(path);
  const std::string commands = request.options.of_kind("external", "commands");
  std::string weights = request.options.of_kind("external", "weights");
  if (weights == commands) weights.clear();  // one file takes both
  for (const std::string& path : {commands, weights})
    if (!path.empty()) TOSAIC_CHECK(outputs.plan(path));
  for (const auto& [kind, path] : request.emit) {
    if (kind == firmware_piece) {
      TOSAIC_CHECK(outputs.plan_folder(path, firmware::is_firmware_file));
      continue;
    }
    const Target* target = target_that_emits(kind);
    if (!target && !is_one_file(kind))
      return error("compile.emit", fmt::format("there is nothing called '{}' to write", kind))
          .hint(fmt::format("{} can be emitted", emit_kinds()));
    const bool folder = target && target->emits->is_file_in_folder;
    TOSAIC_CHECK(folder ? outputs.plan_folder(path, target->emits->is_file_in_folder) : outputs.plan(path));
  }
  for (const std::string& path : {request.output, request.report})
    if (!path.empty()) TOSAIC_CHECK(outputs.plan(path));
  return wanted_of(request);  // endings last: a name that is taken twice says more than how it ends
}

// One file per delegate: `path` itself when there is one, else numbered.
Status write_per_delegate(Outputs& outputs, const std::string& kind, const std::string& path, const Artifact& artifact,
                          const Messages& messages) {
  const std::size_t count = artifact.summary().delegates;
  const Target* target = target_that_emits(kind);
  const std::string what = target ? target->emits->what : "TOSA graph";
  if (target && artifact.impl().options.target.family != target->family)
    return error("compile.emit", fmt::format("the target {} makes no {}", artifact.summary().target, what))
        .hint(fmt::format("use --target {}", target->name));
  if (count == 0)
    return error("compile.no-delegate",
                 fmt::format("no part of the model was delegated, so there is no {} to write", what))
        .hint("`tosaic explain` says what stays outside the delegate and why");
  const std::filesystem::path whole(path);
  std::string written;
  for (std::size_t i = 0; i < count; ++i) {
    std::filesystem::path name = whole;
    if (count > 1) name.replace_filename(fmt::format("{}_{}{}", whole.stem().string(), i, whole.extension().string()));
    TOSAIC_TRY(const Rope file, file_of(artifact.impl(), count > 1 ? fmt::format("{}/{}", kind, i) : kind));
    TOSAIC_CHECK(outputs.write(name.string(), file));
    written += (i ? ", " : "") + name.string();
  }
  if (count > 1 && messages) {
    Diagnostic note =
        warning("compile.several-delegates", fmt::format("{} delegates, a {} each: {}", count, what, written));
    note.severity = Severity::note;
    messages(note);
  }
  return {};
}

Status write_results(Outputs& outputs, const CompileRequest& request, const Wanted& wanted, const Artifact& artifact,
                     const Messages& messages) {
  const std::string& model = request.methods.empty() ? request.model : request.methods[0].second;
  const bool limited = request.options.has("flash") || request.options.has("sram");
  if (limited && artifact.impl().compiled.target.becomes_c && !request.emit.contains(firmware_piece))
    TOSAIC_CHECK(firmware_of(artifact.impl(), firmware_name(model)));  // does it fit?
  for (const auto& [kind, path] : wanted) {
    if (kind == firmware_piece) {
      TOSAIC_TRY(const auto files, firmware_of(artifact.impl(), firmware_name(model)));
      TOSAIC_CHECK(make_folder(path));
      for (const firmware::SourceFile& file : files)
        TOSAIC_CHECK(outputs.write((std::filesystem::path(path) / file.name).string(),
                                   Bytes::copy(file.text.data(), file.text.size())));
    }
    if (!is_one_file(kind)) continue;  // a folder, filled while emitting
    if (kind == manifest_piece) {
      TOSAIC_TRY(const std::string text, artifact.manifest());
      TOSAIC_CHECK(outputs.write(path, Bytes::copy(text.data(), text.size())));
    } else if (kind == "pte" || kind == "header") {
      TOSAIC_TRY(const Rope file, file_of(artifact.impl(), kind));
      TOSAIC_CHECK(outputs.write(path, file));
    } else {
      TOSAIC_CHECK(write_per_delegate(outputs, kind, path, artifact, messages));
    }
  }
  const auto apart = external_names(artifact.impl().compiled);
  for (const std::string& name : apart) {
    TOSAIC_TRY(const Rope file, file_of(artifact.impl(), external_piece + name));
    TOSAIC_CHECK(outputs.write(name, file));
  }
  for (const char* kind : {"weights", "commands"})
    if (const std::string path = request.options.of_kind("external", kind);
        !path.empty() && std::ranges::find(apart, path) == apart.end() && messages)
      messages(warning("external.none", fmt::format("{} is not written: no delegate has {} to keep in it", path, kind))
                   .hint("the .pte is whole without it; `tosaic explain` says what stays outside delegates and why"));
  return outputs.commit();
}

Result<Program> read_model(const CompileRequest& request, const Messages& messages) {
  std::vector<std::pair<std::string, Program>> parts;
  for (const auto& [name, path] : request.methods) {
    TOSAIC_TRY(Bytes file, map_file(path));
    TOSAIC_TRY(Program part, read_program(std::move(file), path, messages));
    parts.emplace_back(name, std::move(part));
  }
  if (!parts.empty()) return Program::together(parts, request.methods[0].second);
  TOSAIC_TRY(Bytes model, map_file(request.model));
  return read_program(std::move(model), request.model, messages);
}

std::vector<std::pair<std::string, SamplesFor>> sample_files(const CompileRequest& request) {
  auto named = request.calibrate_methods;
  if (!request.calibrate.empty()) named.insert(named.begin(), {"", request.calibrate});
  std::vector<std::pair<std::string, SamplesFor>> samples;
  for (const auto& [method, path] : named)
    samples.emplace_back(method,
                         [path = path](const Graph& graph) -> Result<Samples> { return read_samples(path, graph); });
  return samples;
}

// What is wrong with samples is wrong in the file that they come from, where that is one.
Diagnostic in_file_of_samples(Diagnostic why, const CompileRequest& request) {
  std::vector<std::string> files;
  if (!request.calibrate.empty()) files.push_back(request.calibrate);
  for (const auto& [method, path] : request.calibrate_methods) files.push_back(path);
  if (files.size() == 1 && why.code.starts_with("calibrate.") && why.place.file.empty()) why.place.file = files[0];
  return why;
}

SampleSource source_of(const Samples& samples) {
  std::vector<std::vector<OwnedTensor>> all;
  for (const auto& sample : samples) {
    auto& tensors = all.emplace_back();
    for (const Tensor& t : sample) tensors.push_back(owned(t));
  }
  return samples_of(std::move(all));
}

}  // namespace

Result<std::string> piece_in_file(const std::string& path) {
  std::vector<std::string> endings;
  for (const auto& [kind, known] : piece_files()) {
    if (path.ends_with(known)) return kind;
    endings.push_back(known);
  }
  return error("artifact.ending", fmt::format("what is to be written to '{}'?", path))
      .hint(fmt::format("end the name with what it is to hold: {}", fmt::join(endings, ", ")));
}

Result<Artifact> compile(const CompileRequest& request, const Callbacks& callbacks) {
  const std::string& name = request.methods.empty() ? request.model : request.methods[0].second;
  return guarded(name, [&]() -> Result<Artifact> {
    Outputs outputs;
    TOSAIC_TRY(const Wanted wanted, plan(outputs, request));
    Options options = request.options;
    for (const auto& [kind, path] : request.emit)
      if (const Target* target = target_that_emits(kind); target && !target->emits->option.empty())
        options.set(target->emits->option, path);
    if (const auto known = compile_options_for(request.target, options); !known.ok()) return known.error();
    TOSAIC_TRY(const Program program, read_model(request, callbacks.message));
    TOSAIC_TRY(SamplesOfMethods samples, by_method(program, sample_files(request)));
    Result<Artifact> artifact =
        make_artifact(program, request.target, options, callbacks, std::move(samples), {.written_at_once = true});
    if (!artifact.ok()) return in_file_of_samples(std::move(artifact.error()), request);
    TOSAIC_CHECK(write_results(outputs, request, wanted, *artifact, callbacks.message));
    return artifact;
  });
}

Result<SampleSource> read_samples(const std::string& path, const Program& program, const std::string& method) {
  return guarded(path, [&]() -> Result<SampleSource> {
    TOSAIC_TRY(const Method* which, method_of_samples(program, method));
    TOSAIC_TRY(const Samples samples, read_samples(path, which->graph));
    return source_of(samples);
  });
}

Result<Evaluation> read_evaluation(const std::string& path, const Program& program) {
  return guarded(path, [&]() -> Result<Evaluation> {
    TOSAIC_TRY(const Method* which, method_of_samples(program, ""));
    TOSAIC_TRY(LabelledSamples read, read_labelled_samples(path, which->graph));
    return Evaluation{source_of(read.samples), std::move(read.labels)};
  });
}

}  // namespace tosaic
