// SPDX-License-Identifier: Apache-2.0
// Compilation from files into files: all of them are written, or none.
#include <fmt/format.h>
#include <filesystem>
#include <set>

#include "api/artifact.h"
#include "api/guard.h"
#include "api/program.h"
#include "base/output.h"
#include "read/samples.h"
#include "targets/vela.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

const std::set<std::string> emit_kinds{"tosa", "vgf", "vela", "header"};

// What cannot be written is worth saying before the work, not after it.
Status plan(Outputs& outputs, const CompileRequest& request) {
  for (const std::string& path : {request.model, request.calibrate, request.options.text("vela-config")})
    outputs.reads(path);
  const std::string commands = request.options.of_kind("external", "commands");
  std::string weights = request.options.of_kind("external", "weights");
  if (weights == commands) weights.clear();  // one file takes both
  for (const std::string& path : {request.output, request.report, commands, weights})
    if (!path.empty()) TOSAIC_CHECK(outputs.plan(path));
  for (const auto& [kind, path] : request.emit) {
    if (!emit_kinds.contains(kind))
      return error("compile.emit", fmt::format("there is nothing called '{}' to write", kind))
          .hint("tosa, vgf, vela and header can be emitted");
    TOSAIC_CHECK(kind == "vela" ? outputs.plan_folder(path, is_vela_file) : outputs.plan(path));
  }
  return {};
}

// One file per delegate: `path` itself when there is one, else numbered.
Status write_per_delegate(Outputs& outputs, const std::string& kind, const std::string& path, const Artifact& artifact,
                          const Messages& messages) {
  const std::size_t count = artifact.summary().delegates;
  const char* what = kind == "tosa" ? "TOSA graph" : "VGF file";
  if (count == 0)
    return error("compile.no-delegate",
                 fmt::format("no part of the model was delegated, so there is no {} to write", what))
        .hint("`tosaic explain` says what stays outside the delegate and why");
  if (kind == "vgf" && artifact.impl().options.target.family != "VGF")
    return error("compile.emit-vgf", fmt::format("the target {} makes no VGF files", artifact.summary().target))
        .hint("use --target vgf");
  const std::filesystem::path whole(path);
  std::string written;
  for (std::size_t i = 0; i < count; ++i) {
    std::filesystem::path name = whole;
    if (count > 1) name.replace_filename(fmt::format("{}_{}{}", whole.stem().string(), i, whole.extension().string()));
    TOSAIC_TRY(const Bytes file, artifact.piece(count > 1 ? fmt::format("{}/{}", kind, i) : kind));
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

Status write_results(Outputs& outputs, const CompileRequest& request, const Artifact& artifact,
                     const Messages& messages) {
  for (const char* kind : {"tosa", "vgf"})
    if (const auto found = request.emit.find(kind); found != request.emit.end())
      TOSAIC_CHECK(write_per_delegate(outputs, kind, found->second, artifact, messages));
  for (const auto& [name, file] : external_files(artifact.impl().compiled)) TOSAIC_CHECK(outputs.write(name, file));
  if (!request.report.empty()) {
    TOSAIC_TRY(const std::string text, artifact.manifest());
    TOSAIC_CHECK(outputs.write(request.report, Bytes::copy(text.data(), text.size())));
  }
  for (const auto& [kind, path] : {std::pair<std::string, std::string>{"pte", request.output},
                                   {"header", request.emit.contains("header") ? request.emit.at("header") : ""}}) {
    if (path.empty()) continue;
    TOSAIC_TRY(const Bytes file, artifact.piece(kind));
    TOSAIC_CHECK(outputs.write(path, file));
  }
  return outputs.commit();
}

}  // namespace

Result<Artifact> compile(const CompileRequest& request, const Callbacks& callbacks) {
  return guarded(request.model, [&]() -> Result<Artifact> {
    Outputs outputs;
    TOSAIC_CHECK(plan(outputs, request));
    Options options = request.options;
    if (const auto vela = request.emit.find("vela"); vela != request.emit.end())
      options.set("vela-files", vela->second);
    if (const auto known = compile_options_for(request.target, options); !known.ok()) return known.error();
    TOSAIC_TRY(Bytes model, map_file(request.model));
    TOSAIC_TRY(const Program program, read_program(std::move(model), request.model, callbacks.message));
    SamplesFor samples;
    if (!request.calibrate.empty())
      samples = [&](const Graph& graph) -> Result<std::optional<Samples>> {
        TOSAIC_TRY(Samples read, read_samples(request.calibrate, graph));
        return std::optional(std::move(read));
      };
    TOSAIC_TRY(Artifact artifact, make_artifact(program, request.target, options, callbacks, samples, true));
    TOSAIC_CHECK(write_results(outputs, request, artifact, callbacks.message));
    return artifact;
  });
}

Result<SampleSource> read_samples(const std::string& path, const Program& program) {
  return guarded(path, [&]() -> Result<SampleSource> {
    const auto& methods = program.impl().exported.methods;
    if (methods.size() != 1) return error("model.methods", "the archive holds several models, one is expected");
    TOSAIC_TRY(const Samples samples, read_samples(path, methods[0].graph));
    std::vector<std::vector<OwnedTensor>> all;
    for (const auto& sample : samples) {
      auto& tensors = all.emplace_back();
      for (const Tensor& t : sample) tensors.push_back(owned(t));
    }
    return samples_of(std::move(all));
  });
}

}  // namespace tosaic
