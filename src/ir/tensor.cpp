// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"

#include <cmath>
#include <limits>

namespace tosaic {
namespace {

// The integer of type T nearest to a whole number. The largest of 64 bits is no double: from there on, it is taken.
template <class T>
T saturated(double whole) {
  if (std::isnan(whole)) return 0;
  if (whole >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (whole <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(whole);
}

}  // namespace

double element_as_double(DType type, const void* data, std::size_t index) {
  return with_storage(type, [&]<class T>() { return static_cast<double>(static_cast<const T*>(data)[index]); });
}

void store_double(DType type, void* data, std::size_t index, double value) {
  if (type == DType::boolean) return store_integer(type, data, index, value != 0);
  with_storage(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      static_cast<T*>(data)[index] = saturated<T>(std::nearbyint(value));
    else
      static_cast<T*>(data)[index] = T(value);
  });
}

std::int64_t element_as_integer(DType type, const void* data, std::size_t index) {
  return with_storage(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      return static_cast<std::int64_t>(static_cast<const T*>(data)[index]);
    else
      return static_cast<std::int64_t>(static_cast<double>(static_cast<const T*>(data)[index]));
  });
}

void store_integer(DType type, void* data, std::size_t index, std::int64_t value) {
  if (type == DType::boolean) value = value != 0;
  with_storage(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      static_cast<T*>(data)[index] = static_cast<T>(value);
    else
      static_cast<T*>(data)[index] = T(static_cast<double>(value));
  });
}

Bytes constant_bytes(DType type, std::span<const double> values) {
  std::vector<std::byte> data(values.size() * storage_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) store_double(type, data.data(), i, values[i]);
  return Bytes::of(std::move(data));
}

Bytes constant_bytes(DType type, std::span<const std::int64_t> values) {
  std::vector<std::byte> data(values.size() * storage_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) store_integer(type, data.data(), i, values[i]);
  return Bytes::of(std::move(data));
}

Bytes converted(const TensorView& from, DType to) {
  const auto n = static_cast<std::size_t>(from.type.shape.elements());
  if (from.type.dtype == to) return Bytes::copy(from.data, n * storage_size(to));
  std::vector<std::byte> data(n * storage_size(to));
  const bool integers = !is_float(from.type.dtype) && !is_float(to), truncates = is_integer(to);
  for (std::size_t i = 0; i < n; ++i) {
    if (integers) {
      store_integer(to, data.data(), i, element_as_integer(from.type.dtype, from.data, i));
      continue;
    }
    const double value = element_as_double(from.type.dtype, from.data, i);
    if (to == DType::u8)  // PyTorch goes through int64: -1.5 is 255
      store_integer(to, data.data(), i, saturated<std::int64_t>(std::trunc(value)));
    else
      store_double(to, data.data(), i, truncates ? std::trunc(value) : value);
  }
  return Bytes::of(std::move(data));
}

}  // namespace tosaic
