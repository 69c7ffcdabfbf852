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
constexpr std::array<std::pair<DType, Stored>, 18> dtypes{{
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
    {DType::f4e2m1, Stored::FP4E2M1},
    {DType::f6e2m3, Stored::FP6E2M3},
    {DType::f6e3m2, Stored::FP6E3M2},
    {DType::mxint8, Stored::MXINT8},
    {DType::f8ue8m0, Stored::FP8UE8M0},
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

namespace {

// Bits of an element where it takes less than its memory, and several share a byte, the first one in the lowest bits.
int packed_bits(DType type) {
  switch (type) {
    case DType::i4:
    case DType::f4e2m1: return 4;
    case DType::f6e2m3:
    case DType::f6e3m2: return 6;
    default: return 0;
  }
}

}  // namespace

std::uint64_t packed_size(DType type, std::int64_t elements) {
  const auto n = static_cast<std::uint64_t>(elements);
  if (const int bits = packed_bits(type)) return (n * static_cast<std::uint64_t>(bits) + 7) / 8;
  if (type == DType::i48) return n * int48_bytes;
  return n * storage_size(type);
}

Bytes pack(DType type, const Bytes& elements) {
  if (const int bits = packed_bits(type)) {
    const auto in = elements.as<std::uint8_t>();
    std::vector<std::uint8_t> out(packed_size(type, std::ssize(in)), 0);
    const unsigned mask = (1u << bits) - 1;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(bits);
      const unsigned shifted = (in[i] & mask) << (at % 8);
      out[at / 8] = static_cast<std::uint8_t>(out[at / 8] | shifted);
      if (shifted >> 8) out[at / 8 + 1] = static_cast<std::uint8_t>(out[at / 8 + 1] | (shifted >> 8));
    }
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
  if (const int bits = packed_bits(type)) {
    const auto in = packed.as<std::uint8_t>();
    std::vector<std::uint8_t> out(count);
    const unsigned mask = (1u << bits) - 1, sign = type == DType::i4 ? 8 : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * static_cast<std::size_t>(bits);
      unsigned both = in[at / 8];
      if (at / 8 + 1 < in.size()) both |= static_cast<unsigned>(in[at / 8 + 1]) << 8;
      const unsigned value = both >> (at % 8) & mask;
      out[i] = static_cast<std::uint8_t>(value - (value & sign) * 2);
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
