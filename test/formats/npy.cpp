// SPDX-License-Identifier: Apache-2.0
// .npy files: headers as NumPy writes them, every dtype there and back, and files cut or changed.
#include "formats/npy/npy.h"

#include <gtest/gtest.h>
#include <random>

namespace tosaic {
namespace {

// A file with this header, padded as NumPy pads it.
Bytes file_of(std::string header, const std::string& data) {
  header.resize(118, ' ');
  header.back() = '\n';
  return Bytes::copy((std::string("\x93NUMPY\x01\x00v\x00", 10) + header + data).data(), 128 + data.size());
}
std::string header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}
std::string code(const Bytes& file) {
  auto tensor = npy::read(file, "a.npy");
  return tensor.ok() ? "" : tensor.error().code;
}

TEST(Npy, EveryDtypeThereAndBack) {
  for (DType type : {DType::boolean, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16,
                     DType::f32, DType::f64, DType::f8e4m3})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}, Shape{2, 0, 4}}) {
      TensorType t{type, shape, {}};
      std::vector<std::int64_t> ones(static_cast<std::size_t>(shape.elements()), 1);
      std::vector<double> reals(ones.begin(), ones.end());
      Tensor tensor{t, is_float(type) ? constant_bytes(type, reals) : constant_bytes(type, ones)};
      const Bytes file = npy::write(tensor);
      EXPECT_EQ((file.size() - tensor.data.size()) % 64, 0u);
      auto again = npy::read(file, "a.npy");
      ASSERT_TRUE(again.ok()) << to_string(t) << render(again.error(), false);
      EXPECT_EQ(to_string(again->type), to_string(t));
      EXPECT_TRUE(again->data == tensor.data);
    }
}

// numpy.load takes raw bytes, and not the "f1" that ml_dtypes saves.
TEST(Npy, E5m2IsWrittenAsRawBytes) {
  const Tensor tensor{{DType::f8e5m2, {2}, {}}, constant_bytes(DType::f8e5m2, std::vector<double>{1, -0.5})};
  const Bytes file = npy::write(tensor);
  EXPECT_NE(file.text().find("'descr': '<V1'"), std::string_view::npos);
  auto again = npy::read(file, "a.npy");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->data == tensor.data);
  std::string saved(file.text());
  saved.replace(saved.find("<V1"), 3, "<f1");
  EXPECT_EQ(npy::read(Bytes::copy(saved.data(), saved.size()), "a.npy")->type.dtype, DType::f8e5m2);
}

TEST(Npy, Int4AndInt48AreWidened) {
  EXPECT_EQ(
      npy::read(
          npy::write({TensorType{DType::i4, {2}, {}}, constant_bytes(DType::i4, std::vector<std::int64_t>{-7, 7})}), "")
          ->type.dtype,
      DType::i8);
  EXPECT_EQ(
      npy::read(
          npy::write({TensorType{DType::i48, {1}, {}}, constant_bytes(DType::i48, std::vector<std::int64_t>{-7})}), "")
          ->type.dtype,
      DType::i64);
}

TEST(Npy, FortranOrder) {
  auto tensor = npy::read(file_of(header("|i1", "(2, 3)", "True"), std::string("\0\3\1\4\2\5", 6)), "a.npy");
  ASSERT_TRUE(tensor.ok());
  const auto values = tensor->data.as<std::int8_t>();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
}

TEST(Npy, BigEndian) {
  auto tensor = npy::read(file_of(header(">i4", "(1,)"), std::string("\0\0\1\2", 4)), "a.npy");
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->data.as<std::int32_t>()[0], 258);
}

TEST(Npy, WhatIsRefused) {
  EXPECT_EQ(code(Bytes()), "npy.not-npy");
  EXPECT_EQ(code(file_of(header("<c8", "(1,)"), std::string(8, '\0'))), "npy.dtype");
  EXPECT_EQ(code(file_of(header("<u4", "(1,)"), std::string(4, '\0'))), "npy.dtype");
  EXPECT_EQ(code(file_of(header("", "(1,)"), std::string(4, '\0'))), "npy.dtype");
  EXPECT_EQ(code(file_of(header("<f4", "(2,)"), std::string(7, '\0'))), "npy.corrupt");
  EXPECT_EQ(code(file_of(header("<f4", "(-2,)"), std::string(8, '\0'))), "npy.corrupt");
  EXPECT_EQ(code(file_of(header("<f4", "(9223372036854775807, 9223372036854775807)"), "")), "npy.corrupt");
  EXPECT_EQ(code(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")), "npy.corrupt");
  EXPECT_EQ(code(file_of(header("|b1", "(1,)"), "\2")), "npy.corrupt");
  EXPECT_EQ(code(file_of("", "")), "npy.corrupt");
}

TEST(Npy, TruncatedAndMutated) {
  const Bytes good =
      npy::write({TensorType{DType::f32, {2, 3}, {}}, constant_bytes(DType::f32, std::vector<double>(6, 1.5))});
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_NE(code(Bytes::copy(good.data(), size)), "");
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    for (int i = 0; i < 2; ++i) bytes[random() % 100] = static_cast<std::byte>(random());
    auto tensor = npy::read(Bytes::of(std::move(bytes)), "a.npy");
    if (!tensor.ok()) continue;
    EXPECT_EQ(tensor->data.size(), tensor->type.storage_bytes());
  }
}

}  // namespace
}  // namespace tosaic
