// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "formats/bpte/bpte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf.h"
#include "read/program_file.h"
#include "session/source.h"

namespace tosaic {
namespace {

// A graph is no program.
Status without_methods(const Source& source, const SessionOptions& options) {
  if (asks_for_the_only_one(options.method)) return {};
  return error("method.missing", fmt::format("there is no method '{}': {} holds a graph, which has no methods",
                                             options.method, source.name))
      .at({source.name, 0, ""})
      .hint("run it without --method, in Python without method=");
}

}  // namespace

Result<RunnablePtr> load_runnable(const Source& source, const SessionOptions& options, const Sink& sink) {
  if (options.executor != "cpu" && options.executor != "interp")
    return error("run.executor", fmt::format("'{}' is no executor", options.executor)).hint("cpu or interp");
  if (options.threads < 0 || options.threads > SessionOptions::most_threads)
    return error("run.threads", fmt::format("'threads' is {}", options.threads))
        .hint(fmt::format("0 (all cores) to {}", SessionOptions::most_threads));
  if (options.device.starts_with("vulkan") && options.executor == "interp")
    return error("run.device", "the reference interpreter runs on the CPU, not on a Vulkan device");
  if (source.program) return load_exported(*source.program, source, options, sink);
  const std::string_view head = source.file.text().substr(0, 16);
  if (tosa_file::is_tosa(source.file)) {
    TOSAIC_CHECK(without_methods(source, options));
    return load_tosa(source, options, sink);
  }
  if (head.size() >= 8 && head.substr(4, 2) == "ET") return load_pte(source, options, sink);
  if (bpte::is_bpte(source.file)) {  // the program in it
    TOSAIC_TRY(bpte::File bundle, bpte::read(source.file, source.name));
    Source program = source;
    program.file = std::move(bundle.program);
    return load_pte(program, options, sink);
  }
  if (vgf::is_vgf(source.file)) {
    TOSAIC_CHECK(without_methods(source, options));
    return load_vgf(source, options);
  }
  if (head.starts_with("PK") || head.starts_with("graph ")) {
    TOSAIC_TRY(ExportedProgram program, read_program_file(source.file, source.name, sink));
    keep_together(program);
    return load_exported(program, source, options, sink);
  }
  return error("run.unknown-format", source.name + " is neither a .pte, a .bpte, a .tosa, a .vgf nor a .pt2")
      .at({source.name, 0, ""});
}

}  // namespace tosaic
