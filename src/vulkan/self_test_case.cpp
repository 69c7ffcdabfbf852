// SPDX-License-Identifier: Apache-2.0
#include "vulkan/self_test_case.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <random>

namespace tosaic::vulkan {
namespace {

using spirv::Word;
using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// 4-byte integers count up with both signs, and none stands twice: as indices they name different places.
void fill(std::span<std::byte> memory, const spirv::ShaderProgram::Binding& binding, std::mt19937& random) {
  const std::size_t count = memory.size() / binding.element_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    Word bits = random();
    if (binding.real)
      bits = std::bit_cast<Word>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-30f);  // -2 .. 2
    else if (binding.element_bytes == 4)
      bits = static_cast<Word>(i % 2 ? -static_cast<std::int64_t>(i) : static_cast<std::int64_t>(i));
    else if (binding.element_bytes == 2)
      bits = (bits & 0x8000) | (0x2800 + (bits >> 16) % 0x1800);  // neither tiny nor huge, as f16 or as bf16
    std::memcpy(memory.data() + i * binding.element_bytes, &bits, binding.element_bytes);
  }
}

std::uint64_t bytes_of(const Dispatch& d) {
  std::uint64_t bytes = 0;
  for (const Range& r : d.ranges)
    if (r.arena != Arena::constants) bytes += r.bytes;
  return bytes;
}

// The ranges of memory of its own, as they lie in the program.
std::vector<std::size_t> order_of(const Dispatch& d) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < d.ranges.size(); ++i)
    if (d.ranges[i].arena != Arena::constants) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(d.ranges[i].arena, d.ranges[i].offset); });
  return order;
}

// Where ranges lie: apart, but for those that overlap in the program.
void lay_out(SelfTestCase& c) {
  const auto& ranges = c.dispatch->ranges;
  c.offsets.assign(ranges.size(), 0);
  std::uint64_t size = 0, end = 0;  // of the last piece in its arena
  const Range* before = nullptr;
  for (std::size_t i : order_of(*c.dispatch)) {
    const Range& r = ranges[i];
    const bool joined = before && before->arena == r.arena && r.offset < end;
    if (!joined) {
      end = r.offset;
      size = (size + vulkan_program::alignment - 1) / vulkan_program::alignment * vulkan_program::alignment;
    }
    c.offsets[i] = size - (end - r.offset);
    const std::uint64_t beyond = r.offset + r.bytes;
    if (beyond > end) size += beyond - end, end = beyond;
    before = &r;
  }
  c.bytes = size;
}

}  // namespace

void SelfTestCase::fill_memory() {
  memory.resize(bytes);
  std::mt19937 random(1);
  for (const bool written : {true, false})
    for (std::size_t i : order_of(*dispatch))
      if (const Range& r = dispatch->ranges[i]; r.written == written) {
        spirv::ShaderProgram::Binding binding = program.bindings()[i];
        if (r.view != vulkan_program::View::buffer)
          binding.element_bytes = static_cast<Word>(std::min<std::uint64_t>(texel_bytes(r.view), 4));
        fill({memory.data() + offsets[i], r.bytes}, binding, random);
      }
}

spirv::ShaderCall SelfTestCase::call(std::vector<std::byte>& in, const Bytes& constants) const {
  spirv::ShaderCall made;
  for (std::size_t i = 0; i < dispatch->ranges.size(); ++i) {
    const Range& r = dispatch->ranges[i];
    made.texel_bytes.push_back(static_cast<Word>(texel_bytes(r.view)));
    if (r.arena == Arena::constants)  // which no shader writes to
      made.bindings.emplace_back(const_cast<std::byte*>(constants.data()) + r.offset, r.bytes);
    else
      made.bindings.emplace_back(in.data() + offsets[i], r.bytes);
  }
  made.pushes = dispatch->pushes;
  made.groups = dispatch->groups;
  return made;
}

std::vector<SelfTestCase> self_test_cases(const vulkan_program::Tier& tier, const std::set<std::uint64_t>& checked) {
  std::map<std::uint32_t, const Dispatch*> smallest;
  for (const Dispatch& d : tier.dispatches) {
    const Dispatch*& best = smallest[d.module];
    if (!best || bytes_of(d) < bytes_of(*best)) best = &d;
  }
  std::vector<SelfTestCase> cases;
  for (const auto& [module, dispatch] : smallest) {
    const Bytes& code = tier.modules[module];
    const std::uint64_t hash = hash_of(code);
    if (checked.contains(hash)) continue;
    auto program = spirv::ShaderProgram::decode(code.as<Word>());
    if (!program) continue;
    cases.push_back({dispatch, hash, *std::move(program), {}, 0, {}, 0, false});
    lay_out(cases.back());
  }
  return cases;
}

}  // namespace tosaic::vulkan
