// SPDX-License-Identifier: Apache-2.0
// EthosUBackend's payload: there and back, and what is refused by name.
#include <gtest/gtest.h>
#include <cstring>

#include "formats/vela/sha256.h"
#include "formats/vela/vela.h"

namespace tosaic::vela {
namespace {

Payload sample() {
  Payload p;
  p.commands.data = Bytes::copy("COP1 and more", 13);
  p.weights.data = Bytes::copy("0123456789abcdef", 16);
  p.scratch_bytes = 1408;
  p.inputs = {{{1, 1, 1, 2, 3, 4}, 1, 1024, 1}, {{1, 1, 1, 1, 1, 8}, 4, 1216, 1}};
  p.outputs = {{{1, 1, 1, 2, 3, 4}, 1, 1024, 1}};
  return p;
}

std::string code_of(const Bytes& stream) {
  const auto p = read(stream);
  return p.ok() ? "" : p.error().code;
}

std::vector<std::byte> bytes_of(const Bytes& b) { return {b.data(), b.data() + b.size()}; }
void replace(std::vector<std::byte>& in, std::string_view from, std::string_view to) {
  const auto at = std::string_view(reinterpret_cast<const char*>(in.data()), in.size()).find(from);
  ASSERT_NE(at, std::string_view::npos);
  std::memcpy(in.data() + at, to.data(), to.size());
}

TEST(Payload, ThereAndBack) {
  const auto stream = write(sample());
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(stream->size() % 16, 0u);
  const auto again = read(*stream);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->commands.data.text(), "COP1 and more");
  EXPECT_EQ(again->weights.data.text(), "0123456789abcdef");
  EXPECT_EQ(again->scratch_bytes, 1408u);
  EXPECT_EQ(again->inputs, sample().inputs);
  EXPECT_EQ(again->outputs, sample().outputs);
  EXPECT_TRUE(*write(*again) == *stream);
}

TEST(Payload, ExternalBlocks) {
  Payload p = sample();
  p.weights = {{}, std::string(64, 'a')};
  const auto stream = write(p);
  ASSERT_TRUE(stream.ok());
  const auto again = read(*stream);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->weights.external());
  EXPECT_EQ(again->weights.external_key, p.weights.external_key);
  EXPECT_FALSE(again->commands.external());
  p.weights.external_key = "short";
  EXPECT_FALSE(write(p).ok());
}

TEST(Payload, OldLayoutsAreNamed) {
  auto bytes = bytes_of(*write(sample()));
  replace(bytes, std::string_view("scratch_size", 12), "scratch_data");
  EXPECT_EQ(code_of(Bytes::of(bytes)), "vela.old-layout");
  Payload p = sample();
  p.inputs.resize(1), p.outputs.clear();
  bytes = bytes_of(*write(p));
  // One tensor of seven words instead of nine: the size field is the word after the name.
  const auto at = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find("inputs");
  bytes[at + 16] = std::byte{4 + 7 * 4};
  EXPECT_EQ(code_of(Bytes::of(bytes)), "vela.old-layout");
}

TEST(Payload, GarbageIsRefused) {
  const Bytes good = *write(sample());
  EXPECT_EQ(code_of(Bytes::copy("nothing", 7)), "vela.not-a-stream");
  for (std::size_t n = 0; n < good.size(); n += 7) EXPECT_NE(code_of(good.slice(0, n)), "") << n;
  for (std::size_t i = 0; i < good.size(); ++i) {  // must not crash, whatever it says
    auto bytes = bytes_of(good);
    bytes[i] ^= std::byte{0xff};
    (void)read(Bytes::of(bytes));
  }
  Payload p = sample();
  p.scratch_bytes = 1040;
  EXPECT_EQ(code_of(*write(p)), "vela.tensor");
}

TEST(Payload, RegionsOfTheirOwnHaveNoStatedSize) {
  Payload p = sample();
  p.inputs[0].region = 3, p.outputs[0].region = 4, p.outputs[0].offset = 1 << 20;
  const auto again = read(*write(p));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->outputs, p.outputs);
  p.inputs[0].region = 8;
  EXPECT_EQ(code_of(*write(p)), "vela.tensor");
  p.inputs[0].region = 3, p.inputs[0].offset = -16;
  EXPECT_EQ(code_of(*write(p)), "vela.tensor");
}

TEST(Payload, ExternalBlobsAreFoundByKey) {
  const Bytes data = Bytes::copy("abc", 3);
  EXPECT_EQ(external_key("", Bytes::copy("", 0)).size(), 64u);
  const std::string key = external_key("tag", data);
  EXPECT_EQ(key, sha256(std::string_view("tag\0abc", 7)));
  const std::map<std::string, Bytes> known{{key, data}};
  EXPECT_TRUE(*resolve({{}, key}, "weights", &known) == data);
  EXPECT_TRUE(*resolve({data, {}}, "weights", nullptr) == data);
  EXPECT_EQ(resolve({{}, std::string(64, '0')}, "weights", &known).error().code, "vela.external");
}

TEST(Sha256, KnownAnswers) {  // FIPS 180-2, appendix B
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace tosaic::vela
