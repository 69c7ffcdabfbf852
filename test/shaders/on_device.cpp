// SPDX-License-Identifier: Apache-2.0
#include "shaders/on_device.h"

#include <cstdlib>

#include "vulkan/compute_model.h"

namespace tosaic::test {

bool without_vulkan() { return std::getenv("TOSAIC_WITHOUT_VULKAN") != nullptr; }

vulkan_program::Program compiled(const Graph& graph, std::span<const vulkan_program::TierId> tiers,
                                 shaders::Precision precision) {
  auto made = shaders::compile(graph, tiers, precision);
  if (!made.ok()) {
    ADD_FAILURE() << render(made.error(), false);
    return {};
  }
  auto read = vulkan_program::read(vulkan_program::write(*made).joined());
  if (!read.ok()) {
    ADD_FAILURE() << render(read.error(), false);
    return {};
  }
  return *std::move(read);
}

std::vector<vulkan_program::TierId> every_tier() {
  std::vector<vulkan_program::TierId> all;
  for (const auto& row : vulkan_program::tier_rows()) all.push_back(row.id);
  return all;
}

namespace {

void expect_of_tier(vulkan_program::TierId tier, const Net& net, const std::vector<Tensor>& wanted,
                    const Tolerance& tolerance, const std::string& what, shaders::Precision precision) {
  vulkan_program::Program program = compiled(net.graph, {&tier, 1}, precision);
  ASSERT_FALSE(program.tiers.empty()) << what;
  auto model = vulkan::ComputeModel::load(std::move(program));
  if (!model.ok() && model.error().code == "vulkan.tier") return;  // not for this device
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
    for (std::size_t i = 0; i < wanted.size(); ++i)
      expect_same({wanted[i].type, Bytes::of(std::move(data[i]))}, wanted[i], tolerance, what);
  }
}

void expect_of_tiers(std::span<const vulkan_program::TierId> tiers, const Net& net, const Tolerance& tolerance,
                     const std::string& what, shaders::Precision precision = shaders::Precision::fp32) {
  ASSERT_TRUE(verify(net.graph).ok()) << verify(net.graph).error().message;
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  for (const auto tier : tiers)
    expect_of_tier(tier, net, *wanted, tolerance, what + " (tier " + std::string(row_of(tier).name) + ")", precision);
}

}  // namespace

void expect_on_device(const Net& net, const Tolerance& tolerance, const std::string& what,
                      shaders::Precision precision) {
  expect_of_tiers(every_tier(), net, tolerance, what, precision);
}

void expect_as_interpreted(const Net& net, const Tolerance& tolerance, const std::string& what, const std::string&) {
  static int count = 0;
  const bool all = std::getenv("TOSAIC_ALL_SHADERS");
  if (!all && count++ % 5 != 0) return;
  const std::vector<vulkan_program::TierId> every = every_tier();
  if (without_vulkan())
    compiled(net.graph, every);
  else if (all)
    expect_on_device(net, tolerance, what);
  else
    expect_of_tiers({&every[static_cast<std::size_t>(count) / 5 % every.size()], 1}, net, tolerance, what);
}

}  // namespace tosaic::test
