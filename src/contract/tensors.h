// SPDX-License-Identifier: Apache-2.0
// Tensors in the words of the delegate contract: what a payload takes, and whether a caller's tensor is that.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/type.h"
#include "tosaic/delegate.h"

namespace tosaic::contract {

std::uint32_t contract_dtype(DType type);
// nullopt: OPAQUE, or no dtype of the contract.
std::optional<DType> dtype_of(std::uint32_t dtype);

// A tosaic_delegate_tensor_info that owns what it points to.
struct TensorInfo {
  std::string name;
  std::uint32_t dtype = TOSAIC_DTYPE_OPAQUE, element_bytes = 1, flags = 0;
  std::vector<std::int64_t> least, most;

  static TensorInfo of(const TensorType& type, std::string name, std::uint32_t flags = 0);
  // Valid as long as this one is neither changed nor moved.
  tosaic_delegate_tensor_info view() const;
};

// `dims` stay the type's.
tosaic_delegate_tensor tensor_of(const TensorType& type, void* data);

// A tensor of twice the width, which is converted (TOSAIC_TENSOR_WIDER).
bool is_wider(const tosaic_delegate_tensor_info& info, std::uint32_t dtype);
// Why `tensor` is not what `info` describes: two values that disagree. Empty: it is.
std::string disagreement(const tosaic_delegate_tensor_info& info, const tosaic_delegate_tensor& tensor);
// "input 2", "output 0": what a message calls the i-th tensor of a call, inputs first.
std::string place_in_call(std::size_t i, std::size_t inputs);

}  // namespace tosaic::contract
