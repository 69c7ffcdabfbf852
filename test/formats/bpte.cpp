// SPDX-License-Identifier: Apache-2.0
// .bpte files: there and back, and files that are not what they seem. test/python has ExecuTorch's own reader and
// writer.
#include "formats/bpte/bpte_file.h"

#include <gtest/gtest.h>
#include <cstring>

#include "bundled_program_generated.h"

namespace tosaic {
namespace {

const TensorType matrix{DType::f32, Shape{2, 3}, {}};
const std::vector<float> numbers{0, 1, 2, 3, 4, 5};

bpte::File sample() {
  const Tensor tensor{matrix, Bytes::copy(numbers.data(), 24)};
  const Tensor scalar{{DType::i64, Shape{}, {}}, Bytes::copy("12345678", 8)};
  const Tensor none{{DType::boolean, Shape{0, 4}, {}}, Bytes::copy("", 0)};
  return {Bytes::copy("the program", 11),
          {{"second", {std::int64_t{-3}, true, 0.25}, {}}, {"first", {tensor, none}, {scalar}}, {"first", {}, {}}}};
}

TEST(Bpte, there_and_back) {
  const auto written = bpte::write(sample());
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_TRUE(bpte::is_bpte(*written));
  const auto read = bpte::read(*written, "x.bpte");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->program.text(), "the program");
  EXPECT_EQ(written->text().find("the program") % 32, 0u);
  ASSERT_EQ(read->cases.size(), 3u);  // methods in alphabetical order
  EXPECT_EQ(read->cases[0].method, "first");
  const auto& tensor = std::get<Tensor>(read->cases[0].inputs[0]);
  EXPECT_EQ(tensor.type, matrix);
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), reinterpret_cast<const float*>(tensor.data.data())));
  EXPECT_EQ(std::get<Tensor>(read->cases[0].inputs[1]).type.shape, (Shape{0, 4}));
  EXPECT_EQ(std::get<Tensor>(read->cases[0].outputs[0]).data.text(), "12345678");
  EXPECT_EQ(std::get<std::int64_t>(read->cases[2].inputs[0]), -3);
  EXPECT_TRUE(std::get<bool>(read->cases[2].inputs[1]));
  EXPECT_EQ(std::get<double>(read->cases[2].inputs[2]), 0.25);
  EXPECT_TRUE(*bpte::write(*read) == *written);
}

// What somebody else wrote.
struct Written {
  std::int8_t scalar = 6;  // float
  std::vector<std::int32_t> sizes{2, 3};
  std::vector<std::uint8_t> order{0, 1}, data = std::vector<std::uint8_t>(24);
};

Result<bpte::File> read_of(const Written& w) {
  namespace s = bpte_schema;
  flatbuffers::FlatBufferBuilder b;
  const auto tensor = s::CreateTensorDirect(b, w.scalar, &w.sizes, &w.data, &w.order);
  const std::vector values{s::CreateValue(b, s::AnyValue::Tensor, tensor.Union())};
  const std::vector cases{s::CreateCaseDirect(b, &values)};
  const std::vector suites{s::CreateSuiteDirect(b, "forward", &cases)};
  const std::vector<std::uint8_t> program{1};
  b.Finish(s::CreateBundledProgramDirect(b, 2, &suites, &program), s::BundledProgramIdentifier());
  return bpte::read(Bytes::copy(b.GetBufferPointer(), b.GetSize()), "x.bpte");
}

TEST(Bpte, tensors_in_another_order_are_made_row_major) {
  Written w;
  w.order = {1, 0};
  const std::vector<float> columns{0, 3, 1, 4, 2, 5};
  std::memcpy(w.data.data(), columns.data(), 24);
  const auto read = read_of(w);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& tensor = std::get<Tensor>(read->cases[0].inputs[0]);
  EXPECT_EQ(tensor.type, matrix);
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), reinterpret_cast<const float*>(tensor.data.data())));
}

TEST(Bpte, files_that_lie) {
  const auto code = [](Written w) {
    const auto read = read_of(w);
    return read.ok() ? "" : read.error().code;
  };
  EXPECT_EQ(code({}), "");
  EXPECT_EQ(code({.scalar = 99}), "bpte.corrupt");
  EXPECT_EQ(code({.sizes = {2, 4}}), "bpte.corrupt");
  EXPECT_EQ(code({.sizes = {-2, -3}}), "bpte.corrupt");
  EXPECT_EQ(code({.sizes = {1 << 30, 1 << 30, 1 << 30}}), "bpte.corrupt");
  EXPECT_EQ(code({.sizes = std::vector<std::int32_t>(17, 1), .order = {}, .data = {0, 0, 0, 0}}), "bpte.corrupt");
  EXPECT_EQ(code({.order = {0, 0}}), "bpte.corrupt");
  EXPECT_EQ(code({.order = {0}}), "bpte.corrupt");
  EXPECT_EQ(code({.order = {0, 9}}), "bpte.corrupt");
  const Bytes good = *bpte::write(sample());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(bpte::read(Bytes::copy(good.data(), size), "x.bpte").ok() && size + 32 < good.size()) << size;
  EXPECT_EQ(bpte::read(*bpte::write({}), "x.bpte").error().code, "bpte.corrupt");  // without a program
  bpte::File narrow = sample();
  narrow.cases[0].inputs = {Tensor{{DType::i4, Shape{1}, {}}, Bytes::copy("1", 1)}};
  EXPECT_EQ(bpte::write(narrow).error().code, "bpte.dtype");
}

}  // namespace
}  // namespace tosaic
