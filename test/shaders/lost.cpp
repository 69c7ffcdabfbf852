// SPDX-License-Identifier: Apache-2.0
// A device that is lost: what the delegates answer, wherever the loss shows, and that the next session has another one.
#include "formats/tosa/tosa_file.h"
#include "shaders/faulty_device.h"
#include "tosaic/delegate.h"

namespace tosaic::test {
namespace {

using Lost = OnFaultyDevice;

// An open payload by the delegate's own C table.
class Open {
 public:
  Open(const tosaic_delegate_api* api, Bytes payload, bool profile = false) : api_(api), payload_(std::move(payload)) {
    tosaic_delegate_program program{};
    program.struct_bytes = sizeof program;
    program.name = "lost.pte";
    program.payload = payload_.data();
    program.payload_bytes = payload_.size();
    tosaic_delegate_options options{};
    options.struct_bytes = sizeof options;
    options.profile = profile;
    status = api->open(api->user, &program, nullptr, &options, &delegate_, &error);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() { api_->close(delegate_); }

  // Its one input is full of ones; the sizes are inputs' and outputs'. The first output is returned.
  std::vector<float> run(const std::vector<Shape>& shapes) {
    std::vector<tosaic_delegate_tensor> tensors;
    std::vector<std::vector<float>> data;
    for (const Shape& s : shapes) data.emplace_back(s.elements(), 1.0f);
    std::vector<std::vector<std::int64_t>> dims;
    for (const Shape& s : shapes) dims.push_back(s.sizes());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      tensors.push_back({data[i].data(), data[i].size() * sizeof(float), TOSAIC_DTYPE_F32,
                         static_cast<std::uint32_t>(dims[i].size()), dims[i].data(), 0});
    status = api_->execute(delegate_, tensors.data(), tensors.size(), &error);
    return data[1];
  }
  // Whose clock the time of the last run is by.
  std::uint32_t clock() {
    tosaic_delegate_profile profile{};
    profile.struct_bytes = sizeof profile;
    status = api_->profile(delegate_, &profile, &error);
    return profile.clock;
  }
  int clone() {
    tosaic_delegate* made = nullptr;
    const int answer = api_->clone(delegate_, nullptr, &made, &error);
    api_->close(made);
    return answer;
  }
  std::string code() const { return error.code; }

  int status = -1;
  tosaic_delegate_error error = [] {
    tosaic_delegate_error e{};
    e.struct_bytes = sizeof e;
    return e;
  }();

 private:
  const tosaic_delegate_api* api_;
  Bytes payload_;
  tosaic_delegate* delegate_ = nullptr;
};

Bytes payload_of(const char* text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << render(graph.error(), false);
  return vulkan_program::write(*shaders::compile(*graph, every_tier())).joined();
}
Bytes fixed() {
  return payload_of(R"(graph @main(%a: 4x100xf32) -> (%s) { %s: 4x1xf32 = tosa.reduce_sum(%a) {axis=1} })");
}
Bytes sized() {
  return payload_of(R"(graph @main(%a: 4x(n in 1..100)xf32) -> (%s) { %s: 4x1xf32 = tosa.reduce_sum(%a) {axis=1} })");
}
const std::vector<Shape> whole{Shape{4, 100}, Shape{4, 1}};

// Whoever opens the device now gets another one, and runs on it.
void expect_another(const std::shared_ptr<vulkan::Device>& lost) {
  auto next = vulkan::Device::open("", vulkan::Use::compute);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(*next, lost);
  Open open(tosaic_vulkan_delegate(), fixed());
  ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
  EXPECT_EQ(open.run(whole)[0], 100);
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
}

std::shared_ptr<vulkan::Device> now() { return *vulkan::Device::open("", vulkan::Use::compute); }

VkResult lost_submit(VkQueue, std::uint32_t, const VkSubmitInfo*, VkFence) { return VK_ERROR_DEVICE_LOST; }
VkResult lost_query(VkDevice, VkQueryPool, std::uint32_t, std::uint32_t, std::size_t, void*, VkDeviceSize,
                    VkQueryResultFlags) {
  return VK_ERROR_DEVICE_LOST;
}
VkResult lost_begin(VkCommandBuffer, const VkCommandBufferBeginInfo*) { return VK_ERROR_DEVICE_LOST; }

TEST_F(Lost, InARun) {
  Open open(tosaic_vulkan_delegate(), fixed());
  ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
  const auto lost = now();
  lost->vk.vkQueueSubmit = lost_submit;
  open.run(whole);
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED);
  EXPECT_EQ(open.code(), "vulkan.lost");
  EXPECT_NE(std::string(open.error.help), "");
  open.run(whole);  // again, and not something else
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED);
  EXPECT_EQ(open.code(), "vulkan.lost");
  expect_another(lost);
}

TEST_F(Lost, WhenTheClockIsRead) {
  for (const bool profile : {true, false}) {
    Open open(tosaic_vulkan_delegate(), fixed(), profile);
    ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
    const auto lost = now();
    if (lost->nanoseconds_per_tick() == 0) GTEST_SKIP() << "the device has no clock";
    lost->vk.vkGetQueryPoolResults = lost_query;
    const std::vector<float> sums = open.run(whole);
    if (profile) {
      EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED);
      EXPECT_EQ(open.code(), "vulkan.lost");
    } else {  // nobody has asked for the time yet
      EXPECT_EQ(open.status, TOSAIC_DELEGATE_OK);
      EXPECT_EQ(sums[0], 100);
      EXPECT_EQ(open.clock(), TOSAIC_DELEGATE_CLOCK_HOST);  // the device does not say any more
    }
    expect_another(lost);
  }
}

// What is asked of a driver when something is loaded.
TEST_F(Lost, WhileLoading) {
  using Break = void (*)(VolkDeviceTable&);
  const std::pair<const char*, Break> places[] = {
      {"a buffer",
       [](VolkDeviceTable& vk) {
         vk.vkCreateBuffer = [](VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*, VkBuffer*) {
           return VK_ERROR_DEVICE_LOST;
         };
       }},
      {"memory",
       [](VolkDeviceTable& vk) {
         vk.vkMapMemory = [](VkDevice, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags, void**) {
           return VK_ERROR_DEVICE_LOST;
         };
       }},
      {"a pipeline",
       [](VolkDeviceTable& vk) {
         vk.vkCreateComputePipelines = [](VkDevice, VkPipelineCache, std::uint32_t, const VkComputePipelineCreateInfo*,
                                          const VkAllocationCallbacks*, VkPipeline*) { return VK_ERROR_DEVICE_LOST; };
       }},
      {"commands", [](VolkDeviceTable& vk) { vk.vkBeginCommandBuffer = lost_begin; }},
      {"a submission", [](VolkDeviceTable& vk) { vk.vkQueueSubmit = lost_submit; }}};
  for (const auto& [name, make] : places) {
    const auto lost = now();
    make(lost->vk);
    const Open open(tosaic_vulkan_delegate(), fixed());
    EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED) << name;
    EXPECT_EQ(open.code(), "vulkan.lost") << name;
    expect_another(lost);
  }
}

TEST_F(Lost, WhenAnotherSessionIsMade) {
  Open open(tosaic_vulkan_delegate(), fixed());
  ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
  const auto lost = now();
  lost->vk.vkCreateBuffer = [](VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*, VkBuffer*) {
    return VK_ERROR_DEVICE_LOST;
  };
  EXPECT_EQ(open.clone(), TOSAIC_DELEGATE_FAILED);
  EXPECT_EQ(open.code(), "vulkan.lost");
  expect_another(lost);
}

PFN_vkEndCommandBuffer real_end = nullptr;

TEST_F(Lost, WhenSizesChange) {
  Open open(tosaic_vulkan_delegate(), sized());
  ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
  EXPECT_EQ(open.run({Shape{4, 7}, Shape{4, 1}})[0], 7);
  const auto lost = now();
  const VolkDeviceTable whole_table = lost->vk;
  // What is no loss passes; the sizes that were asked for are then recorded when they are asked for again.
  real_end = lost->vk.vkEndCommandBuffer;
  lost->vk.vkEndCommandBuffer = [](VkCommandBuffer commands) {
    real_end(commands);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  };
  open.run({Shape{4, 30}, Shape{4, 1}});
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_MEMORY);
  lost->vk = whole_table;
  EXPECT_EQ(open.run({Shape{4, 30}, Shape{4, 1}})[0], 30);
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_OK);
  EXPECT_EQ(now(), lost);
  // The caller's mistake is not the device's.
  open.run({Shape{4, 101}, Shape{4, 1}});
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_ARGUMENT);
  lost->vk.vkBeginCommandBuffer = lost_begin;
  open.run({Shape{4, 31}, Shape{4, 1}});
  EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED);
  EXPECT_EQ(open.code(), "vulkan.lost");
  expect_another(lost);
  Open next(tosaic_vulkan_delegate(), sized());
  EXPECT_EQ(next.run({Shape{4, 31}, Shape{4, 1}})[0], 31);
}

// ---- with the host between its subgraphs

constexpr const char* sum_so_far = R"(graph @main(%x: 4xf32) -> (%y) {
  %first: 4xf32 = constant [1.0, 2.0, 3.0, 4.0]
  tosa.variable(%first) {name="sum", var_shape=[4], type=f32}
  %before: 4xf32 = tosa.variable_read() {name="sum"}
  %sum: 4xf32 = tosa.add(%before, %x)
  tosa.variable_write(%sum) {name="sum"}
  %y: 4xf32 = tosa.add(%sum, %sum)
})";

PFN_vkQueueSubmit real_submit = nullptr;
int submissions_left = 0;
VkResult lost_later(VkQueue queue, std::uint32_t count, const VkSubmitInfo* what, VkFence fence) {
  return submissions_left-- > 0 ? real_submit(queue, count, what, fence) : VK_ERROR_DEVICE_LOST;
}

TEST_F(Lost, BetweenThePiecesOfAGraph) {
  auto graph = parse(sum_so_far);
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  const auto file = tosa_file::write(*graph);
  ASSERT_TRUE(file.ok()) << render(file.error(), false);
  const std::vector<Shape> shapes{Shape{4}, Shape{4}};
  for (const int piece : {0, 1}) {
    Open open(tosaic_tosa_compute_delegate(), file->joined());
    ASSERT_EQ(open.status, TOSAIC_DELEGATE_OK) << open.error.message;
    EXPECT_EQ(open.run(shapes)[0], 4);
    EXPECT_EQ(open.run(shapes)[0], 6);
    const auto lost = now();
    real_submit = lost->vk.vkQueueSubmit;
    submissions_left = piece;
    lost->vk.vkQueueSubmit = lost_later;
    open.run(shapes);
    EXPECT_EQ(open.status, TOSAIC_DELEGATE_FAILED);
    EXPECT_EQ(open.code(), "vulkan.lost");
    EXPECT_EQ(submissions_left, -1);
    expect_another(lost);
    Open next(tosaic_tosa_compute_delegate(), file->joined());
    ASSERT_EQ(next.status, TOSAIC_DELEGATE_OK) << next.error.message;
    EXPECT_EQ(next.run(shapes)[0], 4);  // in the state at first
    const auto second = now();
    second->vk.vkQueueSubmit = lost_submit;
    const Open failed(tosaic_tosa_compute_delegate(), file->joined());  // while its first piece is loaded
    EXPECT_EQ(failed.status, TOSAIC_DELEGATE_FAILED);
    EXPECT_EQ(failed.code(), "vulkan.lost");
    expect_another(second);
  }
}

}  // namespace
}  // namespace tosaic::test
