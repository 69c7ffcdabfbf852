// SPDX-License-Identifier: Apache-2.0
// What some of our shaders compute, said once more in GLSL (glsl/*.comp) and compiled by Khronos' compiler: on the same
// driver and data both must agree, integers exactly.
#include <fmt/format.h>
#include <unistd.h>
#include <cstring>

#include <cstdlib>
#include <filesystem>

#include "shaders/on_device.h"
#include "vulkan/call.h"
#include "vulkan/compute_commands.h"
#include "vulkan/compute_memory.h"
#include "vulkan/compute_model.h"

namespace tosaic::test {
namespace {

using vulkan::DeviceBuffer;

class Glsl : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
    if (std::system("glslangValidator --version >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "glslangValidator is not installed (Debian: glslang-tools)";
    auto opened = vulkan::Device::open("", vulkan::Use::compute);
    ASSERT_TRUE(opened.ok()) << render(opened.error(), false);
    device = *opened;
  }

  // Its pipeline, of that many buffers.
  Status make(const std::string& name, std::uint32_t buffers) {
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("{}-{}.spv", name, getpid())).string();
    const std::string command =
        fmt::format("glslangValidator -V --target-env vulkan1.1 '{}/shaders/glsl/{}.comp' -o '{}' >&2",
                    TOSAIC_TEST_DATA, name, file);
    if (std::system(command.c_str()) != 0) return error("test.glsl", command);
    TOSAIC_TRY(const Bytes code, map_file(file));
    std::filesystem::remove(file);
    const auto& vk = device->vk;
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (std::uint32_t b = 0; b < buffers; ++b)
      bindings.push_back({b, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = buffers;
    set.pBindings = bindings.data();
    made.bindings = buffers;
    TOSAIC_CHECK(vulkan::called("vkCreateDescriptorSetLayout", [&] {
      return vk.vkCreateDescriptorSetLayout(device->handle, &set, nullptr, &made.set_layout);
    }));
    undo.later([this] { device->vk.vkDestroyDescriptorSetLayout(device->handle, made.set_layout, nullptr); });
    const VkPushConstantRange pushes{VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &made.set_layout;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &pushes;
    TOSAIC_CHECK(vulkan::called("vkCreatePipelineLayout", [&] {
      return vk.vkCreatePipelineLayout(device->handle, &layout, nullptr, &made.layout);
    }));
    undo.later([this] { device->vk.vkDestroyPipelineLayout(device->handle, made.layout, nullptr); });
    VkShaderModuleCreateInfo shader{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    shader.codeSize = code.size();
    shader.pCode = code.as<std::uint32_t>().data();
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = "main";
    info.layout = made.layout;
    TOSAIC_CHECK(vulkan::called("vkCreateShaderModule", [&] {
      return vk.vkCreateShaderModule(device->handle, &shader, nullptr, &info.stage.module);
    }));
    const Status status = vulkan::called("vkCreateComputePipelines", [&] {
      return vk.vkCreateComputePipelines(device->handle, VK_NULL_HANDLE, 1, &info, nullptr, &made.pipeline);
    });
    vk.vkDestroyShaderModule(device->handle, info.stage.module, nullptr);
    undo.later([this] { device->vk.vkDestroyPipeline(device->handle, made.pipeline, nullptr); });
    return status;
  }

  // What it writes into its last buffer, from `operands` in the others.
  Result<Bytes> run(std::span<const Bytes> operands, std::size_t bytes, const std::vector<std::uint32_t>& pushes,
                    std::size_t invocations) {
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    vulkan::Bindings bindings{made.set_layout, {}};
    for (std::size_t i = 0; i <= operands.size(); ++i) {
      const std::size_t size = ((i < operands.size() ? operands[i].size() : bytes) + 3) / 4 * 4;
      TOSAIC_TRY(auto buffer, DeviceBuffer::make(device, size, vulkan::Placement::readback));
      std::memset(buffer->mapped(), 0x5a, size);
      if (i < operands.size()) std::memcpy(buffer->mapped(), operands[i].data(), operands[i].size());
      bindings.ranges.push_back({buffer->handle(), 0, size, vulkan_program::View::buffer});
      buffers.push_back(std::move(buffer));
    }
    vulkan::DescriptorSets sets(device);
    TOSAIC_CHECK(sets.make({bindings}));
    vulkan::Commands commands(device);
    TOSAIC_CHECK(commands.make());
    TOSAIC_CHECK(commands.begin());
    vulkan_program::Dispatch dispatch;
    dispatch.pushes = pushes;
    dispatch.groups = {static_cast<std::uint32_t>((invocations + 63) / 64), 1, 1};
    commands.dispatch(made, sets[0], dispatch);
    commands.barrier(vulkan::shader_writes, vulkan::host_reads);
    TOSAIC_CHECK(commands.end());
    TOSAIC_CHECK(device->run(commands.handle, commands.fence, 0));
    return Bytes::copy(buffers.back()->mapped(), bytes);
  }

  // The graph's one output by our shaders of each tier, and by the one in GLSL from the values `operands`.
  void expect_alike(const std::string& name, const Net& net, const std::vector<ValueId>& operands,
                    const std::vector<std::uint32_t>& pushes, std::size_t invocations, const Tolerance& tolerance) {
    std::vector<Bytes> data;
    for (const ValueId v : operands) {
      const auto at = std::ranges::find(net.graph.inputs, v);
      data.push_back(at == net.graph.inputs.end()
                         ? net.graph[v].constant
                         : net.inputs[static_cast<std::size_t>(at - net.graph.inputs.begin())].data);
    }
    const TensorType& type = net.graph[net.graph.outputs.front()].type;
    const Status built = make(name, static_cast<std::uint32_t>(operands.size()) + 1);
    ASSERT_TRUE(built.ok()) << render(built.error(), false);
    auto theirs = run(data, type.storage_bytes(), pushes, invocations);
    ASSERT_TRUE(theirs.ok()) << render(theirs.error(), false);
    std::size_t compared = 0;
    for (const auto tier : every_tier()) {
      auto model = vulkan::ComputeModel::load(compiled(net.graph, {&tier, 1}));
      if (!model.ok() && model.error().code == "vulkan.tier") continue;
      ASSERT_TRUE(model.ok()) << render(model.error(), false);
      std::vector<const void*> in;
      for (const Tensor& t : net.inputs) in.push_back(t.data.data());
      std::vector<std::byte> out(type.storage_bytes());
      void* to[] = {out.data()};
      ASSERT_TRUE(model->run(in, to).ok());
      expect_same({type, Bytes::of(std::move(out))}, {type, *theirs}, tolerance, name + ", tier " + model->tier());
      ++compared;
    }
    EXPECT_GT(compared, 0u);
  }

  std::shared_ptr<vulkan::Device> device;
  vulkan::Pipeline made;
  vulkan::Undo undo;
};

using List = std::vector<std::int64_t>;

Attrs window(const List& pad, const List& stride, DType sums) {
  return {{"pad", pad}, {"stride", stride}, {"dilation", List{1, 1}}, {"acc_type", sums}, {"local_bound", false}};
}

TEST_F(Glsl, Conv2dOfReals) {
  Net net;
  const ValueId x = net.input(DType::f32, {2, 14, 11, 8}, -1, 1), k = net.constant(DType::f32, {12, 3, 3, 8}, -1, 1),
                b = net.constant(DType::f32, {12}, -1, 1);
  const ValueId sum = net.node("conv2d", {x, k, b, net.zero(DType::f32), net.zero(DType::f32)},
                               window({1, 0, 1, 1}, {2, 1}, DType::f32));
  net.output(net.node("clamp", {sum}, {{"min_val", 0.0}, {"max_val", 6.0}, {"nan_mode", std::string("propagate")}}));
  expect_alike("conv2d_f32", net, {x, k, b}, {14, 11, 8, 7, 11, 12, 3, 3, 2, 1, 1, 1}, 2 * 7 * 11 * 12, {1e-5, 1e-5});
}

TEST_F(Glsl, Conv2dOfEightBits) {
  Net net;
  const ValueId x = net.input(DType::i8, {1, 9, 10, 5}, -128, 127),
                k = net.constant(DType::i8, {6, 3, 2, 5}, -128, 127), b = net.constant(DType::i32, {6}, -9000, 9000);
  const ValueId sum = net.node("conv2d", {x, k, b, net.numbers(DType::i8, {-7}), net.numbers(DType::i8, {3})},
                               window({1, 1, 0, 1}, {1, 2}, DType::i32));
  net.output(net.rescale(sum, DType::i8, 31, 41, true, 0, 5));
  const std::vector<ValueId>& scales = net.graph.nodes.back().inputs;
  expect_alike("conv2d_i8", net, {x, k, b, scales[1], scales[2]},
               {9, 10, 5, 9, 5, 6, 3, 2, 1, 2, 1, 0, static_cast<std::uint32_t>(-7), 3, 5, 9 * 5 * 6},
               (9 * 5 * 6 + 3) / 4, {});
}

TEST_F(Glsl, DepthwiseOfReals) {
  Net net;
  const ValueId x = net.input(DType::f32, {2, 13, 9, 12}, -1, 1), k = net.constant(DType::f32, {3, 3, 12, 1}, -1, 1),
                b = net.constant(DType::f32, {12}, -1, 1);
  net.output(net.node("depthwise_conv2d", {x, k, b, net.zero(DType::f32), net.zero(DType::f32)},
                      window({1, 1, 1, 1}, {2, 2}, DType::f32)));
  expect_alike("depthwise_f32", net, {x, k, b}, {13, 9, 12, 7, 5, 3, 3, 2, 2, 1, 1}, 2 * 7 * 5 * 12, {1e-5, 1e-5});
}

TEST_F(Glsl, MatmulOfReals) {
  Net net;
  const ValueId a = net.input(DType::f32, {3, 21, 34}, -1, 1), b = net.input(DType::f32, {3, 34, 18}, -1, 1);
  net.output(net.node("matmul", {a, b, net.zero(DType::f32), net.zero(DType::f32)}));
  expect_alike("matmul_f32", net, {a, b}, {21, 18, 34}, 3 * 21 * 18, {1e-5, 1e-5});
}

TEST_F(Glsl, SoftmaxOfReals) {
  Net net;
  const ValueId x = net.input(DType::f32, {37, 45}, -8, 8);
  const ValueId most = net.node("reduce_max", {x}, {{"axis", 1}, {"nan_mode", std::string("propagate")}});
  const ValueId power = net.node("exp", {net.node("sub", {x, most})});
  const ValueId whole = net.node("reciprocal", {net.node("reduce_sum", {power}, {{"axis", 1}})});
  net.output(net.node("mul", {power, whole, net.zero(DType::i8)}));
  expect_alike("softmax_f32", net, {x}, {37, 45}, 37, {1e-5, 1e-7});
}

}  // namespace
}  // namespace tosaic::test
