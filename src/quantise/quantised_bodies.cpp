// SPDX-License-Identifier: Apache-2.0
#include "quantise/quantised_bodies.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/loop_limit.h"
#include "execute/executable.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "lower/lower.h"
#include "quantise/control_flow.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

using Sample = std::vector<Tensor>;
using Samples = std::vector<Sample>;

// All of them while they are few; of many turns every second, fourth, ... and the last.
class Turns {
 public:
  void add(const Sample& sample) {
    if (count_++ % stride_ == 0) kept_.push_back(sample);
    last_ = sample;
    if (kept_.size() < most) return;
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = std::move(kept_[2 * i]);
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }
  Samples all() && {
    if (count_ > 0 && (count_ - 1) % stride_ != 0) kept_.push_back(std::move(last_));
    return std::move(kept_);
  }
  bool empty() const { return count_ == 0; }

 private:
  static constexpr std::size_t most = 512;
  Samples kept_;
  Sample last_;
  std::size_t count_ = 0, stride_ = 1;
};

Result<execute::Executable> runnable(const Graph& graph, int threads) {
  TOSAIC_TRY(Lowered lowered, lower(graph));
  tidy(lowered.graph);
  return execute::Executable::of_lowering(std::move(lowered.graph), {.threads = threads});
}

bool holds(const Tensor& condition) { return element_as_integer(condition.type.dtype, condition.data.data(), 0) != 0; }

// What the bodies of one node are given on the samples.
class Given {
 public:
  Given(const Graph& graph, std::size_t node, int threads)
      : graph_(graph), node_(graph.nodes[node]), n_(node), threads_(threads) {}

  Result<std::vector<Samples>> on(const Samples& samples) {
    TOSAIC_TRY(execute::Executable before, operands());
    const bool loop = node_.op == higher_order::op::while_loop;
    if (loop)
      for (const Graph& body : node_.regions) {
        TOSAIC_TRY(execute::Executable one, runnable(body, threads_));
        bodies_.push_back(std::move(one));
      }
    for (const Sample& sample : samples) {
      TOSAIC_TRY(Sample known, before.run(sample));
      Sample all;
      auto next = known.begin();
      for (ValueId v : node_.inputs)
        all.push_back(graph_[v].is_constant() ? Tensor{graph_[v].type, graph_[v].constant} : std::move(*next++));
      TOSAIC_CHECK(loop ? turns(std::move(all)) : branch(all));
    }
    std::vector<Samples> found;
    for (Turns& body : seen_) {
      never_.push_back(body.empty());
      found.push_back(std::move(body.empty() ? others_ : body).all());
    }
    return found;
  }
  bool never(std::size_t body) const { return never_[body]; }

 private:
  // The program up to the node's operands.
  Result<execute::Executable> operands() const {
    Graph before = graph_;
    before.nodes.resize(n_);
    before.outputs.clear();
    for (ValueId v : node_.inputs)
      if (!graph_[v].is_constant()) before.outputs.push_back(v);
    drop_dead_nodes(before);
    return runnable(before, threads_);
  }

  Status branch(const Sample& operands) {
    const Sample given(operands.begin() + 1, operands.end());
    seen_[holds(operands[0]) ? 0 : 1].add(given);
    others_.add(given);
    return {};
  }

  Status turns(Sample state) {
    others_.add(state);
    TOSAIC_TRY(const std::int64_t most, most_turns());
    for (std::int64_t turn = 0;; ++turn) {
      seen_[0].add(state);
      TOSAIC_TRY(const Sample goes_on, bodies_[0].run(state));
      if (!holds(goes_on.at(0))) return {};
      if (turn == most) return located(too_many_turns(most), node_.loc);
      seen_[1].add(state);
      TOSAIC_TRY(Sample next, bodies_[1].run(state));
      std::ranges::move(next, state.begin());
    }
  }

  const Graph& graph_;
  const Node& node_;
  const std::size_t n_;
  const int threads_;
  std::vector<execute::Executable> bodies_;
  std::vector<Turns> seen_{2};
  Turns others_;  // what a body might be given
  std::vector<bool> never_;
};

bool computes_floats(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return is_float(v.type.dtype); });
}

Diagnostic never_taken(const Node& node, const Graph& body) {
  return located(warning("calibrate.not-taken",
                         fmt::format("no sample runs the subgraph '{}' of {}: its scales follow from its operands",
                                     body.name, node.op))
                     .hint("give samples that take every branch"),
                 node.loc);
}

}  // namespace

Result<QuantisedBodies> quantised_bodies(const Graph& graph, const Samples& samples, const QuantiseOptions& options,
                                         const Sink& sink) {
  QuantisedBodies quantised;
  QuantiseOptions inside = options;  // overrides name nodes of the program
  inside.request = {};
  inside.progress = {};
  const bool are_quantised_at_boundary = options.spec && quantises_control_flow(*options.spec);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool loop = node.op == higher_order::op::while_loop;
    inside.scalars_stay = loop || options.scalars_stay;
    inside.float_outputs = !are_quantised_at_boundary || (loop && computes_floats(node.regions[0]));
    if (!has_mark(node, mark::kept) || !std::ranges::any_of(node.regions, computes_floats)) continue;
    Given given(graph, n, options.threads);
    auto found = given.on(samples);
    if (!found.ok()) {
      if (found.error().internal || found.error().code == "run.loop-limit") return found.error();
      if (sink)
        sink(located(warning("quantise.unobserved",
                             fmt::format("{} cannot be run for calibration: its subgraphs stay float", node.op))
                         .note(found.error().message),
                     node.loc));
      continue;
    }
    for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b) {
      Graph body = node.regions[b];
      if (!computes_floats(body) || (*found)[b].empty()) continue;
      if (sink && given.never(b)) sink(never_taken(node, body));
      widen_half_precision(body);
      TOSAIC_TRY(body, quantise(std::move(body), (*found)[b], inside, sink));
      insert_boundaries(body, Io::floats);
      quantised.insert_or_assign(node.regions[b].name, std::move(body));
    }
  }
  return quantised;
}

void put_bodies(Graph& graph, QuantisedBodies bodies) {
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions)
      if (auto found = bodies.find(body.name); found != bodies.end()) body = std::move(found->second);
}

}  // namespace tosaic
