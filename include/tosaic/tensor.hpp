// SPDX-License-Identifier: Apache-2.0
// Tensors at the boundary of the library: described, lent by the caller, and given to it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tosaic/bytes.hpp"
#include "tosaic/dtype.hpp"

namespace tosaic {

// A dimension: a number, or, in a program with dynamic shapes, a size that is known when it runs.
struct Dimension {
  std::int64_t size = 0;    // of a dynamic one the upper bound; -1: it has none
  std::int64_t lowest = 0;  // equal to `size`: a plain number
  std::string expression;   // "s77", "2*s77 + 1"; empty: a plain number
  bool dynamic() const { return !expression.empty(); }
};

struct TensorInfo {
  std::string name;  // empty where the file has none
  DType dtype = DType::f32;
  std::vector<Dimension> dims;  // outermost first
  // Of integer tensors that stand for real numbers: real = scale[c] * (q - zero_point[c]), c along `axis`. Empty
  // otherwise.
  std::vector<double> scale;
  std::vector<std::int64_t> zero_point;
  int axis = -1;  // -1: one scale for all

  std::vector<std::int64_t> sizes() const {  // upper bounds
    std::vector<std::int64_t> list;
    for (const Dimension& d : dims) list.push_back(d.size);
    return list;
  }
  std::size_t bytes() const {  // dense, at the upper bounds
    std::size_t elements = 1;
    for (const Dimension& d : dims) elements *= static_cast<std::size_t>(d.size);
    return elements * storage_size(dtype);
  }
};
TOSAIC_API std::string to_string(const TensorInfo& info);  // "1x8x8x3xi8"

// What a program takes or gives that is no tensor; monostate is Python's None.
using Literal = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                             std::vector<double>>;

// One input or output of a program, in the order of PyTorch's flattened pytree.
struct Argument {
  std::string name;
  std::optional<TensorInfo> tensor;  // none: `literal`, fixed when the program was exported
  Literal literal;
};

// A tensor of the caller's, read during the call only. Strides are in elements and may be 0 or negative; empty means
// dense and row-major. `data` may be null where there are no elements.
struct InputTensor {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes, strides = {};
  // Of the memory from `data` on, where the caller says: a tensor that needs more is refused.
  std::size_t bytes = not_said;
  static constexpr std::size_t not_said = ~std::size_t{0};
};
// Memory of the caller's that a result is written to; it may overlap no input and no other output.
struct OutputTensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes, strides = {};
};
// A tensor of the library's: dense, row-major, alive as long as `data` or a copy of it.
struct OwnedTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  Bytes data;
  InputTensor view() const { return {data.data(), dtype, sizes, {}, data.size()}; }
};
// One result of a run.
struct Output {
  std::optional<OwnedTensor> tensor;  // none: `literal`
  Literal literal;
};

}  // namespace tosaic
