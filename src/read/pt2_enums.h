// SPDX-License-Identifier: Apache-2.0
// The numbers that .pt2 files use for dtypes, layouts and memory formats (torch._export.serde.schema; they differ
// from those of PyTorch's C++ and of .pte). Private to read/.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace tosaic {

struct Pt2DType {
  std::string_view name;      // PyTorch's: "float32"; empty: a number that no known torch writes
  std::optional<DType> type;  // nothing: tosaic cannot hold such elements
};

inline constexpr std::int64_t pt2_complex64 = 10;

inline Pt2DType pt2_dtype(std::int64_t number) {
  switch (number) {
    case 1: return {"uint8", DType::u8};
    case 2: return {"int8", DType::i8};
    case 3: return {"int16", DType::i16};
    case 4: return {"int32", DType::i32};
    case 5: return {"int64", DType::i64};
    case 6: return {"float16", DType::f16};
    case 7: return {"float32", DType::f32};
    case 8: return {"float64", DType::f64};
    case 9: return {"complex32", {}};
    case pt2_complex64: return {"complex64", {}};
    case 11: return {"complex128", {}};
    case 12: return {"bool", DType::boolean};
    case 13: return {"bfloat16", DType::bf16};
    case 28: return {"uint16", {}};
    case 29: return {"float8_e4m3fn", DType::f8e4m3};
    case 30: return {"float8_e5m2", DType::f8e5m2};
    case 31: return {"float8_e4m3fnuz", {}};
    case 32: return {"float8_e5m2fnuz", {}};
    case 33: return {"float8_e8m0fnu", DType::f8ue8m0};
    case 34: return {"uint32", {}};
    case 35: return {"uint64", {}};
    default: return {};
  }
}

// By PyTorch's name, as pickles spell it.
inline std::optional<DType> torch_dtype_named(std::string_view name) {
  for (std::int64_t number = 1; number <= 35; ++number)
    if (auto d = pt2_dtype(number); d.name == name) return d.type;
  return std::nullopt;
}

inline constexpr std::int64_t pt2_strided = 7;
inline std::string pt2_layout(std::int64_t number) {
  switch (number) {
    case 1: return "sparse_coo";
    case 2: return "sparse_csr";
    case 3: return "sparse_csc";
    case 4: return "sparse_bsr";
    case 5: return "sparse_bsc";
    case 6: return "mkldnn";
    case pt2_strided: return "strided";
    default: return "layout " + std::to_string(number);
  }
}

inline std::string pt2_memory_format(std::int64_t number) {
  switch (number) {
    case 1: return "contiguous";
    case 2: return "channels_last";
    case 3: return "channels_last_3d";
    case 4: return "preserve";
    default: return "memory format " + std::to_string(number);
  }
}

}  // namespace tosaic
