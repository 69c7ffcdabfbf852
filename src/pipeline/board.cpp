// SPDX-License-Identifier: Apache-2.0
#include "pipeline/board.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

#include "base/size_text.h"
#include "ir/tosa_operators.h"

namespace tosaic {
namespace {

// Where the tensors of a graph take the most memory, by our own count: what is fused into a command has none.
struct Peak {
  std::size_t node = 0;
  std::vector<ValueId> live;  // the largest first
  std::int64_t bytes = 0;
};

// By value, whose memory it lies in: a view's is what it looks at, and an activation is part of the command before it.
std::vector<ValueId> memories(const Graph& graph) {
  std::vector<ValueId> of(graph.values.size());
  std::iota(of.begin(), of.end(), ValueId{0});
  for (const Node& node : graph.nodes)
    if (node.op == tosa::op::reshape || node.op == tosa::op::clamp || node.op == tosa::op::table ||
        node.op == tosa::op::identity)
      of[node.outputs[0]] = of[node.inputs[0]];
  return of;
}

Peak peak_of(const Graph& graph) {
  const std::vector<ValueId> memory = memories(graph);
  std::vector<std::size_t> first(graph.values.size(), graph.nodes.size()), last(graph.values.size(), 0);
  const auto touch = [&](ValueId v, std::size_t n) {
    first[memory[v]] = std::min(first[memory[v]], n);
    last[memory[v]] = std::max(last[memory[v]], n);
  };
  for (ValueId v : graph.inputs) touch(v, 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto* values : {&graph.nodes[n].inputs, &graph.nodes[n].outputs})
      for (ValueId v : *values)
        if (v != no_value && !graph[v].is_constant()) touch(v, n);
  for (ValueId v : graph.outputs) touch(v, graph.nodes.size() - 1);
  const auto bytes = [&](ValueId v) -> std::int64_t {
    const bool sums = graph[v].type.dtype == DType::i32 || graph[v].type.dtype == DType::i48;
    const bool leaves = std::ranges::count(graph.inputs, v) + std::ranges::count(graph.outputs, v) > 0;
    return sums && !leaves ? 0 : static_cast<std::int64_t>(graph[v].type.storage_bytes());
  };
  Peak peak;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::int64_t sum = 0;
    std::vector<ValueId> live;
    for (ValueId v = 0; v < graph.values.size(); ++v)
      if (memory[v] == v && first[v] <= n && n <= last[v] && bytes(v) > 0) live.push_back(v), sum += bytes(v);
    if (sum > peak.bytes) peak = {n, std::move(live), sum};
  }
  std::ranges::stable_sort(peak.live, [&](ValueId a, ValueId b) { return bytes(a) > bytes(b); });
  return peak;
}

// The error at the operator where the most is live, and what that is.
Diagnostic with_owners(Diagnostic why, const Graph& graph) {
  constexpr std::size_t most_listed = 6;
  if (graph.nodes.empty()) return why;
  const Peak peak = peak_of(graph);
  const auto made_by = producers(graph);
  const Node& node = graph.nodes[peak.node];
  why.notes.push_back(fmt::format("the most is live at {}{}: {} by tosaic's count, of which are", node.op,
                                  node.loc && !node.loc->op.empty() ? ", from " + node.loc->op : "",
                                  kib(static_cast<double>(peak.bytes))));
  for (std::size_t i = 0; i < std::min(most_listed, peak.live.size()); ++i) {
    const Value& value = graph[peak.live[i]];
    const std::int32_t maker = made_by[peak.live[i]];
    const std::string place = maker < 0 ? "" : layer_text(graph.nodes[static_cast<std::size_t>(maker)].loc);
    why.notes.push_back(fmt::format("{} %{} {}{}", kib(static_cast<double>(value.type.storage_bytes())), value.name,
                                    to_string(value.type.with(std::optional<Scales>{})),
                                    place.empty() ? "" : ", " + place));
  }
  return located(std::move(why), node.loc);
}

std::optional<double> stated(const Options& options, const char* name) {
  const std::string text = options.text(name);
  if (text.empty()) return std::nullopt;
  const auto size = parsed_board_size(text);
  return size ? std::optional(static_cast<double>(*size)) : std::nullopt;
}

Diagnostic too_much(const char* code, const char* what, double needed, double has, const char* option) {
  return error(code, fmt::format("the program needs {} of {}, and the board has {} (--{})", kib(needed), what, kib(has),
                                 option));
}

const char* const less_memory =
    "--vela-flags=--optimise=Size takes less, and smaller inputs do; a memory mode with DRAM (--memory-mode "
    "Dedicated_Sram, U65 and U85) keeps most of it there";

}  // namespace

Status fits_board(const Compiled& compiled, const Options& options) {
  if (compiled.target.becomes_c) return {};  // firmware is asked when it is written (firmware/board_memory.h)
  double arenas = 0;
  if (!compiled.packed.plans.empty())
    for (std::int64_t bytes : compiled.packed.plans[0].arena_sizes) arenas += static_cast<double>(bytes);
  std::size_t sram_of = 0, scratch_of = 0;
  double sram = 0, scratch = 0;
  for (std::size_t k = 0; k < compiled.emitted.size(); ++k) {
    const Emitted& emitted = compiled.emitted[k];
    if (emitted.estimate && emitted.estimate->sram_bytes > sram) sram = emitted.estimate->sram_bytes, sram_of = k;
    if (emitted.scratch_bytes > scratch) scratch = emitted.scratch_bytes, scratch_of = k;
  }
  if (const auto has = stated(options, "sram"); has && sram + arenas > *has) {
    Diagnostic why = too_much("board.sram", "SRAM", sram + arenas, *has, "sram");
    why.help = less_memory;
    why.notes.push_back(
        fmt::format("the host program's tensors, between delegates and at its boundary, take {}", kib(arenas)));
    if (compiled.emitted.empty()) return why;
    why.notes.push_back(fmt::format("delegate {} takes {} by Vela's count", sram_of, kib(sram)));
    return with_owners(std::move(why), compiled.lowered[sram_of]);
  }
  if (const auto has = stated(options, "scratch"); has && scratch > *has) {
    Diagnostic why = too_much("board.scratch", "scratch memory", scratch, *has, "scratch");
    why.help = less_memory;
    why.notes.push_back(fmt::format("it is delegate {}'s, which its runtime lends it while it runs", scratch_of));
    return with_owners(std::move(why), compiled.lowered[scratch_of]);
  }
  return {};
}

Status fits_flash(const Compiled& compiled, const Options& options) {
  const auto has = stated(options, "flash");
  if (!has || compiled.target.becomes_c) return {};
  double file = static_cast<double>(compiled.program.size()), outside = 0;
  for (const Emitted& emitted : compiled.emitted)
    for (const ExternalData& part : emitted.external)
      if (!part.file.empty()) outside += static_cast<double>(part.data.size());
  if (file + outside <= *has) return {};
  Diagnostic why = too_much("board.flash", "flash", file + outside, *has, "flash");
  why.notes.push_back(fmt::format("the program is {} large, data files next to it {}", kib(file), kib(outside)));
  for (std::size_t k = 0; k < compiled.emitted.size(); ++k)
    why.notes.push_back(
        fmt::format("of that delegate {} has {}", k, kib(static_cast<double>(compiled.emitted[k].payload.size()))));
  why.help =
      "quantise weights that are floats, share or leave out layers, or keep weights in a memory of their own: "
      "--external weights=FILE.ptd";
  return why;
}

}  // namespace tosaic
