// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_graph/hosted_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "base/system/clock.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::delegates {
namespace {

bool is_hosts(const Node& node) {
  return !node.regions.empty() || node.op == tosa::op::variable || node.op == tosa::op::variable_read ||
         node.op == tosa::op::variable_write;
}

// Nodes in a row, on the device.
struct Subgraph {
  std::vector<ValueId> inputs, outputs;  // of the graph
  std::optional<vulkan::ComputeModel> model;
};
// One or the other.
struct Stage {
  std::shared_ptr<Subgraph> subgraph;
  const Node* node = nullptr;
  std::vector<vulkan::DispatchTime> times = {};  // in the last run, where it ran and was measured
};

void add(std::vector<vulkan::DispatchTime>& sums, std::vector<vulkan::DispatchTime> times) {
  if (sums.empty()) return sums.swap(times);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].seconds += times[i].seconds;
}

using Clock = SteadyClock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

using Stages = std::vector<Stage>;

class Cutting {
 public:
  Cutting(const Graph& graph, const std::function<Status(Subgraph& subgraph, const Graph& cut)>& make)
      : graph_(graph), make_(make), last_read_(graph.values.size(), 0) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (ValueId v : graph.nodes[n].inputs)
        if (v != no_value) last_read_[v] = n;
    for (ValueId v : graph.outputs) last_read_[v] = graph.nodes.size();
  }

  Result<Stages> cut() {
    for (std::size_t begin = 0, end; begin < graph_.nodes.size(); begin = end) {
      end = begin + 1;
      if (is_hosts(graph_.nodes[begin])) {
        stages_.push_back({nullptr, &graph_.nodes[begin]});
        continue;
      }
      while (end < graph_.nodes.size() && !is_hosts(graph_.nodes[end])) ++end;
      TOSAIC_CHECK(add(begin, end));
    }
    return std::move(stages_);
  }

 private:
  Status add(std::size_t begin, std::size_t end) {
    auto subgraph = std::make_shared<Subgraph>();
    Graph cut;
    cut.name = graph_.name;
    std::map<ValueId, ValueId> here;
    const auto value = [&](ValueId v) {
      const auto [known, added] = here.try_emplace(v, no_value);
      if (added) known->second = cut.add_value(graph_[v].name, graph_[v].type, graph_[v].constant);
      return known->second;
    };
    std::set<ValueId> made;
    for (std::size_t n = begin; n < end; ++n) {
      Node node = graph_.nodes[n];
      for (ValueId& v : node.inputs) {
        if (v == no_value) continue;
        const ValueId from = v;
        const bool known = here.contains(v);
        v = value(v);
        if (known || graph_[from].is_constant()) continue;
        cut.inputs.push_back(v);
        subgraph->inputs.push_back(from);
      }
      for (ValueId& v : node.outputs) {
        made.insert(v);
        v = value(v);
      }
      cut.nodes.push_back(std::move(node));
    }
    for (ValueId v : made)
      if (last_read_[v] >= end) {
        cut.outputs.push_back(here[v]);
        subgraph->outputs.push_back(v);
      }
    if (subgraph->outputs.empty()) return {};
    TOSAIC_CHECK(make_(*subgraph, cut));
    stages_.push_back({std::move(subgraph), nullptr});
    return {};
  }

  const Graph& graph_;
  const std::function<Status(Subgraph& subgraph, const Graph& cut)>& make_;
  std::vector<std::size_t> last_read_;  // by value: the node, or behind all of them
  Stages stages_;
};

}  // namespace

bool needs_host(const Graph& graph) { return std::ranges::any_of(graph.nodes, is_hosts); }

struct HostedGraph::Impl {
  std::shared_ptr<const Graph> graph;
  std::string device;
  std::map<const Graph*, Stages> stages;  // of the graph and of all bodies in it
  tosa::Variables variables;
  double seconds = 0;
  bool measured = false;

  using Make = std::function<Status(Subgraph& subgraph, const Graph& cut)>;
  Status cut(const Graph& g, const Make& make) {
    TOSAIC_TRY(stages[&g], Cutting(g, make).cut());
    for (const Node& node : g.nodes)
      for (const Graph& body : node.regions) TOSAIC_CHECK(cut(body, make));
    return {};
  }

  Result<std::vector<Tensor>> run(const Graph& g, std::vector<Tensor> inputs) {
    std::vector<Tensor> content(g.values.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) content[g.inputs[i]] = std::move(inputs[i]);
    for (std::size_t v = 0; v < content.size(); ++v)
      if (g.values[v].is_constant()) content[v] = {g.values[v].type, g.values[v].constant};
    for (Stage& stage : stages.at(&g)) {
      Status ran = stage.subgraph ? run_subgraph(g, stage, content) : run_node(g, stage, content);
      if (!ran.ok()) return stage.node ? located(std::move(ran).error(), stage.node->loc) : std::move(ran).error();
    }
    std::vector<Tensor> outputs;
    for (ValueId v : g.outputs) outputs.push_back(content[v]);
    return outputs;
  }

  static void* space(const Graph& g, ValueId v, std::vector<Tensor>& content) {
    std::byte* memory = nullptr;
    Bytes data = Bytes::fresh(g[v].type.storage_bytes(), memory);
    content[v] = {g[v].type, std::move(data)};
    return memory;
  }

  Status run_subgraph(const Graph& g, Stage& stage, std::vector<Tensor>& content) {
    Subgraph& subgraph = *stage.subgraph;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (ValueId v : subgraph.inputs) in.push_back(content[v].data.data());
    for (ValueId v : subgraph.outputs) out.push_back(space(g, v, content));
    TOSAIC_CHECK(subgraph.model->run(in, out));
    seconds += subgraph.model->device_seconds();
    if (measured) add(stage.times, subgraph.model->times());
    return {};
  }

  // By the operator's own rule, whose bodies run as the graph does.
  Status run_node(const Graph& g, Stage& stage, std::vector<Tensor>& content) {
    const Node& node = *stage.node;
    std::vector<TensorView> in;
    std::vector<MutableTensorView> out;
    for (ValueId v : node.inputs) in.push_back({content[v].type, content[v].data.data()});
    for (ValueId v : node.outputs) out.push_back({g[v].type, space(g, v, content)});
    double inside = 0;
    const tosa::RunRegion region = [&](const Graph& body, std::vector<Tensor> operands) {
      const auto begin = Clock::now();
      auto results = run(body, std::move(operands));
      inside += since(begin);
      return results;
    };
    const auto begin = Clock::now();
    TOSAIC_CHECK(tosa::find(node.op)->eval({tosa::View(g, node), in, out, &region, &variables}));
    if (measured)
      add(stage.times, {{node.op.text(), node.outputs.empty() ? "" : g[node.outputs[0]].name, layer_text(node.loc),
                         since(begin) - inside}});
    return {};
  }

  void collect(const Graph& g, std::vector<vulkan::DispatchTime>& all) const {
    for (const Stage& stage : stages.at(&g)) {
      all.insert(all.end(), stage.times.begin(), stage.times.end());
      if (stage.node)
        for (const Graph& body : stage.node->regions) collect(body, all);
    }
  }
};

HostedGraph::HostedGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostedGraph::HostedGraph(HostedGraph&&) noexcept = default;
HostedGraph& HostedGraph::operator=(HostedGraph&&) noexcept = default;
HostedGraph::~HostedGraph() = default;

Result<HostedGraph> HostedGraph::load(Graph graph, const std::string& device,
                                      const std::function<void(const std::string&)>& told) {
  auto impl = std::make_unique<Impl>();
  impl->graph = std::make_shared<const Graph>(std::move(graph));
  impl->device = device;
  TOSAIC_TRY(const vulkan_program::TierId tier, vulkan::tier_of_device(device));
  int subgraphs = 0;
  TOSAIC_CHECK(impl->cut(*impl->graph, [&](Subgraph& subgraph, const Graph& cut) -> Status {
    TOSAIC_TRY(vulkan_program::Program program, shaders::compile(cut, {&tier, 1}));
    const auto told_of_it = [&, number = ++subgraphs](const std::string& line) {
      if (told) told(fmt::format("part {}: {}", number, line));
    };
    TOSAIC_TRY(vulkan::ComputeModel model, vulkan::ComputeModel::load(std::move(program), device, told_of_it));
    impl->device = model.device();
    subgraph.model.emplace(std::move(model));
    return {};
  }));
  return HostedGraph(std::move(impl));
}

Result<HostedGraph> HostedGraph::clone() const {
  auto impl = std::make_unique<Impl>();
  impl->graph = impl_->graph;
  impl->device = impl_->device;
  for (const auto& [graph, stages] : impl_->stages) {
    Stages& made = impl->stages[graph];
    for (const Stage& stage : stages) {
      made.push_back({nullptr, stage.node});
      if (!stage.subgraph) continue;
      TOSAIC_TRY(vulkan::ComputeModel model, stage.subgraph->model->clone());
      made.back().subgraph =
          std::make_shared<Subgraph>(Subgraph{stage.subgraph->inputs, stage.subgraph->outputs, std::nullopt});
      made.back().subgraph->model.emplace(std::move(model));
    }
  }
  return HostedGraph(std::move(impl));
}

const Graph& HostedGraph::graph() const { return *impl_->graph; }
std::string HostedGraph::device() const { return impl_->device; }
void HostedGraph::reset() { impl_->variables.clear(); }
double HostedGraph::device_seconds() const { return impl_->seconds; }

Status HostedGraph::measure(bool on) {
  impl_->measured = on;
  for (auto& [graph, stages] : impl_->stages)
    for (Stage& stage : stages) {
      stage.times.clear();
      if (stage.subgraph) TOSAIC_CHECK(stage.subgraph->model->measure(on));
    }
  return {};
}

std::vector<vulkan::DispatchTime> HostedGraph::times() const {
  std::vector<vulkan::DispatchTime> all;
  impl_->collect(*impl_->graph, all);
  return all;
}

Result<std::vector<Tensor>> HostedGraph::run(std::vector<Tensor> inputs) {
  impl_->seconds = 0;
  for (auto& [graph, stages] : impl_->stages)
    for (Stage& stage : stages) stage.times.clear();
  return impl_->run(*impl_->graph, std::move(inputs));
}

}  // namespace tosaic::delegates
