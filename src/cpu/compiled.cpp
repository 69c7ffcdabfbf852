// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiled.h"

#include <fmt/format.h>
#include <algorithm>

#include "cpu/widen.h"
#include "plan/arena.h"

namespace tosaic::cpu {

bool aligned_for(const TensorType& type, const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % storage_size(type.dtype) == 0;
}

Status Compiled::plan_steps(const Options& options) {
  pool = &ThreadPool::shared(options.threads);
  Planning planning{
      .graph = graph, .threads = pool->threads(), .producer = producers(graph), .users = consumers(graph)};
  planning.visible.assign(graph.values.size(), false);
  planning.taken.assign(graph.nodes.size(), false);
  for (ValueId v : graph.outputs) planning.visible[v] = true;
  for (ValueId v : options.observed)
    if (v < graph.values.size()) planning.visible[v] = true;

  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (const KernelRow& row : kernel_rows())
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = row.backward ? count - 1 - i : i;
      if (!planning.taken[n]) row.take(planning, n);
    }
  for (std::uint32_t n = 0; n < count; ++n)
    if (!planning.taken[n])
      return located(error("cpu.unsupported", fmt::format("no kernel runs {}", graph.nodes[n].op)), graph.nodes[n].loc);

  // A step stands where its last node stood: everything it reads was then computed, and only its last value is
  // read by others.
  steps = std::move(planning.steps);
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });

  std::vector<bool> observed(graph.values.size(), false);
  for (ValueId v : options.observed)
    if (v < graph.values.size()) observed[v] = true;
  for (const Step& step : steps) {
    auto& list = observed_after.emplace_back();
    for (ValueId v : step.writes)
      if (observed[v]) list.push_back(v);
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (observed[v] && planning.producer[v] < 0) observed_at_start.push_back(v);
  locate(planning);
  return {};
}

void Compiled::locate(const Planning& planning) {
  location.assign(graph.values.size(), {});
  std::vector<const Alias*> parent(graph.values.size(), nullptr);
  for (const Alias& a : planning.aliases) parent[a.alias] = &a;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    Location& at = location[v];
    at.root = v;
    while (const Alias* a = parent[at.root]) {
      at.offset += a->offset;
      at.root = a->of;
    }
  }
  // Homes of the roots: constants and inputs stay where they are; what becomes an output is computed there.
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
      copies.push_back({v, j});
    }
  }
  for (const Step& step : steps)
    for (ValueId v : step.writes) {
      Location& root = location[location[v].root];
      if (root.home == Home::none) root.home = Home::arena;
    }
  for (Location& at : location) {
    at.home = location[at.root].home;
    at.slot = location[at.root].slot;
  }
}

Status Compiled::place_buffers() {
  std::vector<plan::Buffer> buffers;
  std::vector<std::int32_t> buffer_of(graph.values.size(), -1);
  auto alive = [&](ValueId v, std::uint32_t step) {
    if (v == no_value || location[v].home != Home::arena) return;
    const ValueId root = location[v].root;
    if (buffer_of[root] < 0) {
      buffer_of[root] = static_cast<std::int32_t>(buffers.size());
      buffers.push_back({graph[root].type.storage_bytes(), step, step, 0});
    }
    plan::Buffer& buffer = buffers[static_cast<std::size_t>(buffer_of[root])];
    buffer.last = std::max(buffer.last, step);
  };
  std::vector<std::size_t> scratch_buffer(steps.size());
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    for (ValueId v : steps[s].reads) alive(v, s);
    for (ValueId v : steps[s].writes) alive(v, s);
    scratch_buffer[s] = buffers.size();
    const std::size_t private_bytes = steps[s].scratch_per_thread * static_cast<std::size_t>(pool->threads());
    buffers.push_back({private_bytes + steps[s].shared_scratch, s, s, 0});
  }
  for (const Copy& copy : copies) alive(copy.from, static_cast<std::uint32_t>(steps.size()));

  arena_bytes = plan::place(buffers, 64);
  for (std::size_t s : scratch_buffer) scratch_offset.push_back(buffers[s].offset);
  arena_offset.assign(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Location& at = location[v];
    const std::int32_t buffer = buffer_of[at.root];
    if (at.home == Home::arena && buffer >= 0)
      arena_offset[v] = buffers[static_cast<std::size_t>(buffer)].offset + at.offset;
    if (at.home == Home::input) at_input.push_back(v);
    if (at.home == Home::output) at_output.push_back(v);
  }
  return {};
}

Result<std::shared_ptr<const Compiled>> Compiled::of(const Graph& graph, const Options& options) {
  auto made = std::make_shared<Compiled>();
  made->graph = graph;
  for (ValueId v : graph.inputs) made->input_types.push_back(graph[v].type);
  for (ValueId v : graph.outputs) made->output_types.push_back(graph[v].type);
  // Constants of a mapped file may lie at any byte; kernels want them aligned.
  for (Value& value : made->graph.values)
    if (value.is_constant() && !aligned_for(value.type, value.constant.data()))
      value.constant = Bytes::copy(value.constant.data(), value.constant.size());
  widen_narrow_floats(made->graph);
  TOSAIC_CHECK(made->plan_steps(options));
  TOSAIC_CHECK(made->place_buffers());
  return std::shared_ptr<const Compiled>(std::move(made));
}

}  // namespace tosaic::cpu
