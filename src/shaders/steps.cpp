// SPDX-License-Identifier: Apache-2.0
#include "shaders/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/groups.h"
#include "shaders/compile.h"
#include "shaders/elements.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_nodes = 24;  // in one group

class Planning {
 public:
  explicit Planning(const Work& work)
      : work_(work), graph_(work.graph), uses_(graph_), taken_(graph_.nodes.size(), false) {}

  Result<Steps> plan() {
    const auto count = static_cast<std::uint32_t>(graph_.nodes.size());
    for (std::uint32_t n = 0; n < count; ++n)
      if (const auto violation = refusal(tosa::View(graph_, graph_.nodes[n])))
        return located(error(violation->label, fmt::format("{}: {}", graph_.nodes[n].op, violation->message)),
                       graph_.nodes[n].loc);
    for (std::uint32_t n = 0; n < count; ++n)
      if (is_view(graph_.nodes[n])) take_view(n);
    for (std::uint32_t n = 0; n < count; ++n)
      if (!taken_[n]) take_kernel(n);
    for (std::uint32_t n = count; n-- > 0;)
      if (!taken_[n] && tosa::find(graph_.nodes[n].op)->elementwise) take_elementwise(n);
    for (std::uint32_t n = 0; n < count; ++n)
      if (!taken_[n])
        return located(error("vulkan.no-kernel", fmt::format("{} needs more parameters than every Vulkan device takes",
                                                             graph_.nodes[n].op)),
                       graph_.nodes[n].loc);
    std::sort(steps_.list.begin(), steps_.list.end(),
              [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });
    return std::move(steps_);
  }

 private:
  void take_view(std::uint32_t n) {
    taken_[n] = true;
    steps_.aliases.push_back({graph_.nodes[n].outputs[0], graph_.nodes[n].inputs[0], 0});
  }

  void add(std::vector<std::uint32_t> nodes, MadeList made) {
    Step step;
    for (std::uint32_t n : nodes) taken_[n] = true;
    step.nodes = std::move(nodes);
    for (const Made& m : *made)
      for (const Bound& b : m.bound)
        if (const auto* v = std::get_if<ValueId>(&b.what)) {
          auto& list = b.written ? step.writes : step.reads;
          if (std::ranges::find(list, *v) == list.end()) list.push_back(*v);
        } else if (const auto* scratch = std::get_if<Scratch>(&b.what)) {
          step.scratch_bytes = std::max(step.scratch_bytes, scratch->offset + scratch->bytes);
        }
    step.dispatches = std::move(*made);
    steps_.list.push_back(std::move(step));
  }

  plan::Fusing fusing() {
    return {[this](std::uint32_t n) {
              const tosa::View view(graph_, graph_.nodes[n]);
              return !taken_[n] && tosa::find(graph_.nodes[n].op)->elementwise && has_element_shader(view);
            },
            most_nodes};
  }

  void take_kernel(std::uint32_t n) {
    const Node& node = graph_.nodes[n];
    const std::span<const KernelRow> rows = kernel_rows(node);
    if (rows.empty())
      if (MadeList made = make_movement(work_, node)) add({n}, std::move(made));
    for (const KernelRow& row : rows)
      if (row.tiers.has(work_.tier) && (!row.takes || row.takes(tosa::View(graph_, node))) && take_by(row, n)) return;
  }

  bool take_by(const KernelRow& row, std::uint32_t n) {
    const Node& node = graph_.nodes[n];
    const bool fused = plan::longest_tail(uses_, fusing(), node.outputs[0], [&](const auto& tail) {
      const plan::Expression expression = plan::expression_of(graph_, tail);
      MadeList made = row.make(work_, node, Finish(node.outputs[0], &expression));
      if (!made) return false;
      std::vector<std::uint32_t> nodes{n};
      nodes.insert(nodes.end(), tail.begin(), tail.end());
      std::sort(nodes.begin(), nodes.end());
      add(std::move(nodes), std::move(made));
      return true;
    });
    if (fused) return true;
    MadeList made = row.make(work_, node, Finish(node.outputs[0], nullptr));
    if (made) add({n}, std::move(made));
    return taken_[n];
  }

  // As many as fit into one dispatch.
  void take_elementwise(std::uint32_t n) {
    plan::Fusing how = fusing();
    for (;; how.max_nodes = (how.max_nodes + 1) / 2) {
      std::vector<std::uint32_t> nodes = plan::elementwise_group(uses_, how, n);
      MadeList made = make_elementwise(work_, plan::expression_of(graph_, nodes));
      if (made) return add(std::move(nodes), std::move(made));
      if (how.max_nodes == 1) return;
    }
  }

  const Work work_;
  const Graph& graph_;
  const plan::Uses uses_;
  std::vector<bool> taken_;
  Steps steps_;
};

}  // namespace

bool is_view(const Node& node) { return node.op == "tosa.reshape" || node.op == "tosa.identity"; }

Result<Steps> steps_of(const Work& work) { return Planning(work).plan(); }

}  // namespace tosaic::shaders
