// SPDX-License-Identifier: Apache-2.0
#include "quantise/quantised_states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ops/composer.h"
#include "ops/op.h"
#include "ops/puts.h"
#include "quantise/dynamic_rows.h"
#include "quantise/quantise_weight.h"

namespace tosaic {
namespace {

constexpr std::int64_t shortest_row = 16;  // elements: a scale for fewer would not be worth its bytes

// Does the call write whole rows of its first operand, which are its last? The operator has an argument for these.
bool puts_rows(const Graph& graph, const Node& node) {
  const FoundOp found = find_aten(node.op);
  if (!found.op || node.inputs.size() < 2 || node.outputs.size() != 1 || node.inputs.back() == no_value) return false;
  const Schema& schema = *found.schema;
  const TensorType &to = graph[node.inputs[0]].type, &rows = graph[node.inputs.back()].type;
  if (!puts(schema) || rows.dtype != to.dtype || rows.rank() == 0 || to.rank() < 2) return false;
  if (node.attrs.get_or("accumulate", false) || rows.shape[rows.rank() - 1] != to.shape[to.rank() - 1]) return false;
  if (schema.argument("indices")) return static_cast<int>(node.inputs.size()) - 2 < to.rank();
  const bool elements = schema.argument("index") && graph[node.inputs[1]].type.rank() > 1;
  const std::int64_t dim = node.attrs.get_or("dim", std::int64_t{0});
  return !elements && dim != -1 && dim != to.rank() - 1;
}

// What a state holds from its start to the end of a run, each value written into the one before it; empty: something
// else gives its content.
std::vector<ValueId> contents_of(const Graph& graph, const State& state) {
  std::vector<ValueId> contents{state.input};
  for (const Node& node : graph.nodes)
    if (!node.inputs.empty() && node.inputs[0] == contents.back() && puts_rows(graph, node))
      contents.push_back(node.outputs[0]);
  return contents.back() == state.output && contents.size() > 1 ? contents : std::vector<ValueId>();
}

class QuantisedStates {
 public:
  explicit QuantisedStates(Graph& graph) : graph_(graph), out_(graph), c_(graph) { c_.fold(false); }

  // `contents`: by state; empty: it stays.
  void run(const std::vector<std::vector<ValueId>>& contents) {
    std::set<ValueId> written;
    std::vector<State> states;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      State& state = graph_.states[i];
      written.insert(contents[i].begin(), contents[i].end());
      if (contents[i].empty())
        states.push_back(std::move(state));
      else
        begin(state, states);
    }
    out_.each([&](Node& node) {
      if (node.outputs.size() == 1 && written.contains(node.outputs[0]))
        write(node);
      else
        out_.keep(std::move(node));
    });
    std::size_t next = 0;
    for (const std::vector<ValueId>& of_state : contents) {
      if (!of_state.empty()) {
        const Rows last = rows_.at(of_state.back());
        states[next++].output = last.quantised;
        states[next].output = last.scales;
      }
      ++next;
    }
    graph_.states = std::move(states);
    drop_dead(graph_);
    make_names_unique(graph_);
  }

 private:
  struct Rows {
    ValueId quantised, scales;
  };

  Graph& graph_;
  Rewriter out_;
  Composer c_;
  std::map<ValueId, Rows> rows_, of_reals_;  // of what the program has as floats; of what stands for that

  void begin(const State& state, std::vector<State>& states) {
    const Value content = graph_[state.input];
    const Shape& shape = content.type.shape;
    std::vector<std::int64_t> sizes = shape.sizes();
    const std::int64_t width = std::exchange(sizes.back(), 1);
    const ValueId quantised = graph_.add_value(content.name + ".quantised", {DType::i8, shape, {}});
    const ValueId scales = graph_.add_value(content.name + ".scales", {DType::f32, Shape(sizes), {}});
    State rows{state.name, quantised}, by_row{state.name + ".scales", scales};
    if (!state.initial.null()) {
      const TensorType type{content.type.dtype, Shape{shape.elements() / width, width}, {}};
      const Tensor first = quantise_weight({type, state.initial}, 0);
      rows.initial = first.data;
      by_row.initial = constant_bytes(DType::f32, std::span<const double>(first.type.scales->scale));
    }
    read(state.input, {quantised, scales});
    states.push_back(std::move(rows));
    states.push_back(std::move(by_row));
  }

  // Who reads the content reads the reals of its rows.
  void read(ValueId content, Rows rows) {
    const TensorType type = graph_[content].type;
    const Val reals = reals_of(c_, rows.quantised, rows.scales, no_value, row_block(type), type.dtype);
    rows_[content] = of_reals_[reals.id()] = rows;
    out_.replace(content, reals.id());
  }

  void write(const Node& node) {
    c_.set_loc(node.loc);
    const auto put = [&](ValueId to, Val rows) {
      std::vector<ValueId> operands = node.inputs;
      operands.front() = to;
      operands.back() = rows.id();
      return c_.aten(node.op, c_.values(operands), node.attrs).id();
    };
    const Rows before = of_reals_.at(node.inputs[0]);
    const RowsWithScales rows = quantise_dynamically(c_, c_.value(node.inputs.back()), true);
    read(node.outputs[0], {put(before.quantised, rows.quantised), put(before.scales, rows.scale)});
  }
};

Diagnostic stay_floats(const std::vector<std::string>& names) {
  Diagnostic note =
      warning("quantise.float-states",
              fmt::format("{} stay{} float: only states that are written by rows of {} or more floats are "
                          "quantised",
                          fmt::join(names, ", "), names.size() == 1 ? "s" : "", shortest_row));
  note.severity = Severity::note;
  return note;
}

}  // namespace

Status quantise_states(Graph& graph, const std::function<void(Diagnostic)>& sink) {
  std::vector<std::vector<ValueId>> contents;
  std::vector<std::string> floats;
  for (const State& state : graph.states) {
    const TensorType& type = graph[state.input].type;
    const bool rows = is_float(type.dtype) && type.shape.is_static() && type.rank() > 1 &&
                      type.shape.size(type.rank() - 1) >= shortest_row;
    contents.push_back(rows ? contents_of(graph, state) : std::vector<ValueId>());
    if (contents.back().empty() && is_float(type.dtype)) floats.push_back(fmt::format("'{}'", state.name));
  }
  if (sink && !floats.empty()) sink(stay_floats(floats));
  if (floats.size() == graph.states.size()) return {};
  return unless_refused([&] {
    QuantisedStates(graph).run(contents);
    return Status();
  });
}

}  // namespace tosaic
