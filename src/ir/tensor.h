// SPDX-License-Identifier: Apache-2.0
// Tensors with data: what runs, files and constants hold. Dense, row-major, elements in storage form.
#pragma once
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/narrow_float.h"
#include "ir/type.h"

namespace tosaic {

struct Tensor {
  TensorType type;
  Bytes data;  // type.storage_bytes() long
};

// Borrowed tensors, for kernels.
struct TensorView {
  TensorType type;
  const void* data = nullptr;
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data), static_cast<std::size_t>(type.shape.elements())};
  }
};
struct MutableTensorView {
  TensorType type;
  void* data = nullptr;
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), static_cast<std::size_t>(type.shape.elements())};
  }
};

// Calls f.template operator()<T>() with the C++ type that stores `type`:
//   with_storage(t, [&]<class T>() { ... });
// i4 is std::int8_t, i48 and shape are std::int64_t, bool is std::uint8_t.
template <class F>
decltype(auto) with_storage(DType type, F&& f) {
  switch (type) {
    case DType::boolean:
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::i4:
    case DType::i8: return f.template operator()<std::int8_t>();
    case DType::i16: return f.template operator()<std::int16_t>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i48:
    case DType::i64:
    case DType::shape: return f.template operator()<std::int64_t>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::f8e4m3: return f.template operator()<Float8E4M3>();
    case DType::f8e5m2: return f.template operator()<Float8E5M2>();
    case DType::f4e2m1: return f.template operator()<Float4E2M1>();
    case DType::f6e2m3: return f.template operator()<Float6E2M3>();
    case DType::f6e3m2: return f.template operator()<Float6E3M2>();
    case DType::mxint8: return f.template operator()<MxInt8>();
    case DType::f8ue8m0: return f.template operator()<Float8UE8M0>();
  }
  return f.template operator()<std::uint8_t>();
}

// One element as double, and back (integers: exact up to 2^53; stores round to nearest even).
double element_as_double(DType type, const void* data, std::size_t index);
void store_double(DType type, void* data, std::size_t index, double value);
std::int64_t element_as_integer(DType type, const void* data, std::size_t index);
void store_integer(DType type, void* data, std::size_t index, std::int64_t value);

// A constant of `type`'s dtype, from numbers in row-major order.
Bytes constant_bytes(DType type, std::span<const double> values);
Bytes constant_bytes(DType type, std::span<const std::int64_t> values);
// Element-wise conversion between storage types (float to float rounds, integer to integer is exact or wraps).
Bytes converted(const TensorView& from, DType to);

}  // namespace tosaic
