// SPDX-License-Identifier: Apache-2.0
// What PyTorch computed for an operator's domain (values/*.npz), and the calls as TOSA graphs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "ops/domain.h"

namespace tosaic::domain {

struct Stored {
  std::vector<std::string> calls;        // the domain's texts when the values were made
  std::map<std::string, Tensor> arrays;  // "C.in.K", "C.out.K"
  std::vector<Tensor> of(std::size_t index, const char* which) const;
};
Result<Stored> load_values(std::string_view op);

// PyTorch's i64 and f64 as the i32 and f32 that delegates see.
Tensor narrowed(const Tensor& tensor);
Attr narrowed(const Attr& attr);
Tensor converted_to(const Tensor& tensor, DType dtype);

// How a call's integers are lowered: as delegates get them, or all as int64, as kernels outside may.
enum class Integers { narrowed, wide };
// A call lowered to TOSA: f32 tensors become `real` ones. `inputs` are the tensors for the graph's inputs.
struct Lowered {
  Graph graph;
  std::vector<Tensor> inputs;
};
// `op` is a full name ("aten.relu.default"), whose schema has the arguments of the case's.
// `pieces`: the ATen calls that a composite makes stay calls, as in the quantiser's expansion.
Result<Lowered> lower_case(const Case& parsed, const std::string& op, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& outputs, DType real, bool pieces = false,
                           Integers integers = Integers::narrowed);

// The case as a program of one call, with PyTorch's result types, and the program's inputs.
struct Call {
  Graph graph;  // one aten node
  std::vector<Tensor> inputs;
};
Call program_of(const Case& parsed, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);

// The first element that differs; empty: none does. Two NaNs are equal. `want` and `got` may differ in dtype
// among floats: both are compared as `got`'s dtype rounds them.
std::string difference(const Tensor& want, const Tensor& got, double rtol, double atol);

}  // namespace tosaic::domain
