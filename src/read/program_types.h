// SPDX-License-Identifier: Apache-2.0
// Tensor types of an exported program: dtypes, sizes, and the symbols that some sizes are made of. Private to read/.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/type.h"
#include "read/json.h"
#include "read/pt2.h"
#include "read/symbolic.h"

namespace tosaic {

class ProgramTypes {
 public:
  // `range_constraints` of the program: the bounds of its symbols.
  explicit ProgramTypes(std::optional<Json> range_constraints);

  // A TensorMeta. `what` names the tensor in errors. Throws pt2.unsupported-dtype, pt2.unsupported-layout,
  // pt2.bad-shape.
  TensorType tensor_type(const Json& meta, const std::string& what) const;
  // Whether a TensorMeta is of complex64, which are pairs inside a program; and as these, f32 with a last dim of two.
  static bool is_complex(const Json& meta);
  TensorType pairs_type(const Json& meta, const std::string& what) const;
  // A SymInt: a number, or an expression over symbols.
  Dim size(const Json& sym_int) const;
  // Sizes and the like, which must all be plain numbers: those of stored tensors.
  static std::vector<std::int64_t> plain_integers(const Json& list, const std::string& what);
  static std::int64_t plain_integer(const Json& sym_int, const std::string& what);
  static DType dtype(const Json& number, const std::string& what);

 private:
  TensorType strided_type(DType type, const Json& meta, const std::string& what) const;
  Bounds bounds_of(std::string_view symbol) const;
  std::unordered_map<std::string, Bounds> symbols_;
};

}  // namespace tosaic
