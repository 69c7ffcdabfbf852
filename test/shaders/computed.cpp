// SPDX-License-Identifier: Apache-2.0
#include "shaders/computed.h"

#include <cstring>

#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/compute/run_shader.h"
#include "shaders/images.h"
#include "vulkan/compute_halves.h"

namespace tosaic::test {
namespace {

using spirv::Word;
constexpr std::uint64_t most_steps = 1u << 30;

}  // namespace

Computed::Computed(vulkan_program::Program program) : program_(std::move(program)) {
  const Bytes constants = program_.constants.joined();
  memories_[0].assign(constants.data(), constants.data() + constants.size());
  memories_[1].resize(tier().activation_bytes);
  memories_[2].resize(program_.io_bytes);
  // Vectors reach beyond the last element.
  for (const auto& d : tier().dispatches)
    for (const auto& r : d.ranges) {
      std::vector<std::byte>& memory = memories_[static_cast<std::size_t>(r.arena)];
      memory.resize(std::max<std::size_t>(memory.size(), r.offset + r.bytes));
    }
}

bool Computed::has_matrices() const {
  for (const Bytes& m : tier().modules)
    if (spirv::check_shader(m.as<Word>())->matrices) return true;
  return false;
}

void Computed::run(const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (std::byte* to = memories_[2].data() + program_.inputs[i].offset; program_.inputs[i].narrow)
      vulkan::narrow(inputs[i].data.as<float>().data(), inputs[i].data.size() / sizeof(float),
                     reinterpret_cast<std::uint16_t*>(to));
    else
      std::memcpy(to, inputs[i].data.data(), inputs[i].data.size());
  for (const auto& d : tier().dispatches) ASSERT_NO_FATAL_FAILURE(dispatch(d));
}

Tensor Computed::output(std::size_t i) const {
  const auto& t = program_.outputs[i];
  if (t.narrow) {
    std::vector<float> wide(t.type.storage_bytes() / sizeof(float));
    vulkan::widen(reinterpret_cast<const std::uint16_t*>(memories_[2].data() + t.offset), wide.size(), wide.data());
    return {t.type, Bytes::of(std::move(wide))};
  }
  return {t.type, Bytes::copy(memories_[2].data() + t.offset, t.type.storage_bytes())};
}

void Computed::dispatch(const vulkan_program::Dispatch& d) {
  const Bytes& module = tier().modules[d.module];
  const auto shader = spirv::ShaderProgram::decode(module.as<Word>());
  ASSERT_TRUE(shader) << d.kernel << ": extend run_shader.cpp";
  spirv::ShaderCall call;
  for (const auto& r : d.ranges) {
    call.texel_bytes.push_back(static_cast<Word>(texel_bytes(r.view)));
    call.bindings.emplace_back(memories_[static_cast<std::size_t>(r.arena)].data() + r.offset, r.bytes);
  }
  call.pushes = d.pushes;
  call.groups = d.groups;
  // By place: who stored there, and what. Units are invocations that run together.
  std::map<const std::byte*, std::pair<std::uint64_t, Word>> stored;
  std::uint64_t unit = 0;
  for (Word z = 0; z < d.groups[2]; ++z)
    for (Word y = 0; y < d.groups[1]; ++y)
      for (Word x = 0; x < d.groups[0]; ++x)
        for (Word i = 0; i < shader->group_size(); i += shader->together(), ++unit) {
          const auto writes = shader->run(call, {{x, y, z}, i, most_steps});
          ASSERT_TRUE(writes) << d.kernel << " does what is not defined";
          for (const spirv::ShaderWrite& w : *writes) {
            const std::byte* const place = call.bindings[w.binding].data() + w.index * w.element_bytes;
            const auto [found, first] = stored.try_emplace(place, unit, w.after);
            ASSERT_TRUE(first || found->second.first == unit || found->second.second == w.after)
                << d.kernel << ": two invocations store element " << w.index << " of binding " << w.binding;
            found->second = {unit, w.after};
          }
        }
}

void expect_of_every_tier(const Net& net, const Tolerance& tolerance, const std::string& what,
                          shaders::Precision precision) {
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
  for (const vulkan_program::TierId tier : every_tier()) {
    vulkan_program::Program program = compiled(net.graph, {&tier, 1}, precision);
    ASSERT_FALSE(program.tiers.empty()) << what;
    const std::string which = what + " (computed, tier " + std::string(row_of(tier).name) + ")";
    SCOPED_TRACE(which);
    Computed computed(std::move(program));
    ASSERT_NO_FATAL_FAILURE(computed.run(net.inputs));
    for (std::size_t i = 0; i < wanted->size(); ++i) expect_same(computed.output(i), (*wanted)[i], tolerance, which);
  }
  if (!without_vulkan()) expect_on_device(net, tolerance, what, precision);
}

void expect_matrices(const Net& net, vulkan_program::TierId tier, const Tolerance& tolerance, bool matrices,
                     shaders::Precision precision) {
  const auto wanted = interp::run(net.graph, net.inputs);
  ASSERT_TRUE(wanted.ok()) << wanted.error().message;
  Computed computed(compiled(net.graph, {&tier, 1}, precision));
  EXPECT_EQ(computed.has_matrices(), matrices);
  ASSERT_NO_FATAL_FAILURE(computed.run(net.inputs));
  const std::string which = "tier " + std::string(row_of(tier).name) + ", output ";
  for (std::size_t i = 0; i < wanted->size(); ++i)
    expect_same(computed.output(i), (*wanted)[i], tolerance, which + std::to_string(i));
}

void expect_behind_plain(vulkan_program::TierId tier, DType type, const std::array<std::int64_t, 3>& channels,
                         const Tolerance& tolerance) {
  const Sizes same{1, 1};
  const Block blocks[] = {{1, 7, 7, channels[0], 48, {3, 3}, {1, 1, 1, 1}, same},
                          {2, 14, 10, channels[1], 36, {3, 3}, {1, 1, 1, 0}, {2, 2}},
                          {1, 20, 9, channels[2], 24, {5, 5}, {2, 2, 2, 2}, same}};
  Net net(4);
  int n = 0;
  for (const Block& block : blocks) net.output(add_block(net, block, type, n++));
  const auto dispatches = compiled(net.graph, {&tier, 1}).tiers.at(0).dispatches;
  EXPECT_EQ(std::ranges::count(dispatches, "conv2d+depthwise_conv2d", &vulkan_program::Dispatch::kernel), 3);
  expect_matrices(net, tier, tolerance, true);
}

std::string said_of_changed(const vulkan_program::Tier& tier,
                            const std::function<bool(spirv::Opcode op, Word* operands)>& change) {
  std::string said = "nothing was changed";
  for (const Bytes& m : tier.modules) {
    if (!spirv::check_shader(m.as<Word>())->matrices) continue;
    std::vector<Word> words(m.as<Word>().begin(), m.as<Word>().end());
    for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
      if (change(static_cast<spirv::Opcode>(words[at] & 0xffff), &words[at] + 1)) {
        const auto checked = spirv::check_shader(words);
        said = checked.ok() ? "it passes" : checked.error().message;
        break;
      }
  }
  return said;
}

}  // namespace tosaic::test
