// SPDX-License-Identifier: Apache-2.0
#include "shaders/on_device.h"

#include <cstdlib>

#include "vulkan/compute_model.h"

namespace tosaic::test {

bool without_vulkan() { return std::getenv("TOSAIC_WITHOUT_VULKAN") != nullptr; }

vulkan_program::Program compiled(const Graph& graph) {
  auto made = shaders::compile(graph);
  if (!made.ok()) {
    ADD_FAILURE() << render(made.error(), false);
    return {};
  }
  auto read = vulkan_program::read(vulkan_program::write(*made));
  if (!read.ok()) {
    ADD_FAILURE() << render(read.error(), false);
    return {};
  }
  return *std::move(read);
}

void expect_on_device(const Net& net, const Tolerance& tolerance, const std::string& what) {
  ASSERT_TRUE(verify(net.graph).ok()) << verify(net.graph).error().message;
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  vulkan_program::Program program = compiled(net.graph);
  ASSERT_FALSE(program.tiers.empty()) << what;
  auto model = vulkan::ComputeModel::load(std::move(program));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  for (int again = 0; again < 2; ++again) {
    std::vector<const void*> in;
    for (const Tensor& t : net.inputs) in.push_back(t.data.data());
    std::vector<std::vector<std::byte>> data;
    std::vector<void*> out;
    for (const auto& t : model->outputs())
      out.push_back(data.emplace_back(t.type.storage_bytes(), std::byte{0x5a}).data());
    const Status ran = model->run(in, out);
    ASSERT_TRUE(ran.ok()) << render(ran.error(), false);
    for (std::size_t i = 0; i < wanted->size(); ++i)
      expect_same({(*wanted)[i].type, Bytes::of(std::move(data[i]))}, (*wanted)[i], tolerance, what);
  }
}

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what, const std::string&) {
  static int count = 0;
  if (!std::getenv("TOSAIC_ALL_SHADERS") && count++ % 3 != 0) return;
  if (without_vulkan())
    compiled(net.graph);
  else
    expect_on_device(net, tolerance, what);
}

}  // namespace tosaic::test
