// SPDX-License-Identifier: Apache-2.0
// What `explain`, `supports` and `plan` say of a program is what `compile` does. Asked about the test models, the small
// graphs of test/rewrites and pairs of both, for any target, with several options: of all combinations a seeded part,
// with TOSAIC_ALL_ANSWERS=1 each.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "ir/tensor.h"
#include "rewrites/golden_file.h"
#include "targets/target.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name;
  Program program;
};

std::vector<fs::path> files(const fs::path& folder, const char* ending) {
  std::vector<fs::path> found;
  if (std::error_code none; !fs::exists(folder, none)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ending) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// What cannot be read is another test's.
std::vector<Named> programs() {
  const fs::path tests = TOSAIC_TEST_DATA;
  std::vector<Named> list;
  for (const fs::path& folder : {tests / "cli/models", tests / "../build/models"})
    for (const fs::path& file : files(folder, ".pt2"))
      if (auto program = Program::open(file.string()); program.ok())
        list.push_back({file.filename().string(), *std::move(program)});
  for (const char* stage : {"normalise", "quantise", "partition"})
    for (const fs::path& file : files(tests / "rewrites" / stage, ".txt"))
      for (const RewriteCase& one : read_golden_file(file.string()).cases) {
        const std::string name = fmt::format("{}/{}: {}", stage, file.stem().string(), one.title);
        auto program = Program::read(Bytes::copy(one.in.data(), one.in.size()), name);
        if (program.ok()) list.push_back({name, *std::move(program)});
      }
  for (std::size_t i = 0, count = list.size(); i + 1 < count; i += 5)
    if (auto both = Program::together({{"a", list[i].program}, {"b", list[i + 1].program}}, "pair"); both.ok())
      list.push_back({fmt::format("a={} b={}", list[i].name, list[i + 1].name), *std::move(both)});
  return list;
}

// Those of integers, and sizes where the program's vary.
std::vector<Options> options_for(const Program& program) {
  std::vector<Options> all(1);
  for (const char* scheme : {"int8", "int16x8"}) all.emplace_back().set("quantize", scheme);
  all.emplace_back().set("io", "quantized");
  std::vector<std::string> most, two;
  for (const MethodInfo& method : program.methods())
    for (const Argument& input : method.inputs)
      for (std::size_t d = 0; input.tensor && d < input.tensor->dims.size(); ++d) {
        const Dimension& dim = input.tensor->dims[d];
        if (!dim.dynamic() || dim.size < 0) continue;
        most.push_back(fmt::format("{}.{}=max", input.tensor->name, d));
        two.push_back(fmt::format("{}.{}={},{}", input.tensor->name, d, dim.lowest, dim.size));
      }
  if (most.empty()) return all;
  for (std::size_t i = 0, count = all.size(); i < count; ++i)
    for (const auto& sizes : {most, two}) all.emplace_back(all[i]).set("sizes", sizes);
  return all;
}

std::string text_of(const Options& options) {
  std::string text;
  for (const auto& [name, values] : options.all()) text += fmt::format(" --{} {}", name, fmt::join(values, " "));
  return text;
}

// As `explain` makes them up, at the largest sizes and at the least.
MethodSamples made_up(const Program& program) {
  MethodSamples all;
  for (const MethodInfo& method : program.methods()) {
    std::vector<std::vector<OwnedTensor>> samples;
    for (const bool least : {false, true}) {
      std::mt19937 random(1);
      std::vector<OwnedTensor>& sample = samples.emplace_back();
      for (const Argument& input : method.inputs) {
        if (!input.tensor) continue;
        std::vector<std::int64_t> sizes;
        std::size_t count = 1;
        for (const Dimension& d : input.tensor->dims)
          count *= static_cast<std::size_t>(sizes.emplace_back(least ? d.lowest : d.size));
        std::vector<double> values(count);
        for (double& x : values) x = is_float(input.tensor->dtype) ? random() / 4294967296.0 - 0.5 : 0;
        sample.push_back({input.tensor->dtype, std::move(sizes), constant_bytes(input.tensor->dtype, values)});
      }
    }
    if (samples[0].size() == samples[1].size() &&
        std::ranges::equal(samples[0], samples[1], {}, &OwnedTensor::sizes, &OwnedTensor::sizes))
      samples.pop_back();
    all.emplace_back(method.name, samples_of(std::move(samples)));
  }
  return all;
}

// Does what the program becomes follow from the scales, and not from the plan alone?
bool samples_decide(const Named& named, const Target& target, const Options& options, const Summary& summary) {
  if (options.has("quantize") && !target.spec.has(tosa::Feature::pro_int)) return true;
  if (named.name.starts_with("quantise/leave_unresolved_float")) return true;  // said of the user's samples alone
  return std::ranges::any_of(summary.messages, [](const Diagnostic& m) {
    return m.code == "calibrate.unresolved" || m.code == "quantise.unlike-ranges";
  });
}

Result<Artifact> compiled(const Program& program, const Target& target, const Options& options) {
  auto made = compile(program, target.name, options);
  if (made.ok() || made.error().code != "calibrate.no-samples") return made;
  return compile(program, target.name, options, {}, made_up(program));
}

// Which nodes are taken, and why not the others.
std::string told(const std::vector<NodeVerdict>& verdicts) {
  std::string text;
  for (const NodeVerdict& v : verdicts)
    text += fmt::format("{} {}: {}\n", v.name, v.op, v.taken ? "taken" : "outside, " + v.reason->code);
  return text;
}

// And where, in which pieces.
std::string told(const Summary& summary) {
  std::string text;
  for (const NodeVerdict& v : summary.exported)
    text += fmt::format("{} {} {}{}\n", v.name, v.pieces, fmt::join(v.delegates, ","),
                        v.reason ? " " + v.reason->code + " " + v.reason->message : "");
  for (const NodePlacement& n : summary.nodes)
    text += fmt::format("{} {} {} {}{}\n", n.name, n.op, n.delegate, n.conversion,
                        n.reason ? " " + n.reason->code + " " + n.reason->message : "");
  return text;
}

// What a program is, for who cannot have all of it.
std::string content(const Artifact& artifact) {
  std::string all;
  for (const std::string& name : artifact.pieces())
    if (name == "pte" || name.starts_with("tosa"))
      if (const auto piece = artifact.piece(name); piece.ok()) all += name + ":" + std::string(piece->text());
  return all;
}

class SameAnswers : public testing::Test {
 protected:
  void expect_same(const Named& named, const Target& target, const Options& options) {
    SCOPED_TRACE(fmt::format("{} for {}{}", named.name, target.name, text_of(options)));
    const auto explained = explain(named.program, target.name, options);
    // Its compiler is another's, and takes its time.
    if (!target.self_check) compile_does(named.program, target, options, explained);
    if (named.program.methods().size() == 1) supports_says(named, target, options, explained);
    plan_is_read(named.program, target, options, explained);
    ++asked_;
  }

  int asked_ = 0, compiled_ = 0, supported_ = 0, planned_ = 0;

 private:
  void compile_does(const Program& program, const Target& target, const Options& options,
                    const Result<Artifact>& explained) {
    const auto made = compiled(program, target, options);
    if (made.ok()) {
      ASSERT_TRUE(explained.ok()) << render(explained.error(), false);
      EXPECT_EQ(told(explained->summary()), told(made->summary()));
      ++compiled_;
    } else if (!explained.ok()) {
      EXPECT_EQ(explained.error().code, made.error().code) << render(made.error(), false);
    } else if (made.error().code == "target.nothing-delegated") {
      if (program.methods().size() == 1) { EXPECT_EQ(explained->summary().delegates, 0u); }
    } else if (made.error().code.starts_with("pack.")) {  // a stage that it does not ask
    } else {                                              // it said so
      const auto& messages = explained->summary().messages;
      EXPECT_TRUE(std::ranges::any_of(messages, [&](const Diagnostic& m) { return m.code == made.error().code; }))
          << render(made.error(), false);
    }
  }

  void supports_says(const Named& named, const Target& target, const Options& options,
                     const Result<Artifact>& explained) {
    const auto verdicts = supports(named.program, target.name, options);
    ASSERT_EQ(verdicts.ok(), explained.ok()) << render(verdicts.ok() ? explained.error() : verdicts.error(), false);
    if (!verdicts.ok()) {
      EXPECT_EQ(verdicts.error().code, explained.error().code);
      return;
    }
    if (samples_decide(named, target, options, explained->summary())) return;
    EXPECT_EQ(told(*verdicts), told(explained->summary().exported));
    ++supported_;
  }

  void plan_is_read(const Program& program, const Target& target, const Options& options,
                    const Result<Artifact>& explained) {
    const auto printed = plan(program, target.name, options);
    if (!printed.ok()) {
      if (printed.error().code == "plan.floats" || printed.error().code == "plan.already-quantised") return;
      ASSERT_FALSE(explained.ok()) << render(printed.error(), false);
      EXPECT_EQ(printed.error().code, explained.error().code);
      return;
    }
    const std::string path = (fs::path(testing::TempDir()) / fmt::format("same_answers_{}.plan", getpid())).string();
    std::ofstream(path, std::ios::binary) << printed->text;
    Options with = options;
    with.set("plan", path);
    const bool explains = target.self_check;
    const auto without = explains ? explained : compiled(program, target, options);
    const auto made = explains ? explain(program, target.name, with) : compiled(program, target, with);
    ASSERT_EQ(made.ok(), without.ok()) << render(made.ok() ? without.error() : made.error(), false);
    if (!made.ok()) {
      EXPECT_EQ(made.error().code, without.error().code);
      return;
    }
    EXPECT_EQ(told(made->summary()), told(without->summary()));
    EXPECT_TRUE(content(*made) == content(*without)) << "the plan that was read back makes another program";
    ++planned_;
  }
};

TEST_F(SameAnswers, of_explain_supports_plan_and_compile) {
  const std::vector<Named> all = programs();
  ASSERT_GT(all.size(), 50u);
  const bool each = std::getenv("TOSAIC_ALL_ANSWERS") != nullptr;
  std::mt19937 random(1);
  for (const Named& named : all) {
    std::vector<std::pair<const Target*, Options>> ways;
    for (const Target& target : all_targets())
      for (const Options& options : options_for(named.program)) ways.emplace_back(&target, options);
    std::shuffle(ways.begin(), ways.end(), random);
    if (!each) ways.resize(std::min<std::size_t>(ways.size(), 12));
    for (const auto& [target, options] : ways) expect_same(named, *target, options);
  }
  EXPECT_GT(compiled_, asked_ / 5);
  EXPECT_GT(supported_, asked_ / 5);
  EXPECT_GT(planned_, asked_ / 10);
}

}  // namespace
}  // namespace tosaic
