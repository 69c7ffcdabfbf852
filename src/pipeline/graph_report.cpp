// SPDX-License-Identifier: Apache-2.0
#include "pipeline/graph_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "base/spelling.h"
#include "base/system/output.h"
#include "ir/dot.h"
#include "ir/lines_about.h"

namespace tosaic {
namespace {

using Lines = std::vector<std::string>;

// Those that `other` lacks.
Lines without(const Lines& lines, const Lines& other) {
  Lines left;
  std::ranges::copy_if(lines, std::back_inserter(left),
                       [&](const std::string& l) { return !std::ranges::count(other, l); });
  return left;
}

}  // namespace

GraphReport::GraphReport(GraphReportOptions wanted, const std::string& folder) : wanted_(std::move(wanted)) {
  if (wanted_.dump_dir.empty()) return;
  if (!folder.empty()) wanted_.dump_dir += "/" + folder;
  written_ = make_folder(wanted_.dump_dir);
}

bool GraphReport::wants(std::string_view name) const { return std::ranges::count(wanted_.print_after, name) > 0; }

GraphReport::Step& GraphReport::step(const std::string& name) {
  const auto known = std::ranges::find(steps_, name, &Step::name);
  return known != steps_.end() ? *known : steps_.emplace_back(Step{name});
}

void GraphReport::rewrite(std::string_view stage, std::string_view name, Graph& graph,
                          const std::function<void()>& apply) {
  const std::string full = fmt::format("{}/{}", stage, name);
  const bool compared = wants(full) || wants(list_of_names) || !wanted_.dump_dir.empty();
  end_stage();
  const std::string before = compared ? print(graph) : "";
  const Lines lines = wanted_.trace_node.empty() ? Lines() : lines_about(graph, wanted_.trace_node);
  apply();
  Step& met = step(full);
  ++met.runs;
  if (!wanted_.trace_node.empty()) follow(full, lines, lines_about(graph, wanted_.trace_node));
  if (!compared) return;
  const std::string after = print(graph);
  if (after == before) return;
  ++met.changes;
  if (wants(full)) text_ += fmt::format("// {}, change {}\n{}", full, met.changes, after);
  dump(full, graph);
}

void GraphReport::made(std::string_view stage, const Graph& graph) {
  const std::string name(stage);
  ++step(name).runs;
  if (wants(stage)) text_ += print(graph);
  dump(name, graph);
  if (names_.empty() && !wanted_.trace_node.empty())
    for (const Value& value : graph.values) names_.push_back(value.name);
  made_part(stage, graph);
}

void GraphReport::made_part(std::string_view stage, const Graph& part) {
  if (wanted_.trace_node.empty()) return;
  if (ended_ != stage) end_stage();
  ended_ = stage;
  std::ranges::copy(lines_about(part, wanted_.trace_node), std::back_inserter(at_end_));
}

// A stage may make several graphs, and a node is in one of them.
void GraphReport::end_stage() {
  if (ended_.empty()) return;
  follow(ended_, known_, at_end_);
  known_ = std::move(at_end_);
  at_end_.clear();
  ended_.clear();
}

void GraphReport::follow(const std::string& step, const Lines& before, const Lines& after) {
  const Lines gone = without(before, after), come = without(after, before);
  if (gone.empty() && come.empty()) return;
  text_ += step + "\n";
  for (const std::string& line : gone) text_ += fmt::format("  - {}\n", line);
  for (const std::string& line : come) text_ += fmt::format("  + {}\n", line);
  known_ = without(known_, gone);
  known_.insert(known_.end(), come.begin(), come.end());
}

// 007_tidy.merge_rescales.txt, and the same as .dot.
void GraphReport::dump(const std::string& step, const Graph& graph) {
  if (wanted_.dump_dir.empty() || !written_.ok()) return;
  std::string file = fmt::format("{}/{:03}_{}", wanted_.dump_dir, files_++, step);
  std::replace(file.begin() + static_cast<std::ptrdiff_t>(wanted_.dump_dir.size()) + 1, file.end(), '/', '.');
  const std::string text = print(graph), picture = dot(graph);
  written_ = write_file(file + ".txt", text.data(), text.size());
  if (written_.ok()) written_ = write_file(file + ".dot", picture.data(), picture.size());
}

std::string GraphReport::list() const {
  std::size_t width = 0;
  for (const Step& step : steps_) width = std::max(width, step.name.size());
  std::string text;
  for (const Step& step : steps_)
    text += step.changes == 0
                ? step.name + "\n"
                : fmt::format("{:{}}  changed the graph {} of {} times\n", step.name, width, step.changes, step.runs);
  return text;
}

std::string GraphReport::text() {
  end_stage();
  if (wants(list_of_names)) text_ += list();
  for (const std::string& name : wanted_.print_after) {
    if (name == list_of_names || name.find('/') == name.npos) continue;
    const auto met = std::ranges::find(steps_, name, &Step::name);
    if (met == steps_.end())
      text_ += fmt::format("// {} is no part of this compilation\n", name);
    else if (met->changes == 0)
      text_ += fmt::format("// {} changed nothing\n", name);
  }
  if (!wanted_.trace_node.empty() && text_.empty()) {
    const Lines near = nearest(wanted_.trace_node, names_);
    text_ += fmt::format("// nothing is called '{}'{}\n", wanted_.trace_node,
                         near.empty() ? "" : "; did you mean " + alternatives(near) + "?");
  }
  return std::move(text_);
}

}  // namespace tosaic
