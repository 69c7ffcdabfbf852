// SPDX-License-Identifier: Apache-2.0
// .ptd files: there and back, and files that are not what they seem. test/peers has ExecuTorch's own reader and writer.
#include "formats/ptd/ptd_file.h"

#include <gtest/gtest.h>
#include <algorithm>

#include "flat_tensor_generated.h"

namespace tosaic {
namespace {

const TensorType matrix{DType::f32, Shape{2, 3}, {}};

Bytes sample() {
  return ptd::write({{"weights", Bytes::copy("0123456789abcdef01234567", 24), matrix},
                     {"empty", Bytes::copy("", 0)},
                     {"key", Bytes::copy("some bytes", 10)}})
      .joined();
}

TEST(Ptd, there_and_back) {
  const auto entries = ptd::read(sample(), "x.ptd");
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].key, "weights");
  EXPECT_EQ((*entries)[0].data.text(), "0123456789abcdef01234567");
  EXPECT_EQ((*entries)[0].tensor, std::optional(matrix));
  EXPECT_EQ((*entries)[1].data.size(), 0u);
  EXPECT_EQ((*entries)[2].data.text(), "some bytes");
  EXPECT_FALSE((*entries)[2].tensor.has_value());
  EXPECT_TRUE(ptd::write(*entries) == sample());
  const auto none = ptd::read(ptd::write({}).joined(), "x.ptd");
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_TRUE(none->empty());
}

TEST(Ptd, data_lie_on_aligned_offsets) {
  const Bytes file = sample();
  const auto entries = ptd::read(file, "x.ptd");
  for (const ptd::Entry& entry : *entries) EXPECT_EQ((entry.data.data() - file.data()) % 128, 0) << entry.key;
}

TEST(Ptd, of_newer_versions) {
  const Bytes good = sample();
  const auto refused = [&](std::size_t at, std::string_view text) {
    std::vector<char> bytes(good.text().begin(), good.text().end());
    std::copy(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    const auto entries = ptd::read(Bytes::of(bytes), "new.ptd");
    if (entries.ok()) return std::string("read");
    EXPECT_EQ(entries.error().place.file, "new.ptd");
    return entries.error().code;
  };
  EXPECT_EQ(refused(4, "FT02"), "ptd.version");
  EXPECT_EQ(refused(8, "FH02"), "ptd.version");
  // The root states no version, which is 0: another field, of as many bytes, stands in for one.
  const auto* root = flatbuffers::GetRoot<flatbuffers::Table>(good.data());
  const auto field = root->GetOptionalFieldOffset(ptd_schema::FlatTensor::VT_SEGMENTS);
  const auto* slots = reinterpret_cast<const std::byte*>(root) - flatbuffers::ReadScalar<std::int32_t>(root);
  const auto at = static_cast<std::size_t>(slots - good.data()) + ptd_schema::FlatTensor::VT_VERSION;
  EXPECT_EQ(refused(at, {reinterpret_cast<const char*>(&field), sizeof field}), "ptd.version");
}

TEST(Ptd, garbage_is_refused) {
  const Bytes good = sample();
  const auto code = [](const Bytes& file) {
    const auto entries = ptd::read(file, "x.ptd");
    return entries.ok() ? std::string() : entries.error().code;
  };
  EXPECT_EQ(code(Bytes::copy("nothing", 7)), "ptd.not-ptd");
  for (std::size_t n = 0; n + 1 < good.size(); ++n) EXPECT_NE(code(good.slice(0, n)), "") << n;
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {  // must not crash, whatever it says
      std::vector<std::byte> bytes(good.data(), good.data() + good.size());
      bytes[i] ^= std::byte{static_cast<unsigned char>(1 << bit)};
      (void)ptd::read(Bytes::of(bytes), "x.ptd");
    }
}

}  // namespace
}  // namespace tosaic
