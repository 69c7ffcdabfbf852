// SPDX-License-Identifier: Apache-2.0
#include "report/memory.h"

#include <algorithm>
#include <unordered_map>

#include "plan/arena.h"
#include "plan/views.h"
#include "report/graph.h"

namespace tosaic::reporting {
namespace {

constexpr std::uint64_t alignment = 16;  // of addresses

}  // namespace

void set_peak(ShownMemory& memory) {
  std::vector<plan::Buffer> buffers;
  for (const ShownMemory::Buffer& b : memory.buffers) buffers.push_back({b.bytes, b.first, b.last, 0});
  const plan::Peak peak = plan::peak_of(buffers, 1);
  memory.peak = peak.step;
  memory.peak_bytes = peak.bytes;
}

ShownMemory activations(const Graph& graph, const ShownGraph& shown, std::size_t index) {
  ShownMemory memory;
  memory.graph = index;
  memory.name = "activations of " + shown.name;
  memory.how =
      "one TOSA operator after another, views of a tensor counted once; a device that fuses operators needs less";
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t v = 0; v < shown.values.size(); ++v) by_name.emplace(shown.values[v].name, v);
  const std::vector<std::int32_t> producer = producers(graph);
  const auto end = static_cast<std::uint32_t>(graph.nodes.empty() ? 0 : graph.nodes.size() - 1);
  std::vector<std::int32_t> buffer_of(graph.values.size(), -1);
  const auto alive = [&](ValueId v, std::uint32_t step) {
    if (v == no_value) return;
    v = plan::skip_views(graph, producer, v);
    if (v == no_value || graph[v].is_constant()) return;
    if (buffer_of[v] < 0) {
      const auto known = by_name.find(graph[v].name);
      if (known == by_name.end()) return;
      buffer_of[v] = static_cast<std::int32_t>(memory.buffers.size());
      memory.buffers.push_back({known->second, most_bytes(graph[v].type), 0, step, step});
    }
    auto& last = memory.buffers[static_cast<std::size_t>(buffer_of[v])].last;
    last = std::max(last, step);
  };
  for (ValueId v : graph.inputs) alive(v, 0);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId v : graph.nodes[n].inputs) alive(v, n);
    for (ValueId v : graph.nodes[n].outputs) alive(v, n);
  }
  for (ValueId v : graph.outputs) alive(v, end);
  std::vector<plan::Buffer> buffers;
  for (const auto& b : memory.buffers) buffers.push_back({b.bytes, b.first, b.last, 0});
  memory.arena_bytes = plan::place(buffers, alignment);
  for (std::size_t b = 0; b < buffers.size(); ++b) memory.buffers[b].offset = buffers[b].offset;
  set_peak(memory);
  return memory;
}

}  // namespace tosaic::reporting
