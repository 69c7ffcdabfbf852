// SPDX-License-Identifier: Apache-2.0
// A short seeded run of what fuzz_stages does at length: small programs, made inconsistent in shapes, dtypes, arity,
// arguments and operators, go down the whole line. Each is compiled and run, or refused with a quantised value and a
// message.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/graph_mutator.h"
#include "fuzz/whole_line.h"

namespace tosaic::test {
namespace {

std::vector<std::pair<std::string, Graph>> seeds() {
  std::vector<std::pair<std::string, Graph>> list;
  for (const auto& file : std::filesystem::directory_iterator(TOSAIC_TEST_DATA "/fuzz/seeds/stages")) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    auto graph = parse(text.str(), file.path().filename().string());
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
    if (graph.ok()) list.emplace_back(file.path().filename().string(), *std::move(graph));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return list;
}

// Operators become others of the seeds, so that a run stays the same when the table grows.
std::vector<std::string> operators_of(const std::vector<std::pair<std::string, Graph>>& seeds) {
  std::vector<std::string> names;
  for (const auto& [file, graph] : seeds)
    for (const Node& node : graph.nodes) names.push_back(node.op.text());
  return names;
}

TEST(Line, the_seeds_run) {
  for (const char* name : {"tosa-fp", "tosa-int"})
    for (auto& [file, graph] : seeds()) {
      auto sound = verify(graph);
      EXPECT_TRUE(sound.ok()) << file << ": " << (sound.ok() ? "" : sound.error().message);
      EXPECT_EQ(whole_line(graph, *find_target(name, "")), std::nullopt) << file;
    }
}

TEST(Line, mutated_graphs_are_run_or_refused) {
  const Target targets[] = {*find_target("tosa-fp", ""), *find_target("tosa-int", "")};
  const char* rounds_text = std::getenv("TOSAIC_MUTATIONS");
  const int rounds = rounds_text ? std::atoi(rounds_text) : 400;
  const auto all = seeds();
  ASSERT_FALSE(all.empty());
  Mutator mutate(static_cast<unsigned>(rounds), operators_of(all));
  int tried = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto& [file, seed] = all[static_cast<std::size_t>(round) % all.size()];
    Graph graph = seed;
    for (int i = 0; i <= round % 3; ++i) mutate.change(graph);
    if (!verify(graph).ok() || !small(graph)) continue;
    ++tried;
    for (const Target& target : targets) {
      const std::string text = print(graph, ConstantText::all);
      if (std::getenv("TOSAIC_SHOW")) fprintf(stderr, "%s", text.c_str());
      const Defect defect = whole_line(graph, target);
      EXPECT_EQ(defect, std::nullopt) << target.name << ", from " << file << ":\n" << text;
    }
  }
  EXPECT_GT(tried, rounds / 3);
}

}  // namespace
}  // namespace tosaic::test
