// SPDX-License-Identifier: Apache-2.0
#include "pipeline/executed_floats.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/states.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "pipeline/steps.h"

namespace tosaic {
namespace {

// Graphs of TOSA as one: what one of them computes of a program's tensors, others read.
class Joined {
 public:
  explicit Joined(const Graph& program) : program_(program), read_(program.values.size(), no_value) {
    made_.of.assign(program.values.size(), no_value);
    made_.graph.name = program.name;
    for (ValueId v : program.inputs) {
      made_.of[v] = read_[v] = made_.graph.add_value(program[v].name, program[v].type);
      made_.graph.inputs.push_back(made_.of[v]);
    }
  }

  // `reads`: what its inputs are; `makes`: what its values are, of the program.
  void add(const Graph& part, const std::vector<ValueId>& reads,
           const std::vector<std::pair<ValueId, ValueId>>& makes) {
    Graph& all = made_.graph;
    std::vector<ValueId> here(part.values.size(), no_value);
    for (std::size_t i = 0; i < reads.size(); ++i) here[part.inputs[i]] = readable(reads[i]);
    for (ValueId v = 0; v < here.size(); ++v)
      if (here[v] == no_value) here[v] = all.add_value(part[v].name, part[v].type, part[v].constant);
    for (Node node : part.nodes) {
      for (auto* list : {&node.inputs, &node.outputs})
        for (ValueId& v : *list)
          if (v != no_value) v = here[v];
      all.nodes.push_back(std::move(node));
    }
    for (const auto& [from, to] : makes)
      if (made_.of[to] == no_value) made_.of[to] = here[from];
  }

  Lowered finish() {
    for (ValueId v = 0; v < read_.size(); ++v)
      if (read_[v] != no_value && read_[v] != made_.of[v])
        made_.graph.nodes.push_back({tosa::op::identity, {made_.of[v]}, {}, {read_[v]}, nullptr, {}});
    for (ValueId v : program_.outputs) {
      if (program_[v].is_constant() && made_.of[v] == no_value)
        made_.of[v] = made_.graph.add_value(program_[v].name, program_[v].type, program_[v].constant);
      made_.graph.outputs.push_back(made_.of[v]);
    }
    sort();
    make_names_unique(made_.graph);
    return std::move(made_);
  }

 private:
  ValueId readable(ValueId v) {
    if (read_[v] == no_value) read_[v] = made_.graph.add_value(program_[v].name, program_[v].type);
    return read_[v];
  }

  // Each node behind those that it reads.
  void sort() {
    Graph& all = made_.graph;
    const auto made_by = producers(all);
    std::vector<Node> sorted;
    std::vector<char> done(all.nodes.size(), 0);
    const auto visit = [&](auto& self, std::size_t n) -> void {
      if (std::exchange(done[n], 1)) return;
      for (ValueId v : all.nodes[n].inputs)
        if (v != no_value && made_by[v] >= 0) self(self, static_cast<std::size_t>(made_by[v]));
      sorted.push_back(std::move(all.nodes[n]));
    };
    for (std::size_t n = 0; n < done.size(); ++n) visit(visit, n);
    all.nodes = std::move(sorted);
  }

  const Graph& program_;
  std::vector<ValueId> read_;  // per value of the program, where parts read it
  Lowered made_;
};

// The host's part: what its nodes compute of what delegates give.
Graph left_outside(const Graph& program, const Partition& partition) {
  Graph rest = program;
  rest.nodes.clear();
  std::vector<char> known(program.values.size(), 0);
  for (ValueId v : rest.inputs) known[v] = 1;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    if (partition.placements[n].region >= 0) continue;
    rest.nodes.push_back(program.nodes[n]);
    for (ValueId v : program.nodes[n].outputs)
      if (v != no_value) known[v] = 1;
  }
  for (const Node& node : rest.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value && !program[v].is_constant() && !std::exchange(known[v], 1)) rest.inputs.push_back(v);
  // Nobody may read what others do: it is an output.
  rest.outputs.clear();
  for (const Node& node : rest.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value) rest.outputs.push_back(v);
  return rest;
}

// What the tensor's elements are kept in: those of a tensor that only moves are its operand's.
std::vector<std::optional<DType>> kept_types(const Graph& tosa, const Graph& kept) {
  std::vector<std::optional<DType>> types(tosa.values.size());
  for (ValueId v = 0; v < kept.values.size(); ++v)
    if (kept[v].type.dtype != tosa[v].type.dtype) types[v] = kept[v].type.dtype;
  for (const Node& node : tosa.nodes) {
    const tosa::Op* op = tosa::find(node.op);
    if (op && op->chooses() && node.op != tosa::op::cast && !node.inputs.empty() && !types[node.outputs[0]])
      types[node.outputs[0]] = types[node.inputs[0]];
  }
  return types;
}

}  // namespace

Result<NarrowFloats> executed_floats(const Split& split, const Context& c) {
  Graph program = split.quantised;
  const StatesAsTensors states(program);
  const Partition& partition = split.partition;
  int regions = 0;
  for (const Placement& placement : partition.placements) regions = std::max(regions, placement.region + 1);
  if (static_cast<std::size_t>(regions) != partition.regions.size())
    return error("compare.control-flow", "parts of the program run on the device inside of branches or loops")
        .hint("compare the module that is in them by itself");
  std::unordered_map<std::string, ValueId> by_name;
  for (ValueId v = 0; v < program.values.size(); ++v) by_name.emplace(program[v].name, v);
  NarrowFloats made;
  made.kept.resize(program.values.size());
  made.keep_option = c.target.keep_option;
  if (c.target.kept)
    made.alone = [target = c.target, options = c.options.emit](const Graph& tosa) {
      return target.kept(tosa, options);
    };
  Joined joined(program);
  for (const Graph& region : partition.regions) {
    TOSAIC_TRY(Lowered lowered, lowered_region(region, c));
    Graph& tosa = lowered.graph;
    const std::size_t own = tosa.outputs.size();
    // What is to be watched is an output more: it stays what it is on the way through tidy.
    std::vector<ValueId> watched;
    for (ValueId v = 0; v < lowered.of.size(); ++v) {
      const ValueId of = lowered.of[v];
      if (of == no_value || tosa[of].is_constant() || std::ranges::count(tosa.inputs, of) > 0) continue;
      watched.push_back(by_name.at(region[v].name));
      tosa.outputs.push_back(of);
    }
    tidy_region(tosa, nullptr, c);
    Graph alone = tosa;
    alone.outputs.resize(own);
    drop_dead_nodes(alone);
    Graph kept = alone;
    if (made.alone) { TOSAIC_TRY(kept, made.alone(alone)); }
    for (ValueId v = 0; v < kept.values.size(); ++v)
      if (kept[v].is_constant() && kept[v].type.dtype != alone[v].type.dtype) made.weights = kept[v].type.dtype;
    const auto types = kept_types(tosa, kept);
    std::vector<std::pair<ValueId, ValueId>> makes;
    for (std::size_t i = 0; i < own; ++i)
      makes.emplace_back(tosa.outputs[i], by_name.at(region[region.outputs[i]].name));
    for (std::size_t i = 0; i < watched.size(); ++i) {
      const ValueId v = tosa.outputs[own + i];
      makes.emplace_back(v, watched[i]);
      made.kept[watched[i]] = types[v];
    }
    std::vector<ValueId> reads;
    for (ValueId v : region.inputs) reads.push_back(by_name.at(region[v].name));
    joined.add(rounded_as_kept(std::move(tosa), kept), reads, makes);
  }
  const Graph rest = left_outside(program, partition);
  TOSAIC_TRY(const Lowered host, lower(rest));
  std::vector<std::pair<ValueId, ValueId>> makes;
  for (ValueId v : rest.outputs) makes.emplace_back(host.of[v], v);
  joined.add(host.graph, rest.inputs, makes);
  made.executed = joined.finish();
  return made;
}

}  // namespace tosaic
