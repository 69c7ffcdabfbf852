// SPDX-License-Identifier: Apache-2.0
#include "pipeline/step_names.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/spelling.h"
#include "pipeline/pipeline.h"

namespace tosaic {
namespace {

class Names : public RewriteTrace {
 public:
  void rewrite(std::string_view stage, std::string_view name, Graph&, const std::function<void()>& apply) override {
    apply();
    met(fmt::format("{}/{}", stage, name));
  }
  void made(std::string_view stage, const Graph&) override { met(std::string(stage)); }
  void made_part(std::string_view, const Graph&) override {}
  std::vector<std::string> all;

 private:
  void met(std::string name) {
    if (!std::ranges::count(all, name)) all.push_back(std::move(name));
  }
};

// y = relu(x), which every target takes.
ExportedProgram least_program() {
  Graph graph;
  const TensorType type{DType::f32, Shape{1, 4, 4, 4}, {}};
  graph.inputs = {graph.add_value("x", type)};
  graph.outputs = {graph.add_value("y", type)};
  graph.nodes.push_back({Operator("aten.relu.default"), graph.inputs, {}, graph.outputs, nullptr, {}});
  ExportedProgram program;
  program.methods.emplace_back().name = "forward";
  program.methods[0].graph = std::move(graph);
  return program;
}

}  // namespace

// There is no list of them: a program goes along the line, and its names are those that it meets.
Result<std::vector<std::string>> step_names(CompileOptions options) {
  options.show = {};
  options.sizes = {};
  options.quantise.request = {};
  Names names;
  CompileCallbacks callbacks;
  callbacks.graphs = &names;
  TOSAIC_CHECK(compile_model(least_program(), options, callbacks, Request::question()));
  return std::move(names.all);
}

Status check_step_names(const CompileOptions& options) {
  std::vector<std::string> asked = options.show.print_after;
  std::erase(asked, list_of_names);
  if (asked.empty()) return {};
  const auto known = step_names(options);
  if (!known.ok()) return {};  // nor does the user's own program compile with these options, which is told of that
  const std::vector<std::string>& names = *known;
  for (const std::string& name : asked) {
    if (std::ranges::count(names, name)) continue;
    std::vector<std::string> near = nearest(name, names);
    if (near.empty())
      std::ranges::copy_if(names, std::back_inserter(near), [](const auto& n) { return n.find('/') == n.npos; });
    return error("option.value",
                 fmt::format("a program for {} goes through nothing that is called '{}'", options.target.name, name))
        .hint(fmt::format("did you mean {}? --print-after list prints all names", alternatives(near)));
  }
  return {};
}

}  // namespace tosaic
