// SPDX-License-Identifier: Apache-2.0
// Drivers that compute something else than shaders say: made of this machine's by changing an instruction of each
// module that it is given.
#include "vulkan/self_test.h"
#include "formats/spirv/compute/run_shader.h"
#include "shaders/faulty_device.h"
#include "shaders/images.h"
#include "shaders/shader.h"

namespace tosaic::test {
namespace {

using spirv::Opcode;
using spirv::Word;
using Wrong = OnFaultyDevice;

// What the driver takes in place of an instruction: another one of the same form.
Opcode other(Opcode op) {
  switch (op) {
    case Opcode::f_add: return Opcode::f_sub;
    case Opcode::f_sub:
    case Opcode::f_div: return Opcode::f_mul;
    case Opcode::f_mul: return Opcode::f_add;
    case Opcode::i_mul: return Opcode::i_sub;
    case Opcode::shift_right_arithmetic: return Opcode::shift_right_logical;
    case Opcode::s_mul_extended: return Opcode::u_mul_extended;
    default: return op;
  }
}

PFN_vkCreateShaderModule real_create = nullptr;
int changed_instruction = -1, instructions_seen = 0;
Opcode changed_opcode{};

VkResult create_changed(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* allocator,
                        VkShaderModule* module) {
  std::vector<Word> words(info->pCode, info->pCode + info->codeSize / 4);
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto op = static_cast<Opcode>(words[at] & 0xffff);
    if (other(op) != op && instructions_seen++ == changed_instruction) {
      changed_opcode = op;
      words[at] = (words[at] & 0xffff0000) | static_cast<Word>(other(op));
    }
  }
  VkShaderModuleCreateInfo changed = *info;
  changed.pCode = words.data();
  return real_create(device, &changed, allocator, module);
}

Net with(const std::function<void(Net&)>& make) {
  Net net(3);
  make(net);
  return net;
}

const std::vector<std::pair<std::string, Net>>& nets() {
  static const std::vector<std::pair<std::string, Net>> all = [] {
    std::vector<std::pair<std::string, Net>> list;
    const auto add = [&](const char* name, const std::function<void(Net&)>& make) {
      list.emplace_back(name, with(make));
    };
    const Attrs plain{{"pad", std::vector<std::int64_t>{1, 1, 1, 1}},
                      {"stride", std::vector<std::int64_t>{1, 1}},
                      {"dilation", std::vector<std::int64_t>{1, 1}},
                      {"local_bound", false}};
    add("conv f32", [&](Net& n) {
      Attrs attrs = plain;
      attrs.set("acc_type", DType::f32);
      n.output(n.node("conv2d",
                      {n.input(DType::f32, {1, 9, 9, 5}, -1, 1), n.constant(DType::f32, {17, 3, 3, 5}, -1, 1),
                       n.constant(DType::f32, {17}, -1, 1), n.zero(DType::f32), n.zero(DType::f32)},
                      attrs));
    });
    add("conv i8", [&](Net& n) {
      Attrs attrs = plain;
      attrs.set("acc_type", DType::i32);
      n.output(n.rescale(
          n.node("conv2d",
                 {n.input(DType::i8, {1, 9, 9, 5}, -128, 127), n.constant(DType::i8, {17, 3, 3, 5}, -127, 127),
                  n.constant(DType::i32, {17}, -99, 99), n.numbers(DType::i8, {5}), n.numbers(DType::i8, {0})},
                 attrs),
          DType::i8, 38, 40, true, 0, 5));
    });
    add("softmax", [](Net& n) {
      const ValueId x = n.input(DType::f32, {4, 30}, -1, 1);
      const ValueId e = n.node(
          "exp", {n.node("sub", {x, n.node("reduce_max", {x},
                                           {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}})})});
      n.output(n.node("mul", {e, n.node("reciprocal", {n.node("reduce_sum", {e}, {{"axis", std::int64_t{1}}})}),
                              n.numbers(DType::i8, {0})}));
    });
    add("matmul f16", [](Net& n) {
      n.output(n.node("matmul", {n.input(DType::f16, {2, 9, 20}, -1, 1), n.input(DType::f16, {2, 20, 7}, -1, 1),
                                 n.zero(DType::f16), n.zero(DType::f16)}));
    });
    add("matmul f32", [](Net& n) {
      n.output(n.node("matmul", {n.input(DType::f32, {1, 40, 70}, -1, 1), n.input(DType::f32, {1, 70, 72}, -1, 1),
                                 n.zero(DType::f32), n.zero(DType::f32)}));
    });
    add("pointwise i8", [&](Net& n) {
      Attrs attrs = plain;
      attrs.set("pad", std::vector<std::int64_t>{0, 0, 0, 0});
      attrs.set("acc_type", DType::i32);
      n.output(n.rescale(
          n.node("conv2d",
                 {n.input(DType::i8, {1, 8, 8, 64}, -128, 127), n.constant(DType::i8, {48, 1, 1, 64}, -127, 127),
                  n.constant(DType::i32, {48}, -99, 99), n.numbers(DType::i8, {5}), n.numbers(DType::i8, {0})},
                 attrs),
          DType::i8, 38, 40, true, 0, 5));
    });
    add("codes by codes", [](Net& n) {
      const ValueId zero = n.node("cast", {n.input(DType::i8, {20, 1}, -128, 127)}, {}, DType::f32),
                    none = n.zero(DType::i8);
      const ValueId x =
          n.node("sub", {n.node("cast", {n.input(DType::i8, {20, 64}, -128, 127)}, {}, DType::f32), zero});
      const ValueId w = n.node("mul", {n.node("cast", {n.constant(DType::i8, {24, 2, 32}, -8, 7)}, {}, DType::f32),
                                       n.constant(DType::f32, {24, 2, 1}, 0.01, 0.1), none});
      const ValueId scaled = n.node("mul", {x, n.input(DType::f32, {20, 1}, 0.01, 0.1), none});
      n.output(
          n.node("conv2d",
                 {n.node("reshape", {scaled, n.shape({1, 1, 20, 64})}), n.node("reshape", {w, n.shape({24, 1, 1, 64})}),
                  n.constant(DType::f32, {24}, -1, 1), n.zero(DType::f32), n.zero(DType::f32)},
                 steps({0, 0, 0, 0}, {1, 1}, DType::f32)));
    });
    add("long sum", [](Net& n) {
      n.output(n.node("reduce_sum", {n.input(DType::f32, {3, 900}, -1, 1)}, {{"axis", std::int64_t{1}}}));
    });
    add("sin i32", [](Net& n) {
      n.output(n.node("cast", {n.node("sin", {n.input(DType::f32, {700}, -1, 1)})}, {}, DType::f16));
      n.output(n.node("mul", {n.input(DType::i32, {700}, -99, 99), n.input(DType::i32, {700}, -99, 99),
                              n.numbers(DType::i8, {3})}));
    });
    return list;
  }();
  return all;
}

// What a driver is given of ours can be checked.
TEST(ShaderProgram, KnowsWhatOurShadersAreWrittenIn) {
  for (const auto& [name, net] : nets())
    for (const vulkan_program::TierId tier : every_tier()) {
      const vulkan_program::Program program = compiled(net.graph, {&tier, 1});
      for (const Bytes& code : program.tiers.at(0).modules)
        EXPECT_TRUE(spirv::ShaderProgram::decode(code.as<spirv::Word>()))
            << name << " (" << row_of(tier).name << "): extend run_shader.cpp";
    }
}

// The check's numbers must be numbers: half of all negative integers of 32 bits are none as two of f16.
TEST(ShaderProgram, KnowsF16InWords) {
  const vulkan_program::TierId tier = vulkan_program::TierId::coopmat;
  std::size_t seen = 0;
  for (const auto& [name, net] : nets()) {
    if (name != "matmul f16") continue;
    const vulkan_program::Program program = compiled(net.graph, {&tier, 1});
    for (const Bytes& code : program.tiers.at(0).modules) {
      const auto shader = spirv::ShaderProgram::decode(code.as<spirv::Word>());
      ASSERT_TRUE(shader);
      for (const auto& binding : shader->bindings()) EXPECT_EQ(binding.element_bytes, 2u);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0u);
}

// What a payload's shaders do must not hold up a load for long: beyond its steps nothing counts as checked.
TEST_F(Wrong, ShadersThatTakeTooLongStayUnchecked) {
  const auto load = [&] {
    std::string lines;
    auto program = compiled(nets()[0].second.graph, every_tier());
    const auto model =
        vulkan::ComputeModel::load(std::move(program), "", [&](const std::string& line) { lines += line + "\n"; });
    EXPECT_TRUE(model.ok());
    return lines;
  };
  EXPECT_EQ(load().find("not checked"), std::string::npos);
  const std::uint64_t most = std::exchange(vulkan::most_self_test_steps, 10);
  const auto all = device->checked;
  device->checked = {0};  // none of them
  const std::string told = load();
  vulkan::most_self_test_steps = most;
  unsigned unchecked = 0, shaders = 0;
  const std::size_t at = told.find('\n') + 1;  // behind the line of sizes
  ASSERT_EQ(std::sscanf(told.c_str() + at, "%u of %u shaders were not checked", &unchecked, &shaders), 2) << told;
  EXPECT_EQ(unchecked, shaders);
  EXPECT_GT(shaders, 0u);
  device->checked = all;
}

TEST_F(Wrong, ChangedInstructionsAreFound) {
  real_create = kept.vkCreateShaderModule;
  device->vk.vkCreateShaderModule = create_changed;
  int changed = 0, found = 0;
  std::string missed;
  for (const auto& [name, net] : nets()) {
    changed_instruction = -1, instructions_seen = 0;
    ASSERT_EQ(code_of(compiled(net.graph, every_tier())), "loaded") << name << render(said, false);
    const int count = instructions_seen;
    ASSERT_GT(count, 0) << name;
    for (int i = 0; i < count; i += std::max(count / 5, 1)) {
      changed_instruction = i, instructions_seen = 0;
      const std::string code = code_of(compiled(net.graph, every_tier()));
      if (code != "loaded") { EXPECT_EQ(code, "vulkan.wrong-result") << name; }
      ++changed, found += code != "loaded";
      if (code == "loaded")
        missed += fmt::format("\n  {}: {} of {}, opcode {}", name, i, count, static_cast<Word>(changed_opcode));
    }
  }
  // The rest changes little: a polynomial's last terms, a factor of 1, a shift of what is not chosen.
  EXPECT_GT(10 * found, 7 * changed) << found << " of " << changed << ", not" << missed;
  EXPECT_NE(said.message.find("computes the shader of"), std::string::npos) << said.message;
}

// Every invocation stores its number in one element, or in two of which each has a twin: no driver can be right.
TEST_F(Wrong, ShadersThatContradictThemselvesAreOurs) {
  if (without_vulkan()) return;
  for (const bool halved : {false, true}) {
    shaders::Shader s;
    const shaders::Buffer out = s.buffer(DType::i32, true);
    s.store(out, halved ? s.local() / s.integer(2) : s.integer(0), s.local());
    vulkan_program::Program program;
    program.outputs.push_back({"y", {DType::i32, Shape{64}, std::nullopt}, 0});
    program.io_bytes = 256;
    vulkan_program::Dispatch dispatch;
    dispatch.ranges.push_back({vulkan_program::Arena::io, true, vulkan_program::View::buffer, 0, 256});
    dispatch.kernel = "mine", dispatch.value = "y";
    vulkan_program::Tier tier;
    tier.name = "base";
    tier.modules.push_back(Bytes::of(s.finish()));
    tier.dispatches.push_back(std::move(dispatch));
    program.tiers.push_back(std::move(tier));
    const Status right = vulkan_program::check(program);
    ASSERT_TRUE(right.ok()) << render(right.error(), false);
    EXPECT_EQ(code_of(std::move(program)), "vulkan.ambiguous-shader");
    EXPECT_NE(said.message.find("'y' (mine)"), std::string::npos) << said.message;
  }
}

}  // namespace
}  // namespace tosaic::test
