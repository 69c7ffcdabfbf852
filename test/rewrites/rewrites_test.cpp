// SPDX-License-Identifier: Apache-2.0
// Each rewrite alone: what it makes of small graphs, as golden text (README.md). A rewrite that any target goes through
// has a file here, or stands in elsewhere.txt with the reason why not.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "api/compile_options.h"
#include "base/diagnostic.h"
#include "pipeline/step_names.h"
#include "pipeline/steps.h"
#include "rewrites/golden_file.h"

namespace tosaic {
namespace {

namespace fs = std::filesystem;
const std::string folder = TOSAIC_TEST_DATA "/rewrites";

// Applies one rewrite, and those that have to come first; all others are left out.
class Alone : public RewriteTrace {
 public:
  Alone(std::string name, const std::vector<std::string>& behind, std::string graph)
      : name_(std::move(name)), behind_(behind.begin(), behind.end()), graph_(std::move(graph)) {}

  void rewrite(std::string_view stage, std::string_view name, Graph& graph,
               const std::function<void()>& apply) override {
    const std::string full = std::string(stage) + "/" + std::string(name);
    if (full != name_ && !behind_.contains(full)) return;
    const bool counts = full == name_ && graph.name == graph_;  // not of a body
    if (counts && !before) before = graph;
    apply();
    if (counts) after = graph;
  }
  void made(std::string_view, const Graph&) override {}
  void made_part(std::string_view, const Graph&) override {}

  std::optional<Graph> before, after;

 private:
  const std::string name_;
  const std::set<std::string> behind_;
  const std::string graph_;
};

// The stage whose rewrite it is, up to its end or its first error.
Status run_stage(const std::string& stage, Graph graph, const Context& c) {
  if (stage == "normalise") {
    TOSAIC_CHECK(normalise_program(std::move(graph), c));
  } else if (stage == "quantise") {
    StateContents contents;
    Normal normal;
    normal.graph = std::move(graph);
    TOSAIC_TRY(Observed seen, observe_ranges(std::move(normal), nullptr, contents, c));
    TOSAIC_CHECK(choose_types(std::move(seen), c));
  } else if (stage == "partition") {
    Typed typed;
    for (const Value& value : graph.values) typed.narrowed.push_back(value.name);
    typed.graph = std::move(graph);
    TOSAIC_CHECK(split_by_target(std::move(typed), c));
  } else if (stage == "lower") {
    TOSAIC_CHECK(lower_region(graph, c));
  } else {
    Node call;
    call.inputs = graph.inputs;
    tidy_region(graph, &call, c);
  }
  return {};
}

std::string rewritten(const std::string& name, const RewriteCase& given, const GoldenFile& file) {
  auto graph = parse(given.in, name);
  if (!graph.ok()) return render(graph.error(), false);
  if (const Status sound = verify(*graph); !sound.ok()) return render(sound.error(), false);
  Options options;
  for (const auto& [option, value] : file.options) options.set(option, value);
  auto how = compile_options_for(file.target, options);
  if (!how.ok()) return render(how.error(), false);
  Method method;
  method.graph = *graph;
  Alone alone(name, file.behind, graph->name);
  CompileCallbacks callbacks;
  callbacks.graphs = &alone;
  const Context context(method, *how, callbacks, {}, {.invent_samples = true});
  const Status done = run_stage(name.substr(0, name.find('/')), *graph, context);
  if (!alone.after) return done.ok() ? "the stage ends without it\n" : render(done.error(), false);
  const std::string before = print(*alone.before), after = print(*alone.after);
  return after == before ? "unchanged\n" : after;
}

std::vector<std::string> names_with_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".txt" && entry.path().parent_path() != fs::path(folder))
      names.push_back(entry.path().parent_path().filename().string() + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Rewrite : public testing::TestWithParam<std::string> {};

TEST_P(Rewrite, does_what_its_file_says) {
  const std::string path = folder + "/" + GetParam() + ".txt";
  GoldenFile file = read_golden_file(path);
  ASSERT_FALSE(file.cases.empty());
  const GoldenFile golden = file;
  bool fires = false;
  for (std::size_t i = 0; i < file.cases.size(); ++i) {
    file.cases[i].out = rewritten(GetParam(), golden.cases[i], golden);
    fires |= file.cases[i].out.starts_with("graph");
    if (!std::getenv("TOSAIC_BLESS")) {
      EXPECT_EQ(file.cases[i].out, golden.cases[i].out)
          << golden.cases[i].title << ": TOSAIC_BLESS=1 test_rewrites writes the file again; read its diff";
    }
  }
  EXPECT_TRUE(fires) << "in no case of " << path << " does it change the graph";
  if (std::getenv("TOSAIC_BLESS")) write_golden_file(path, file);
}

INSTANTIATE_TEST_SUITE_P(Golden, Rewrite, testing::ValuesIn(names_with_files()), [](const auto& of) {
  std::string name = of.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

// "STAGE/REWRITE  why".
std::set<std::string> names_elsewhere() {
  std::set<std::string> names;
  std::ifstream from(folder + "/elsewhere.txt");
  for (std::string line; std::getline(from, line);) {
    std::istringstream words(line);
    std::string name, why;
    if (line.empty() || line[0] == '#') continue;
    words >> name >> why;
    EXPECT_FALSE(why.empty()) << name << " stands in elsewhere.txt without a reason";
    names.insert(name);
  }
  return names;
}

// What the stages of all targets go through, with the options that more rewrites belong to.
std::set<std::string> names_known() {
  std::set<std::string> known;
  const std::vector<Options> options{{},
                                     Options().set("quantize", "int8"),
                                     Options().set("weights", "int4"),
                                     Options().set("io", "quantized").set("single-delegate", true),
                                     Options().set("io", "quantized").set("tosa-spec", "TOSA-1.0+INT+controlflow"),
                                     Options().set("tosa-spec", "TOSA-1.0+FP+variable")};
  for (const Target& target : all_targets())
    for (const Options& given : options) {
      const auto how = compile_options_for(target.name, given);
      const auto names = how.ok() ? step_names(*how) : Result<std::vector<std::string>>(how.error());
      EXPECT_TRUE(names.ok() || !given.all().empty()) << target.name << ": " << render(names.error(), false);
      if (!names.ok()) continue;  // no options of this target's
      for (const std::string& name : *names)
        if (name.find('/') != name.npos) known.insert(name);
    }
  return known;
}

TEST(Rewrites, all_have_a_file_or_a_reason) {
  const std::set<std::string> known = names_known(), elsewhere = names_elsewhere();
  const auto listed = names_with_files();
  const std::set<std::string> files(listed.begin(), listed.end());
  EXPECT_GT(known.size(), 40u);
  for (const std::string& name : known)
    EXPECT_NE(files.contains(name), elsewhere.contains(name))
        << name
        << (files.contains(name) ? " has a file, and a reason for having none"
                                 : " has neither a file here nor a reason in elsewhere.txt");
  for (const auto& names : {files, elsewhere})
    for (const std::string& name : names) EXPECT_TRUE(known.contains(name)) << "no target goes through " << name;
}

}  // namespace
}  // namespace tosaic
