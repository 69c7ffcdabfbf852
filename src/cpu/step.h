// SPDX-License-Identifier: Apache-2.0
// A compiled program is a list of steps. A kernel row looks at the graph and takes one node, or several that it
// computes together, and leaves a step that does them. Private to src/cpu.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/system/thread_pool.h"
#include "cpu/cpu.h"
#include "ops/definitions/tosa_op.h"
#include "plan/memory.h"
#include "plan/uses.h"

namespace tosaic::cpu {

class QuantisedWeight;
struct PackedWeights;

// What a step sees at run time.
struct Frame {
  std::byte* const* address;  // by ValueId
  ThreadPool& pool;
  std::byte* scratch;  // scratch_per_thread bytes for each thread, 64-byte aligned
  std::byte* shared;   // shared_scratch bytes for all threads together
  void* state;         // what make_state made
  tosa::Variables* variables;
  const void* read(ValueId value) const { return address[value]; }
  void* write(ValueId value) const { return address[value]; }
};

struct Step {
  std::string_view kernel;             // the row that made it
  std::vector<std::uint32_t> nodes;    // ascending; the step runs where its last node stands
  std::vector<ValueId> reads, writes;  // values that must have memory; constants may be among the reads
  std::size_t scratch_per_thread = 0;  // a multiple of 64
  std::size_t shared_scratch = 0;
  // Empty: nothing to do, the output lies where the input lies. Programs that run at the same time share the step: it
  // changes nothing in itself.
  std::function<Status(const Frame&)> run;
  // What the step keeps from run to run, one for each program; empty: nothing.
  std::function<std::shared_ptr<void>()> make_state = {};
  // Of a step whose results have so many rows, each computed from the same row of its operands, but for those that it
  // reads as a whole. `run` computes some of them, in `scratch` of as many bytes as a thread has.
  struct Rows {
    std::int64_t count = 0;
    std::vector<ValueId> whole = {};
    std::function<void(const Frame&, std::int64_t first, std::int64_t last, std::byte* scratch)> run;
  };
  std::optional<Rows> rows = std::nullopt;
  // What may lie where the step's only result lies, as the step writes no element of it before it has read that one.
  ValueId written_over = no_value;
};

// The number in a constant of one element (a zero point, a shift).
inline std::int32_t only_scalar(const Graph& graph, ValueId value) {
  return static_cast<std::int32_t>(element_as_integer(graph[value].type.dtype, graph[value].constant.data(), 0));
}

// The graph being compiled, and what is already decided.
struct Planning : plan::Uses {
  int threads;
  bool lasting_weights = false;             // see Options
  PackedWeights* packed_weights = nullptr;  // that nodes share, or, of lasting ones, programs as well
  std::vector<bool> taken;                  // nodes that belong to a step
  std::vector<Step> steps;
  std::vector<plan::Alias> aliases;
  std::map<ValueId, std::shared_ptr<QuantisedWeight>> quantised_weights;  // by their values
  std::vector<std::pair<ValueId, ValueId>> packed_operands;               // the values and scales of these

  Planning(const Graph& g, std::span<const ValueId> observed, int thread_count)
      : Uses(g, observed), threads(thread_count), taken(g.nodes.size(), false) {}
  void add(Step step) {
    for (std::uint32_t n : step.nodes) taken[n] = true;
    steps.push_back(std::move(step));
  }
};

// One kernel: `take` looks at an untaken node and either makes a step of it (and of others with it) and returns
// true, or leaves it to the rows further down.
struct KernelRow {
  std::string_view name;
  bool backward = false;  // visit the nodes from last to first
  bool (*take)(Planning&, std::uint32_t node) = nullptr;
};
std::span<const KernelRow> kernel_rows();  // in order of preference; the last takes anything

constexpr std::size_t align_up(std::size_t n, std::size_t to = 64) { return (n + to - 1) / to * to; }

}  // namespace tosaic::cpu
