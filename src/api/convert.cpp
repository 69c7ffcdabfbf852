// SPDX-License-Identifier: Apache-2.0
// A TOSA graph from one file format into another: TOSA flatbuffers, VGF files, graph text (which is only read).
#include <fmt/format.h>
#include <chrono>

#include "api/compile_options.h"
#include "api/guard.h"
#include "base/system/clock.h"
#include "base/system/output.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/tosa_op.h"
#include "tosaic/files.hpp"

namespace tosaic {
namespace {

Result<Graph> read_graph(const Bytes& file, const std::string& name) {
  if (vgf::is_vgf(file)) return vgf::read_graph(file, name);
  const bool tosa = tosa_file::is_tosa(file);
  if (!tosa && file.text().find("graph @") == std::string_view::npos)
    return error("convert.unknown-format", name + " is neither a .tosa, a .vgf nor graph text")
        .at({name, 0, ""})
        .hint("a .pt2 is compiled, and `tosaic extract` takes files out of a .pte");
  TOSAIC_TRY(Graph graph, tosa ? tosa_file::read(file, name) : parse(file.text(), name));
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  return graph;
}

Result<Converted> try_convert(const ConvertRequest& request, const Messages& messages) {
  const bool to_vgf = request.output.ends_with(".vgf");
  if (!to_vgf && !request.output.ends_with(".tosa"))
    return error("convert.output", fmt::format("'{}' ends neither in .vgf nor in .tosa", request.output))
        .hint("the ending chooses the format: name the output NAME.vgf or NAME.tosa");
  if (request.repeat < 1)
    return error("option.value", fmt::format("'repeat' is {}: a file is converted once at least", request.repeat));
  TOSAIC_TRY(const CompileOptions vgf, compile_options_for("vgf", request.options));
  Outputs outputs;
  outputs.reads(request.input);
  TOSAIC_CHECK(outputs.plan(request.output));
  TOSAIC_TRY(const Bytes input, map_file(request.input));
  Converted outcome;
  Emitted made;
  for (int i = 0; i < request.repeat; ++i) {
    const auto begin = SteadyClock::now();
    TOSAIC_TRY(const Graph graph, read_graph(input, request.input));
    if (i == 0 && tosa_file::is_tosa(input) && messages)
      if (const auto newer = tosa_file::newer_version(input, request.input)) messages(*newer);
    outcome.operators = graph.nodes.size();
    if (to_vgf) {
      const std::optional<Graph> older = extension::in_tosa_1_0(graph);
      TOSAIC_TRY(made, vgf.target.emit(older ? *older : graph, vgf.target, vgf.emit, {}));
    } else {
      TOSAIC_TRY(made.payload, tosa_file::write(graph));
    }
    outcome.seconds.push_back(std::chrono::duration<double>(SteadyClock::now() - begin).count());
  }
  TOSAIC_CHECK(outputs.write(request.output, made.payload));
  TOSAIC_CHECK(outputs.commit());
  outcome.peer_seconds = made.peer_seconds;
  outcome.bytes = made.payload.size();
  return outcome;
}

}  // namespace

Result<Converted> convert(const ConvertRequest& request, const Messages& messages) {
  return guarded(request.input, [&] { return try_convert(request, messages); });
}

}  // namespace tosaic
