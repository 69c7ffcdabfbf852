// SPDX-License-Identifier: Apache-2.0
#include "c_source/batch.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "c_source/print.h"
#include "c_source/types.h"

namespace tosaic::test {
namespace {

void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

// A function of pointers, so that all are called alike.
std::string entry(const Graph& graph, const std::string& name) {
  std::string arguments;
  const auto add = [&](ValueId v, const char* list, std::size_t i, const char* qualifier) {
    arguments += fmt::format("{}({}{} *){}[{}]", arguments.empty() ? "" : ", ", qualifier,
                             c_source::c_type(graph[v].type.dtype), list, i);
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) add(graph.inputs[i], "in", i, "const ");
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) add(graph.outputs[i], "out", i, "");
  return fmt::format(
      "void {0}_entry(const void *const *in, void *const *out) {{ (void)in, (void)out; {0}_steps({1}); }}\n", name,
      arguments);
}

}  // namespace

bool Batch::add(const Graph& graph, std::vector<Tensor> inputs, Check check, std::string* why) {
  One one{"", fmt::format("g{}", cases_.size()), std::move(inputs), {}, std::move(check)};
  const auto printed = c_source::print_function(graph, one.name);
  if (!printed.ok()) {
    if (why) *why = printed.error().message;
    return false;
  }
  for (const auto& array : printed->constants) one.code += c_source::print_array(array);
  one.code += printed->code + entry(graph, one.name);
  for (ValueId v : graph.outputs) one.outputs.push_back(graph[v].type);
  cases_.push_back(std::move(one));
  return true;
}

void Batch::run(const std::string& flags) {
  std::string folder = (std::filesystem::temp_directory_path() / "tosaic_c_XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const auto& [file, source] : c_source::mcu_files()) write(folder + "/" + std::string(file), source);
  constexpr std::size_t at_once = 150;
  for (std::size_t first = 0; first < cases_.size(); first += at_once)
    run_part(first, std::min(first + at_once, cases_.size()), folder, flags);
  std::filesystem::remove_all(folder);
}

void Batch::run_part(std::size_t first, std::size_t last, const std::string& folder, const std::string& flags) {
  const std::string stem = fmt::format("{}/part{}", folder, first);
  std::string text = "#include \"tosaic_lanes.h\"\n";
  for (std::size_t i = first; i < last; ++i) text += cases_[i].code;
  write(stem + ".c", text);
  const std::string command = fmt::format(
      "cc -std=c11 -w {0} -fPIC -shared -I{1} {2}.c {1}/tosaic_mcu.c -lm -o {2}.so 2> {2}.log", flags, folder, stem);
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(stem + ".log");
    FAIL() << command << "\n" << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 4000);
  }
  void* library = ::dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  for (std::size_t i = first; i < last; ++i) {
    const One& one = cases_[i];
    auto* call =
        reinterpret_cast<void (*)(const void* const*, void* const*)>(::dlsym(library, (one.name + "_entry").c_str()));
    ASSERT_NE(call, nullptr) << one.name;
    std::vector<const void*> in;
    for (const Tensor& t : one.inputs) in.push_back(t.data.data());
    std::vector<std::vector<std::byte>> data;
    std::vector<void*> out;
    for (const TensorType& type : one.outputs)
      out.push_back(data.emplace_back(type.storage_bytes(), std::byte{0x5a}).data());
    for (int turn = 0; turn < 2; ++turn) call(in.data(), out.data());  // nothing is left behind by the first
    std::vector<Tensor> results;
    for (std::size_t k = 0; k < data.size(); ++k) results.push_back({one.outputs[k], Bytes::of(std::move(data[k]))});
    const bool failed_before = testing::Test::HasFailure();
    one.check(results);
    if (!failed_before && testing::Test::HasFailure())
      ADD_FAILURE() << "the C of the first that fails:\n" << one.code.substr(one.code.find("/*"));
  }
  ::dlclose(library);
}

}  // namespace tosaic::test
