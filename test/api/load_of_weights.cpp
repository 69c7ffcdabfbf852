// SPDX-License-Identifier: Apache-2.0
// What a load of quantised weights costs: as good as no time, and memory for the file once, its first run included.
#include <malloc.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "api/compile_options.h"
#include "api/digits.h"
#include "ir/tensor.h"
#include "pipeline/pipeline.h"

namespace tosaic::test {
namespace {

constexpr std::int64_t width = 2048;

// Two linear layers.
ExportedProgram layers(int methods = 1) {
  const std::string row = "1x2048xf32", matrix = "2048x2048xf32";
  auto graph = parse("graph @main(%x: " + row + ", %v: " + matrix + ", %w: " + matrix + ") -> (%z) {\n  %y: " + row +
                     " = aten.linear.default(%x, %v)\n  %z: " + row + " = aten.linear.default(%y, %w)\n}\n");
  EXPECT_TRUE(graph.ok());
  std::uint32_t state = 1;
  for (Value& value : graph->values) {
    if (value.type.shape.elements() != width * width) continue;
    std::vector<float> elements(static_cast<std::size_t>(width * width));
    for (float& e : elements) e = static_cast<float>(state = state * 1664525u + 1013904223u) * 1e-11f - 0.02f;
    value.constant = Bytes::of(std::move(elements));
  }
  graph->inputs.resize(1);
  ExportedProgram program;
  for (int i = 0; i < methods; ++i) {
    Method& method = program.methods.emplace_back();
    method.name = i == 0 ? "forward" : "method_" + std::to_string(i);
    method.graph = *graph;
  }
  return program;
}

// A file that goes with the test.
struct File {
  std::string path;
  double megabytes = 0;
  File(const std::string& target, const std::string& weights, int methods = 1) {
    Options options;
    if (!weights.empty()) options.set("weights", weights);
    const auto made = good(compile_model(layers(methods), good(compile_options_for(target, options)), {}));
    const Bytes all = made.program.joined();
    path = (std::filesystem::temp_directory_path() / ("tosaic_load_" + target + weights + ".pte")).string();
    EXPECT_TRUE(write_file(path, all.data(), all.size()).ok());
    megabytes = static_cast<double>(all.size()) / (1 << 20);
  }
  ~File() { std::filesystem::remove(path); }
};

// Of this process, in MB; what "VmHWM" and "VmRSS" say.
double memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  return 0;
}
bool forget_peak() {
  malloc_trim(0);
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << 5 << std::flush);
}

struct Cost {
  double load = 1e9, peak = 1e9;  // the best of a few, in ms and MB
};
Cost cost_of(const File& file, const SessionOptions& options) {
  Cost cost;
  const std::vector<float> x(static_cast<std::size_t>(width), 0.5f);
  for (int i = 0; i < 4; ++i) {
    const bool measured = forget_peak();
    const double before = memory("VmRSS");
    const auto begin = std::chrono::steady_clock::now();
    Session session = good(Session::open(file.path, options));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    cost.load = std::min(cost.load, took.count());
    good(session.run({{x.data(), DType::f32, {1, width}}}));
    // The first load is the device's and the threads', too.
    if (i > 0) cost.peak = std::min(cost.peak, measured ? memory("VmHWM") - before : 0);
  }
  return cost;
}

void expect_cheap(const std::string& target, const SessionOptions& options) {
  const Cost floats = cost_of(File(target, ""), options);
  for (const char* weights : {"int8", "int4"}) {
    const File file(target, weights);
    const Cost cost = cost_of(file, options);
    EXPECT_LT(cost.load, 3 * floats.load + 1) << weights;
#if !defined(__SANITIZE_ADDRESS__)
    // The system maps some pages around those that are read, whatever the file's size.
    EXPECT_LT(cost.peak, 1.3 * file.megabytes + 4) << weights << " of " << file.megabytes << " MB";
#endif
  }
}

TEST(LoadOfWeights, OnTheCpu) { expect_cheap("tosa-fp", {}); }

// Methods of one file have one copy of what both read.
TEST(LoadOfWeights, OfSeveralMethods) {
  const std::vector<float> x(static_cast<std::size_t>(width), 0.5f);
  const File file("tosa-fp", "int8", 3);
  EXPECT_LT(file.megabytes, 10);
  const bool measured = forget_peak();
  const double before = memory("VmRSS");
  Session first = good(Session::open(file.path));
  const std::string wanted = bytes_of(good(first.run({{x.data(), DType::f32, {1, width}}})));
  std::vector<Session> others;
  for (const char* name : {"method_1", "method_2"}) {
    others.push_back(good(first.method(name)));
    EXPECT_EQ(bytes_of(good(others.back().run({{x.data(), DType::f32, {1, width}}}))), wanted);
  }
#if !defined(__SANITIZE_ADDRESS__)
  if (measured) { EXPECT_LT(memory("VmHWM") - before, 1.3 * file.megabytes + 8); }  // with the first load of all
#endif
}

TEST(LoadOfWeights, OnVulkan) {
  SessionOptions options;
  options.device = "vulkan";
  const File probe("vulkan", "int4");
  if (const auto opened = Session::open(probe.path, options); !opened.ok() && opened.error().code == "vulkan.no-driver")
    GTEST_SKIP() << "there is no Vulkan device";
  expect_cheap("vulkan", options);
}

}  // namespace
}  // namespace tosaic::test
