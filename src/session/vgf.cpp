// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/vgf/vgf_graph.h"
#include "session/graph.h"
#include "session/on_vulkan.h"

namespace tosaic {
namespace {

// Shaders of a file are programs of its own, which the path of the ML extensions binds and runs.
bool has_shaders(const vgf::File& file) {
  return std::ranges::any_of(file.segments, [](const vgf::Segment& s) { return s.kind == vgf::Kind::compute; });
}

}  // namespace

Result<RunnablePtr> load_vgf(const Source& source, const SessionOptions& options) {
  if (options.device.starts_with("vulkan")) {
    auto loaded = [&]() -> Result<RunnablePtr> {
      TOSAIC_TRY(vgf::File file, vgf::read(source.file));
      if (options.device == "vulkan" && !has_shaders(file)) return RunnablePtr();
      return run_vgf_on_vulkan(std::move(file), options);
    }();
    if (!loaded.ok()) return std::move(loaded.error()).at({source.name, 0, ""});
    if (*loaded) return loaded;
  }
  TOSAIC_TRY(Graph graph, vgf::read_graph(source.file, source.name));
  return run_graph(std::move(graph), source, options);
}

}  // namespace tosaic
