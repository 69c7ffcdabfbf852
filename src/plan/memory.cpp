// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <algorithm>
#include <functional>

#include "plan/arena.h"

namespace tosaic::plan {
namespace {

void find_roots(const Graph& graph, std::span<const Alias> aliases, std::vector<Location>& location) {
  location.assign(graph.values.size(), {});
  std::vector<const Alias*> parent(graph.values.size(), nullptr);
  for (const Alias& a : aliases) parent[a.alias] = &a;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    Location& at = location[v];
    at.root = v;
    while (const Alias* a = parent[at.root]) {
      at.offset += a->offset;
      at.root = a->of;
    }
  }
}

void find_homes(const Graph& graph, std::span<const StepMemory> steps, Memory& memory) {
  std::vector<Location>& location = memory.location;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].is_constant()) location[v].home = Home::constant;
  for (std::uint32_t i = 0; i < graph.inputs.size(); ++i) {
    location[graph.inputs[i]].home = Home::input;
    location[graph.inputs[i]].slot = i;
  }
  for (std::uint32_t j = 0; j < graph.outputs.size(); ++j) {
    const ValueId v = graph.outputs[j];
    Location& root = location[location[v].root];
    const bool whole = graph[v].type.storage_bytes() == graph[location[v].root].type.storage_bytes();
    if (root.home == Home::none && whole) {
      root.home = Home::output;
      root.slot = j;
    } else {
      memory.copies.push_back({v, j});
    }
  }
  for (const StepMemory& step : steps)
    for (ValueId v : step.writes) {
      Location& root = location[location[v].root];
      if (root.home == Home::none) root.home = Home::arena;
    }
  for (Location& at : location) {
    at.home = location[at.root].home;
    at.slot = location[at.root].slot;
  }
}

void place_in_arena(const Graph& graph, std::span<const StepMemory> steps, std::uint64_t alignment, Memory& memory) {
  std::vector<Location>& location = memory.location;
  std::vector<Buffer> buffers;
  std::vector<std::int32_t> buffer_of(graph.values.size(), -1);
  auto alive = [&](ValueId v, std::uint32_t step) {
    if (v == no_value || location[v].home != Home::arena) return;
    const ValueId root = location[v].root;
    if (buffer_of[root] < 0) {
      buffer_of[root] = static_cast<std::int32_t>(buffers.size());
      buffers.push_back({graph[root].type.storage_bytes(), step, step, 0});
    }
    Buffer& buffer = buffers[static_cast<std::size_t>(buffer_of[root])];
    buffer.last = std::max(buffer.last, step);
  };
  std::vector<std::size_t> scratch_buffer(steps.size());
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    const std::uint32_t time = steps[s].level.value_or(s);
    for (ValueId v : steps[s].reads) alive(v, time);
    for (ValueId v : steps[s].writes) alive(v, time);
    scratch_buffer[s] = buffers.size();
    buffers.push_back({steps[s].scratch_bytes, time, time, 0});
  }
  for (const Memory::Copy& copy : memory.copies) alive(copy.from, static_cast<std::uint32_t>(steps.size()));

  memory.arena_bytes = place(buffers, alignment);
  const std::uint32_t peak = peak_of(buffers, alignment).step;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (const std::int32_t b = buffer_of[v]; b >= 0) {
      const Buffer& buffer = buffers[static_cast<std::size_t>(b)];
      if (buffer.first <= peak && peak <= buffer.last) memory.at_peak.push_back(v);
    }
  std::ranges::stable_sort(memory.at_peak, std::greater{}, [&](ValueId v) { return graph[v].type.storage_bytes(); });
  for (std::size_t s : scratch_buffer) memory.scratch_offset.push_back(buffers[s].offset);
  for (Location& at : location)
    if (const std::int32_t buffer = buffer_of[at.root]; at.home == Home::arena && buffer >= 0)
      at.arena_offset = buffers[static_cast<std::size_t>(buffer)].offset + at.offset;
}

}  // namespace

Memory place_values(const Graph& graph, std::span<const Alias> aliases, std::span<const StepMemory> steps,
                    std::uint64_t alignment) {
  Memory memory;
  find_roots(graph, aliases, memory.location);
  find_homes(graph, steps, memory);
  place_in_arena(graph, steps, alignment, memory);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (memory.location[v].home == Home::input) memory.at_input.push_back(v);
    if (memory.location[v].home == Home::output) memory.at_output.push_back(v);
  }
  return memory;
}

}  // namespace tosaic::plan
