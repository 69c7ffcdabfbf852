// SPDX-License-Identifier: Apache-2.0
#include "contract/tensors.h"

#include <fmt/format.h>

namespace tosaic::contract {
namespace {

// Saturating, so that no size wraps into one that fits.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Nullopt: a negative size.
std::optional<std::uint64_t> elements(const std::int64_t* dims, std::uint32_t rank) {
  std::uint64_t count = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return std::nullopt;
    count = times(count, static_cast<std::uint64_t>(dims[i]));
  }
  return count;
}

std::string dtype_text(std::uint32_t dtype, std::uint32_t element_bytes) {
  if (const auto type = dtype_of(dtype)) return std::string(name_of(*type));
  return element_bytes ? fmt::format("{} byte{} each", element_bytes, element_bytes == 1 ? "" : "s")
                       : fmt::format("dtype {}", dtype);
}

std::string text(const tosaic_delegate_tensor_info& info) {
  std::string sizes;
  for (std::uint32_t i = 0; i < info.rank; ++i)
    sizes += info.least[i] == info.most[i] ? fmt::format("{}x", info.most[i])
                                           : fmt::format("({} to {})x", info.least[i], info.most[i]);
  return sizes + dtype_text(info.dtype, info.element_bytes);
}

std::string text(const tosaic_delegate_tensor& tensor) {
  std::string sizes;
  for (std::uint32_t i = 0; i < tensor.rank; ++i) sizes += fmt::format("{}x", tensor.dims[i]);
  return fmt::format("{}{} ({} bytes)", sizes, dtype_text(tensor.dtype, 0), tensor.bytes);
}

bool sizes_fit(const tosaic_delegate_tensor_info& info, const tosaic_delegate_tensor& tensor) {
  if (info.flags & TOSAIC_TENSOR_ANY_SHAPE) {
    const auto given = elements(tensor.dims, tensor.rank), least = elements(info.least, info.rank),
               most = elements(info.most, info.rank);
    return given && least && most && *given >= *least && *given <= *most;
  }
  if (tensor.rank != info.rank) return false;
  for (std::uint32_t i = 0; i < info.rank; ++i)
    if (tensor.dims[i] < info.least[i] || tensor.dims[i] > info.most[i]) return false;
  return true;
}

}  // namespace

bool is_wider(const tosaic_delegate_tensor_info& info, std::uint32_t dtype) {
  return (info.flags & TOSAIC_TENSOR_WIDER) && ((dtype == TOSAIC_DTYPE_I64 && info.dtype == TOSAIC_DTYPE_I32) ||
                                                (dtype == TOSAIC_DTYPE_F64 && info.dtype == TOSAIC_DTYPE_F32));
}

namespace {

// TOSA's types have no u8: unsigned quantised values travel as i8.
bool dtype_fits(const tosaic_delegate_tensor_info& info, const tosaic_delegate_tensor& tensor) {
  if (tensor.dtype == info.dtype || tensor.dtype == TOSAIC_DTYPE_OPAQUE || is_wider(info, tensor.dtype)) return true;
  if (tensor.dtype == TOSAIC_DTYPE_U8 && info.dtype == TOSAIC_DTYPE_I8) return true;
  const auto given = dtype_of(tensor.dtype);
  return given && (info.flags & TOSAIC_TENSOR_ANY_DTYPE) && storage_size(*given) == info.element_bytes;
}

}  // namespace

std::uint32_t contract_dtype(DType type) {
  switch (type) {
    case DType::boolean: return TOSAIC_DTYPE_BOOL;
    case DType::i4: return TOSAIC_DTYPE_I4;
    case DType::i8: return TOSAIC_DTYPE_I8;
    case DType::u8: return TOSAIC_DTYPE_U8;
    case DType::i16: return TOSAIC_DTYPE_I16;
    case DType::i32: return TOSAIC_DTYPE_I32;
    case DType::i48: return TOSAIC_DTYPE_I48;
    case DType::i64:
    case DType::shape: return TOSAIC_DTYPE_I64;
    case DType::f16: return TOSAIC_DTYPE_F16;
    case DType::bf16: return TOSAIC_DTYPE_BF16;
    case DType::f32: return TOSAIC_DTYPE_F32;
    case DType::f64: return TOSAIC_DTYPE_F64;
    case DType::f8e4m3: return TOSAIC_DTYPE_F8E4M3;
    case DType::f8e5m2: return TOSAIC_DTYPE_F8E5M2;
    case DType::f4e2m1:
    case DType::f6e2m3:
    case DType::f6e3m2:
    case DType::mxint8:
    case DType::f8ue8m0: break;
  }
  return TOSAIC_DTYPE_OPAQUE;
}

std::optional<DType> dtype_of(std::uint32_t dtype) {
  switch (dtype) {
    case TOSAIC_DTYPE_BOOL: return DType::boolean;
    case TOSAIC_DTYPE_I4: return DType::i4;
    case TOSAIC_DTYPE_I8: return DType::i8;
    case TOSAIC_DTYPE_U8: return DType::u8;
    case TOSAIC_DTYPE_I16: return DType::i16;
    case TOSAIC_DTYPE_I32: return DType::i32;
    case TOSAIC_DTYPE_I48: return DType::i48;
    case TOSAIC_DTYPE_I64: return DType::i64;
    case TOSAIC_DTYPE_F16: return DType::f16;
    case TOSAIC_DTYPE_BF16: return DType::bf16;
    case TOSAIC_DTYPE_F32: return DType::f32;
    case TOSAIC_DTYPE_F64: return DType::f64;
    case TOSAIC_DTYPE_F8E4M3: return DType::f8e4m3;
    case TOSAIC_DTYPE_F8E5M2: return DType::f8e5m2;
    default: return std::nullopt;
  }
}

TensorInfo TensorInfo::of(const TensorType& type, std::string name, std::uint32_t flags) {
  TensorInfo info{std::move(name), contract_dtype(type.dtype), static_cast<std::uint32_t>(storage_size(type.dtype)),
                  flags,           type.shape.sizes(),         type.shape.sizes()};
  return info;
}

tosaic_delegate_tensor_info TensorInfo::view() const {
  return {name.c_str(), dtype,        element_bytes, static_cast<std::uint32_t>(most.size()),
          flags,        least.data(), most.data()};
}

tosaic_delegate_tensor tensor_of(const TensorType& type, void* data) {
  return {data,
          type.storage_bytes(),
          contract_dtype(type.dtype),
          static_cast<std::uint32_t>(type.rank()),
          type.shape.sizes().data(),
          0};
}

std::string place_in_call(std::size_t i, std::size_t inputs) {
  return i < inputs ? fmt::format("input {}", i) : fmt::format("output {}", i - inputs);
}

std::string disagreement(const tosaic_delegate_tensor_info& info, const tosaic_delegate_tensor& tensor) {
  // More dims than anybody has tensors of are none: nothing after the first of them is looked at.
  constexpr std::uint32_t most_dims = 64;
  if (tensor.rank > most_dims)
    return fmt::format("it is passed with {} dims, the payload takes {}", tensor.rank, text(info));
  if (tensor.rank > 0 && !tensor.dims) return "its dims are null";
  const auto count = elements(tensor.dims, tensor.rank);
  if (!count || !dtype_fits(info, tensor) || !sizes_fit(info, tensor))
    return fmt::format("{} is passed, the payload takes {}", text(tensor), text(info));
  const std::uint64_t bytes = times(*count, (is_wider(info, tensor.dtype) ? 2 : 1) * std::uint64_t{info.element_bytes});
  if (tensor.bytes != bytes) return fmt::format("{} bytes are passed, {} has {}", tensor.bytes, text(info), bytes);
  return {};
}

}  // namespace tosaic::contract
