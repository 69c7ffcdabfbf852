// SPDX-License-Identifier: Apache-2.0
#include "formats/tosa/elements.h"

#include <fmt/format.h>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace tosaic::tosa_file {
namespace {

using Stored = tosa_schema::DType;
constexpr std::array<std::pair<DType, Stored>, 13> dtypes{{
    {DType::boolean, Stored::BOOL},
    {DType::i4, Stored::INT4},
    {DType::i8, Stored::INT8},
    {DType::i16, Stored::INT16},
    {DType::i32, Stored::INT32},
    {DType::i48, Stored::INT48},
    {DType::f32, Stored::FP32},
    {DType::f16, Stored::FP16},
    {DType::bf16, Stored::BF16},
    {DType::shape, Stored::SHAPE},
    {DType::f8e4m3, Stored::FP8E4M3},
    {DType::f8e5m2, Stored::FP8E5M2},
    {DType::i64, Stored::INT64},
}};

constexpr int int48_bytes = 6;

}  // namespace

std::optional<Stored> schema_dtype(DType type) {
  for (auto [ours, stored] : dtypes)
    if (ours == type) return stored;
  return std::nullopt;
}

std::optional<DType> dtype_of(Stored type) {
  for (auto [ours, stored] : dtypes)
    if (stored == type) return ours;
  return std::nullopt;
}

Result<std::vector<std::int32_t>> dims_of(const Value& value) {
  std::vector<std::int32_t> dims;
  for (std::int64_t d : value.type.shape.sizes()) {
    if (d < 1 || d > std::numeric_limits<std::int32_t>::max())
      return error("tosa-file.size", fmt::format("'{}' is {}, but a TOSA dimension is between 1 and 2147483647",
                                                 value.name, to_string(value.type)));
    dims.push_back(static_cast<std::int32_t>(d));
  }
  return dims;
}

std::uint64_t packed_size(DType type, std::int64_t elements) {
  const auto n = static_cast<std::uint64_t>(elements);
  if (type == DType::i4) return n / 2 + n % 2;
  if (type == DType::i48) return n * int48_bytes;
  return n * storage_size(type);
}

Bytes pack(DType type, const Bytes& elements) {
  if (type == DType::i4) {
    const auto in = elements.as<std::int8_t>();
    std::vector<std::uint8_t> out((in.size() + 1) / 2, 0);
    for (std::size_t i = 0; i < in.size(); ++i)
      out[i / 2] = static_cast<std::uint8_t>(out[i / 2] | ((in[i] & 0xf) << (i % 2 ? 4 : 0)));
    return Bytes::of(std::move(out));
  }
  if (type == DType::i48) {
    const std::size_t count = elements.size() / 8;
    std::vector<std::byte> out(count * int48_bytes);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(out.data() + i * int48_bytes, elements.data() + i * 8, int48_bytes);
    return Bytes::of(std::move(out));
  }
  return elements;
}

Bytes unpack(DType type, std::int64_t elements, const Bytes& packed) {
  const auto count = static_cast<std::size_t>(elements);
  if (type == DType::i4) {
    std::vector<std::int8_t> out(count);
    for (std::size_t i = 0; i < count; ++i) {
      const int nibble = (std::to_integer<int>(packed.data()[i / 2]) >> (i % 2 ? 4 : 0)) & 0xf;
      out[i] = static_cast<std::int8_t>(nibble - (nibble & 8) * 2);
    }
    return Bytes::of(std::move(out));
  }
  if (type == DType::i48) {
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, packed.data() + i * int48_bytes, int48_bytes);
      out[i] = static_cast<std::int64_t>(bits << 16) >> 16;
    }
    return Bytes::of(std::move(out));
  }
  if (!packed.null() && reinterpret_cast<std::uintptr_t>(packed.data()) % storage_size(type) == 0) return packed;
  return Bytes::copy(packed.data(), packed.size());
}

}  // namespace tosaic::tosa_file
