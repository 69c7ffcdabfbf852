// SPDX-License-Identifier: Apache-2.0
// Payloads of ExecuTorch's VulkanBackend: what is read of one made by hand, and of those that are not what they seem.
// test/plugin has ExecuTorch's own.
#include "formats/vulkan_backend/vulkan_backend.h"

#include <gtest/gtest.h>
#include <cstring>

#include "ir/aten_operators.h"
#include "vulkan_backend_generated.h"

namespace tosaic {
namespace {

namespace s = vulkan_backend_schema;
namespace vb = vulkan_backend;

struct Sample {
  flatbuffers::FlatBufferBuilder b;
  std::int8_t dtype = 5, staging = 127;
  std::vector<std::uint32_t> dims{2, 3}, inputs{0}, outputs{2};
  std::vector<std::int32_t> args{0, 1, 3, 2};
  std::uint64_t offset = 16, length = 24;
  std::string op = "aten.add.Tensor";
  std::vector<std::int64_t> longs{1, 78};
  bool list = false;

  flatbuffers::Offset<s::Value> tensor(std::int32_t constant) {
    return s::CreateValue(b, s::Any::Tensor,
                          s::CreateTensorDirect(b, dtype, &dims, constant, -1, 1, 2, staging).Union());
  }

  Bytes made() {
    b.Clear();
    std::vector<flatbuffers::Offset<s::Value>> values{tensor(-1), tensor(0), tensor(-1),
                                                      s::CreateValue(b, s::Any::Int, s::CreateInt(b, 1).Union())};
    if (list) values.push_back(s::CreateValue(b, s::Any::IntList, s::CreateIntListDirect(b, &longs).Union()));
    std::vector<flatbuffers::Offset<s::Call>> chain{s::CreateCallDirect(b, 7, op.c_str(), &args)};
    std::vector<flatbuffers::Offset<s::Data>> constants{s::CreateDataDirect(b, offset, length)};
    b.Finish(s::CreateGraphDirect(b, "0", &chain, &values, &inputs, &outputs, &constants), s::GraphIdentifier());
    std::vector<std::byte> file(32 + (b.GetSize() + 15) / 16 * 16 + 64);
    const auto put = [&](std::size_t at, auto value) { std::memcpy(file.data() + at, &value, sizeof value); };
    std::memcpy(file.data() + 4, "VH00", 4);
    put(8, std::uint16_t{30});
    put(10, std::uint32_t{32});
    put(14, b.GetSize());
    put(18, static_cast<std::uint32_t>(file.size() - 64));
    put(22, std::uint64_t{64});
    std::memcpy(file.data() + 32, b.GetBufferPointer(), b.GetSize());
    return Bytes::of(file);
  }
};

TEST(VulkanBackend, what_is_read) {
  Sample sample;
  sample.staging = 6;
  const Bytes file = sample.made();
  ASSERT_TRUE(vb::is_payload(file));
  const auto read = vb::read(file, "x.pte");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->values.size(), 4u);
  const auto& tensor = std::get<vb::Tensor>(read->values[1]);
  EXPECT_EQ(tensor.dtype, DType::f32);
  EXPECT_EQ(tensor.staging, DType::f64);
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  EXPECT_EQ(tensor.constant, std::optional<std::uint32_t>(0));
  EXPECT_EQ(vb::layout_text(tensor), "texture 3d, channels packed");
  ASSERT_EQ(read->calls.size(), 1u);
  EXPECT_EQ(read->calls[0].op, "aten.add.Tensor");
  EXPECT_EQ(read->calls[0].node, 7u);
  EXPECT_EQ(read->calls[0].args, (std::vector<std::uint32_t>{0, 1, 3, 2}));
  EXPECT_EQ(read->constants[0].data.size(), 24u);
}

std::string refusal(Sample& sample) {
  const auto read = vb::read(sample.made(), "x.pte");
  if (read.ok()) return "read";
  EXPECT_EQ(read.error().code, "vulkan-backend.format");
  EXPECT_EQ(read.error().place.file, "x.pte");
  return read.error().message;
}

TEST(VulkanBackend, lies_are_refused) {
  const auto changed = [](auto change) {
    Sample sample;
    change(sample);
    return refusal(sample);
  };
  EXPECT_EQ(changed([](Sample&) {}), "read");
  EXPECT_EQ(changed([](Sample& x) { x.dtype = 9; }), "value 0 has a dtype numbered 9");
  EXPECT_EQ(changed([](Sample& x) { x.staging = -3; }), "value 0 has a dtype numbered -3");
  EXPECT_EQ(changed([](Sample& x) { x.dims = {1u << 20, 1u << 20, 1u << 20}; }), "value 0 fits no memory");
  EXPECT_EQ(changed([](Sample& x) { x.dims = {0, 1u << 20, 1u << 20, 1u << 20}; }), "value 0 fits no memory");
  EXPECT_EQ(changed([](Sample& x) { x.dims = {UINT32_MAX}; }), "value 0 has a dim of 4294967295");
  EXPECT_EQ(changed([](Sample& x) { x.dims.assign(17, 1); }), "value 0 has 17 dims");
  EXPECT_EQ(changed([](Sample& x) { x.inputs = {4}; }), "the list of inputs names value 4 of 4");
  EXPECT_EQ(changed([](Sample& x) { x.outputs = {99}; }), "the list of outputs names value 99 of 4");
  EXPECT_EQ(changed([](Sample& x) { x.args[1] = -1; }), "call 0 (aten.add.Tensor) names value -1 of 4");
  EXPECT_EQ(changed([](Sample& x) { x.op = ""; }), "call 0 has no operator");
  EXPECT_EQ(changed([](Sample& x) { x.length = 49; }),
            "constant 0 (49 bytes at 16) lies outside the constants' 64 bytes");
  EXPECT_EQ(changed([](Sample& x) { x.offset = UINT64_MAX - 8; }),
            "constant 0 (24 bytes at 18446744073709551607) lies outside the constants' 64 bytes");
}

// The verifier of flatbuffers lets vectors of eight-byte elements begin anywhere; UBSan sees who reads them in place.
TEST(VulkanBackend, lists_begin_anywhere) {
  Sample sample;
  sample.list = true;
  const Bytes good = sample.made();
  ASSERT_EQ(std::get<std::vector<std::int64_t>>(vb::read(good, "x")->values[4]), sample.longs);
  bool moved = false;
  for (std::size_t i = 32; i + 4 <= good.size(); i += 4) {
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    std::uint32_t offset = 0;
    std::memcpy(&offset, &bytes[i], 4);
    offset += 4;
    std::memcpy(&bytes[i], &offset, 4);
    const auto read = vb::read(Bytes::of(bytes), "x");
    const auto* list =
        read.ok() && read->values.size() == 5 ? std::get_if<std::vector<std::int64_t>>(&read->values[4]) : nullptr;
    moved |= list && *list == std::vector<std::int64_t>{std::int64_t{78} << 32};  // the 1 is its length
  }
  EXPECT_TRUE(moved);
}

TEST(VulkanBackend, garbage_is_refused) {
  const Bytes good = Sample().made();
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(vb::read(good.slice(0, n), "x").ok()) << n;
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {  // must not crash, whatever it says
      std::vector<std::byte> bytes(good.data(), good.data() + good.size());
      bytes[i] ^= std::byte{static_cast<unsigned char>(1 << bit)};
      const auto read = vb::read(Bytes::of(bytes), "x");
      if (!read.ok()) { EXPECT_FALSE(read.error().internal); }
    }
  std::vector<std::byte> newer(good.data(), good.data() + good.size());
  newer[39] = std::byte{'1'};
  const auto read = vb::read(Bytes::of(newer), "x");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, "vulkan-backend.version");
}

}  // namespace
}  // namespace tosaic
