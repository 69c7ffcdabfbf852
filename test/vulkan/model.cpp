// SPDX-License-Identifier: Apache-2.0
// VGF files on the Vulkan device of this machine: graphs, shaders, both in turn; several models and threads; files that
// lie are refused before the driver sees them. `make test` installs a driver and the emulation layer, so that a device
// that does not open is a failure; TOSAIC_WITHOUT_VULKAN=1 says that a machine has none.
#include "vulkan/model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "formats/vgf/vgf_graph.h"
#include "vulkan/check_segment.h"
#include "vulkan/device.h"
#include "vulkan/shader_words.h"

namespace tosaic::vulkan {
namespace {

constexpr std::uint32_t storage_buffer_descriptor = 7, i32_format = 99, count = 8;

std::string reason(const Diagnostic& why) { return why.code + ": " + why.message; }

vgf::File graph_file(std::string_view text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  auto file = vgf::from_graph(*graph);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error(), false));
  return *file;
}

vgf::File sum_file() {
  return graph_file("graph @main(%a: 8xi32, %b: 8xi32) -> (%sum) { %sum: 8xi32 = tosa.add(%a, %b) }");
}

vgf::Resource resource(std::uint32_t descriptor, vgf::Category category) {
  return {descriptor, i32_format, category, {count}, {}, vgf::none, {}};
}

// in -> shader -> out
vgf::File shader_file(bool tensors) {
  const std::uint32_t descriptor = tensors ? vgf::tensor_descriptor : storage_buffer_descriptor;
  vgf::File file;
  file.resources = {resource(descriptor, vgf::Category::input), resource(descriptor, vgf::Category::output)};
  file.inputs = {{0, 0}};
  file.outputs = {{1, 1}};
  file.modules.push_back(
      {vgf::Kind::compute, "triple", "main", vgf::Language::spirv, Bytes::of(test::ShaderWords(tensors).words())});
  vgf::Segment segment{vgf::Kind::compute, "triple", 0, {{0, {{0, 0}, {1, 1}}}}, file.inputs, file.outputs, {}, {}, {}};
  segment.dispatch = {count, 1, 1};
  file.segments.push_back(segment);
  return file;
}

std::vector<std::int32_t> numbers(std::int32_t first) {
  std::vector<std::int32_t> list(count);
  std::iota(list.begin(), list.end(), first);
  return list;
}

template <class T>
std::vector<T> run(Model& model, const std::vector<const void*>& inputs, std::size_t elements) {
  std::vector<T> output(elements, T(77));
  void* outputs[] = {output.data()};
  const Status status = model.run(inputs, outputs);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : reason(status.error()));
  return output;
}

class VulkanModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("TOSAIC_WITHOUT_VULKAN"))
      GTEST_SKIP() << "TOSAIC_WITHOUT_VULKAN says that this machine has no Vulkan device";
    const auto device = Device::open("");
    ASSERT_TRUE(device.ok()) << reason(device.error());
  }
  static Model loaded(vgf::File file, ModelOptions options = {}) {
    auto model = Model::load(std::move(file), options);
    if (!model.ok()) ADD_FAILURE() << render(model.error(), false);
    if (!model.ok()) std::abort();
    return *std::move(model);
  }
  static std::string refusal(vgf::File file) {
    const auto model = Model::load(std::move(file));
    return model.ok() ? "accepted" : model.error().code;
  }
};

TEST_F(VulkanModel, Graph) {
  Model model = loaded(sum_file());
  EXPECT_FALSE(model.device().empty());
  for (std::int32_t k : {0, 5, -100}) {  // the same commands again
    const auto a = numbers(k), b = numbers(1000);
    const auto sum = run<std::int32_t>(model, {a.data(), b.data()}, count);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(count); ++i) EXPECT_EQ(sum[i], k + 1000 + 2 * i);
  }
  EXPECT_GT(model.device_seconds(), 0);
}

TEST_F(VulkanModel, Shader) {
  for (const bool tensors : {false, true}) {
    Model model = loaded(shader_file(tensors));
    const auto in = numbers(3);
    const auto out = run<std::int32_t>(model, {in.data()}, count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], 3 * in[i]) << tensors;
  }
}

// sum -> a tensor that is a buffer to the shader -> out, through staging memory and without.
TEST_F(VulkanModel, GraphThenShaderOverAliasedMemory) {
  vgf::File file = sum_file();
  const std::uint32_t sum = file.outputs[0].resource, buffer = static_cast<std::uint32_t>(file.resources.size());
  file.resources[sum].category = vgf::Category::intermediate;
  file.resources[sum].alias_group = 4;
  file.resources.push_back(resource(storage_buffer_descriptor, vgf::Category::intermediate));
  file.resources.back().alias_group = 4;
  file.resources.push_back(resource(storage_buffer_descriptor, vgf::Category::output));
  const vgf::File shader = shader_file(false);
  file.modules.push_back(shader.modules[0]);
  vgf::Segment segment = shader.segments[0];
  segment.module = 1;
  segment.sets = {{0, {{0, buffer}, {1, buffer + 1}}}};
  segment.inputs = {{0, buffer}};
  segment.outputs = {{1, buffer + 1}};
  file.segments.push_back(segment);
  file.outputs = segment.outputs;
  for (const bool stage : {false, true}) {
    Model model = loaded(file, {.device = "", .stage = stage});
    const auto a = numbers(1), b = numbers(10);
    const auto out = run<std::int32_t>(model, {a.data(), b.data()}, count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], 3 * (a[i] + b[i])) << stage;
  }
}

TEST_F(VulkanModel, ConstantOfAShader) {
  for (const bool stage : {false, true}) {
    vgf::File file = shader_file(true);
    file.resources[0].category = vgf::Category::constant;
    file.resources[0].descriptor_type = vgf::none;
    file.inputs.clear();
    file.constants.push_back({0, -1, Bytes::of(numbers(40))});
    Model model = loaded(file, {.device = "", .stage = stage});
    for (int times = 0; times < 2; ++times) {
      const auto out = run<std::int32_t>(model, {}, count);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], 3 * (40 + static_cast<std::int32_t>(i)));
    }
  }
}

// The emulation layer writes neither an output that is OpConstantNull nor the first of two that are one value.
TEST_F(VulkanModel, OutputsThatTheEmulationLayerForgets) {
  vgf::File file = graph_file(
      "graph @main(%a: 8xi32) -> (%z, %sum, %other) { %z: 8xi32 = constant [0, 0, 0, 0, 0, 0, 0, 0]\n"
      "%sum: 8xi32 = tosa.add(%a, %a)\n %other: 8xi32 = tosa.sub(%a, %a) }");
  // As Arm's converter writes it: the zeros in the module. The last output is made the second once more.
  std::vector<std::uint32_t> words;
  const auto old = file.modules[0].code.as<std::uint32_t>();
  words.assign(old.begin(), old.begin() + 5);
  std::uint32_t set = 0;
  std::vector<std::uint32_t> values;
  for (std::size_t at = 5; at < old.size(); at += old[at] >> 16)
    if ((old[at] & 0xffff) == 4185) values.push_back(old[at + 1]);
  ASSERT_EQ(values.size(), 3u);
  for (std::size_t at = 5; at < old.size(); at += old[at] >> 16) {
    std::vector<std::uint32_t> i(&old[at], &old[at] + (old[at] >> 16));
    if ((i[0] & 0xffff) == 4181) i = {3u << 16 | 46, i[1], i[2]};
    if ((i[0] & 0xffff) == 4185 && ++set == 3) i[1] = values[1];
    words.insert(words.end(), i.begin(), i.end());
  }
  file.modules[0].code = Bytes::of(words);
  file.segments[0].constants.clear();
  Model model = loaded(file);
  const auto a = numbers(5);
  const void* inputs[] = {a.data()};
  std::vector<std::int32_t> out[3];
  for (auto& o : out) o.assign(count, 77);
  void* outputs[] = {out[0].data(), out[1].data(), out[2].data()};
  ASSERT_TRUE(model.run(inputs, outputs).ok());
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(out[0][i], 0);
    EXPECT_EQ(out[1][i], 2 * a[i]);
    EXPECT_EQ(out[2][i], 2 * a[i]);
  }
}

TEST_F(VulkanModel, ModelsAndThreads) {
  Model sum = loaded(sum_file()), triple = loaded(shader_file(false));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::int32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Model own = loaded(shader_file(true));  // models are made while others run
      for (std::int32_t k = 0; k < 20; ++k) {
        const auto a = numbers(100 * t + k);
        std::vector<std::int32_t> out(count);
        void* outputs[] = {out.data()};
        const void* one[] = {a.data()};
        const void* two[] = {a.data(), a.data()};
        Model& model = k % 3 == 0 ? own : k % 3 == 1 ? triple : sum;
        const bool is_sum = &model == &sum;
        if (!model.run(is_sum ? std::span<const void* const>(two) : std::span<const void* const>(one), outputs).ok())
          ++wrong;
        for (std::size_t i = 0; i < count; ++i) wrong += out[i] != (is_sum ? 2 : 3) * a[i];
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(VulkanModel, WrongCounts) {
  Model model = loaded(sum_file());
  const auto a = numbers(0);
  const void* inputs[] = {a.data()};
  const Status status = model.run(inputs, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "run.input-count");
}

TEST_F(VulkanModel, FilesThatLie) {
  vgf::File shape = sum_file();
  shape.resources[shape.inputs[0].resource].shape = {4};
  EXPECT_EQ(refusal(shape), "vgf.corrupt");
  vgf::File type = sum_file();
  type.resources[type.inputs[1].resource].format = 14;
  EXPECT_EQ(refusal(type), "vgf.corrupt");
  vgf::File image = sum_file();
  image.resources[0].descriptor_type = 3;
  EXPECT_EQ(refusal(image), "vulkan.resource");
  vgf::File unbound = sum_file();
  unbound.segments[0].sets[0].slots.pop_back();
  EXPECT_EQ(refusal(unbound), "vgf.corrupt");
  vgf::File swapped = sum_file();
  std::swap(swapped.segments[0].sets[0].slots[0].resource, swapped.segments[0].sets[0].slots[2].resource);
  EXPECT_EQ(refusal(swapped), "vgf.corrupt");
  vgf::File unconnected = sum_file();
  unconnected.inputs.pop_back();
  EXPECT_EQ(refusal(unconnected), "vgf.unconnected");
  vgf::File entry = sum_file();
  entry.modules[0].entry_point = "other";
  EXPECT_EQ(refusal(entry), "spirv.no-entry-point");
  vgf::File groups = shader_file(false);
  groups.segments[0].dispatch = {1, 0, 1};
  EXPECT_EQ(refusal(groups), "vulkan.segment");
  vgf::File pushed = shader_file(false);
  pushed.segments[0].push_ranges = {{32, 0, 4}};
  EXPECT_EQ(refusal(pushed), "vulkan.segment");
  vgf::File mixed = shader_file(false);
  mixed.resources[1].descriptor_type = vgf::tensor_descriptor;
  EXPECT_EQ(refusal(mixed), "vgf.corrupt");
  vgf::File source = shader_file(false);
  source.modules[0].language = vgf::Language::glsl;
  EXPECT_EQ(refusal(source), "vgf.no-code");
  vgf::File strided = sum_file();
  strided.resources[0].strides = {8};
  EXPECT_EQ(refusal(strided), "vulkan.resource");
}

// Whatever the bytes are: an error or a run, never the end of the process.
TEST_F(VulkanModel, ChangedBytes) {
  const auto whole = vgf::write(graph_file(
      "graph @main(%a: 1x4x4x2xi8) -> (%b) {\n"
      "%w: 3x1x1x2xi8 = constant [1, 2, 3, 4, 5, 6]\n%bias: 3xi32 = constant [7, 8, 9]\n%z: 1xi8 = constant [0]\n"
      "%c: 1x4x4x3xi32 = tosa.conv2d(%a, %w, %bias, %z, %z) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], "
      "acc_type=i32, local_bound=false}\n"
      "%to: 2xshape = constant [16, 3]\n%b: 16x3xi32 = tosa.reshape(%c, %to) }"));
  ASSERT_TRUE(whole.ok());
  const Bytes joined = whole->joined();
  std::mt19937 random(3);
  int loaded_files = 0;
  for (int i = 0; i < 150; ++i) {
    std::vector<std::byte> data(joined.data(), joined.data() + joined.size());
    data[128 + random() % (data.size() - 128)] = std::byte(random() % (i % 3 == 0 ? 256 : 12));
    auto file = vgf::read(Bytes::of(std::move(data)));
    auto model = file.ok() ? Model::load(*std::move(file)) : Result<Model>(file.error());
    loaded_files += model.ok();
  }
  EXPECT_GT(loaded_files, 0);
}

// The emulation layer reads zero points when the pipeline is made and throws where they are no constants.
TEST_F(VulkanModel, ExceptionOfALayer) {
  const auto model = Model::load(graph_file(
      "graph @main(%a: 8xi8, %zp: 1xi8) -> (%b) { %z: 1xi8 = constant [0]\n%b: 8xi8 = tosa.negate(%a, %zp, %z) }"));
  if (model.ok()) return;  // a driver that can
  EXPECT_EQ(model.error().code, "vulkan.failed") << reason(model.error());
  Model next = loaded(sum_file());  // the device is as good as before
  const auto a = numbers(1);
  EXPECT_EQ(run<std::int32_t>(next, {a.data(), a.data()}, count)[0], 2);
}

TEST_F(VulkanModel, MoreMemoryThanThereIs) {
  EXPECT_EQ(refusal(graph_file("graph @main(%a: 1024x1024x1024x128xi32) -> (%b) {"
                               "%b: 1024x1024x1024x128xi32 = tosa.abs(%a) }")),
            "vulkan.memory");
}

TEST_F(VulkanModel, MoreDimsThanTheDeviceTakes) {
  EXPECT_EQ(refusal(graph_file("graph @main(%a: 1x1x1x1x1x1x1x1x1x1x2xi32) -> (%b) {"
                               "%b: 1x1x1x1x1x1x1x1x1x1x2xi32 = tosa.abs(%a) }")),
            "vulkan.resource");
}

// Wherever the loss shows, the next model has another device.
TEST_F(VulkanModel, ALostDeviceIsOpenedAnew) {
  const auto a = numbers(1);
  const void* in[] = {a.data(), a.data()};
  std::vector<std::int32_t> sum(count);
  void* out[] = {sum.data()};
  for (const bool while_loading : {false, true}) {
    Model model = loaded(sum_file());
    const auto lost = Device::open("");
    ASSERT_TRUE(lost.ok());
    if (while_loading) {
      (*lost)->vk.vkCreateCommandPool = [](VkDevice, const VkCommandPoolCreateInfo*, const VkAllocationCallbacks*,
                                           VkCommandPool*) { return VK_ERROR_DEVICE_LOST; };
      EXPECT_EQ(refusal(sum_file()), "vulkan.lost");
    } else {
      if ((*lost)->nanoseconds_per_tick() == 0) continue;
      (*lost)->vk.vkGetQueryPoolResults = [](VkDevice, VkQueryPool, std::uint32_t, std::uint32_t, std::size_t, void*,
                                             VkDeviceSize, VkQueryResultFlags) { return VK_ERROR_DEVICE_LOST; };
      const Status ran = model.run(in, out);
      ASSERT_FALSE(ran.ok());
      EXPECT_EQ(ran.error().code, "vulkan.lost");
    }
    Model next = loaded(sum_file());
    EXPECT_EQ(run<std::int32_t>(next, {a.data(), a.data()}, count)[0], 2);
    const auto now = Device::open("");
    ASSERT_TRUE(now.ok());
    EXPECT_NE(*now, *lost);
  }
}

TEST_F(VulkanModel, UnknownDevice) {
  const auto model = Model::load(sum_file(), {.device = "no such thing"});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, "vulkan.device");
}

}  // namespace
}  // namespace tosaic::vulkan
