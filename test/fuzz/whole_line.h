// SPDX-License-Identifier: Apache-2.0
// Everything behind the readers, for graphs that are well formed and perhaps nonsense: normalise, quantise, partition,
// lower, tidy, both executors, pack, and the packed program's run. Each stage takes the graph or refuses it with a
// diagnostic; what says "internal" is a defect. Used by the fuzzer and by a seeded test.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "cpu/cpu.h"
#include "delegates/delegates.h"
#include "formats/tosa/tosa_file.h"
#include "interp/interp.h"
#include "kernels/lowered_kernel.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "pack/pack.h"
#include "partition/partition.h"
#include "quantise/quantise.h"
#include "runtime/method.h"
#include "targets/target.h"
#include "tidy/tidy.h"

namespace tosaic::test {

// Where a defect showed, and what was said.
using Defect = std::optional<std::string>;

inline Defect defect_in(const char* stage, const Diagnostic& why) {
  const bool nameless = why.code.empty() || why.message.empty();
  if (!why.internal && !nameless) return std::nullopt;
  return std::string(stage) + ": " + render(why, false);
}

// What a reader makes: scales come later.
inline bool unscaled(const Graph& graph) {
  return std::none_of(graph.values.begin(), graph.values.end(),
                      [](const Value& v) { return v.type.scales.has_value(); });
}

// Small enough to be run a thousand times.
inline bool small(const Graph& graph) {
  if (graph.nodes.size() > 64 || graph.values.size() > 256) return false;
  for (const Value& v : graph.values)
    if (const auto largest = v.type.shape.upper(); !largest || largest->elements() > 4096) return false;
  for (const Node& node : graph.nodes)  // sizes that a call could make a tensor of
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* i = std::get_if<std::int64_t>(&attr); i && (*i > 4096 || *i < -4096)) return false;
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attr)) {
        std::int64_t product = 1;
        for (std::int64_t i : *list) {
          if (i > 4096 || i < -4096) return false;
          product *= i ? i : 1;
          if (product > 65536 || product < -65536) return false;
        }
      }
    }
  return true;
}

inline std::vector<Tensor> some_inputs(const std::vector<TensorType>& types) {
  std::vector<Tensor> inputs;
  for (const TensorType& type : types) {
    std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = is_float(type.dtype) ? static_cast<double>(i % 17) / 8 - 1 : static_cast<double>(i % 2);
    inputs.push_back({type, constant_bytes(type.dtype, values)});
  }
  return inputs;
}

inline std::vector<TensorType> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TensorType> types;
  for (ValueId v : values) types.push_back(graph[v].type);
  return types;
}

inline Defect run_region(const Graph& tosa) {
  const auto inputs = some_inputs(types_of(tosa, tosa.inputs));
  auto slow = interp::run(tosa, inputs);
  if (!slow.ok())
    if (auto d = defect_in("interp", slow.error())) return d;
  auto program = cpu::Program::compile(tosa, {.threads = 1});
  if (!program.ok()) return defect_in("cpu", program.error());
  auto fast = program->run(inputs);
  if (!fast.ok()) return defect_in("cpu", fast.error());
  return std::nullopt;
}

inline Defect run_packed(const Graph& outer, const std::vector<DelegatePayload>& payloads,
                         const std::string& delegate) {
  auto file = pack(outer, payloads, delegate, {});
  if (!file.ok()) return defect_in("pack", file.error());
  auto program = pte::read(file->joined(), "packed.pte");
  if (!program.ok()) return "pack: what was written is not read: " + program.error().message;
  auto method = runtime::Method::load(
      *program, "forward", {.threads = 1, .delegates = all_delegates(), .kernels = kernels::lowered_kernels()});
  if (!method.ok()) return defect_in("load", method.error());
  auto outputs = method->run(some_inputs(method->input_types()));
  if (!outputs.ok()) return defect_in("run", outputs.error());
  return std::nullopt;
}

// `graph` as a reader would have made it, compiled for `target` and run.
inline Defect through_all_stages(Graph graph, const Target& target) {
  const bool integer = target.integer();
  auto normal = normalise(std::move(graph), {.fold_quantisation = integer}, {});
  if (!normal.ok()) return defect_in("normalise", normal.error());
  Graph g = *std::move(normal);
  if (auto sound = verify(g); !sound.ok()) return "normalise left: " + sound.error().message;
  if (!small(g)) return std::nullopt;
  if (integer && !is_quantised(g)) {
    const auto sample = some_inputs(types_of(g, g.inputs));
    auto quantised = quantise(std::move(g), {sample}, {.threads = 1}, {});
    if (!quantised.ok()) return defect_in("quantise", quantised.error());
    g = *std::move(quantised);
  }
  if (integer) insert_boundaries(g, Io::floats);
  if (auto sound = verify(g); !sound.ok()) return "quantise left: " + sound.error().message;
  Partition parts = partition(g, target.spec);
  for (const Placement& p : parts.placements) {
    if (p.region >= 0) continue;
    if (p.reason.code == inconsistent_model) return std::nullopt;  // compile stops here
    if (auto d = defect_in("partition", p.reason)) return d;
  }
  std::vector<DelegatePayload> payloads;
  for (const Graph& region : parts.regions) {
    auto lowered = lower(region, {.spec = &target.spec});
    if (!lowered.ok()) return defect_in("lower", lowered.error());
    tidy(lowered->graph);
    if (auto sound = verify(lowered->graph); !sound.ok()) return "tidy left: " + sound.error().message;
    if (auto legal = tosa::verify_graph(lowered->graph, target.spec); !legal.ok())
      return defect_in("verify", legal.error());
    if (auto d = run_region(lowered->graph)) return d;
    auto file = tosa_file::write(lowered->graph);
    if (!file.ok()) return defect_in("emit", file.error());
    payloads.push_back({*file});
  }
  return run_packed(parts.outer, payloads, target.delegate_id);
}
inline Defect whole_line(Graph graph, const Target& target) {
  try {
    return through_all_stages(std::move(graph), target);
  } catch (const UnknownSize&) { return std::nullopt; }  // the library's boundary says model.dynamic-shape
}

}  // namespace tosaic::test
