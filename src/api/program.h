// SPDX-License-Identifier: Apache-2.0
// What a Program holds, and the boundary's types made of ours.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/fixed_value.h"
#include "ir/tensor.h"
#include "pipeline/supports.h"
#include "read/pt2.h"
#include "tosaic/program.hpp"

namespace tosaic {

struct Program::Impl {
  std::string name;
  Bytes file;
  ExportedProgram exported;
  std::vector<MethodInfo> methods;
  double read_seconds = 0;
  std::vector<Program> parts;             // that this one is made of
  std::vector<std::string> input_layout;  // as it was asked for
  // What the answers for several targets have in common; made when first asked.
  mutable std::mutex asking;
  mutable std::map<std::string, std::unique_ptr<Supports>> supports;  // by the inputs' sizes
};

// Program::read without the guard at the boundary.
Result<Program> read_program(Bytes file, const std::string& name, const Sink& messages);

TensorInfo tensor_info(std::string name, const TensorType& type);
Literal literal_of(const Attr& value);
// Tensors in order, `others` at their positions among them.
std::vector<Argument> arguments_of(std::vector<TensorInfo> tensors, const FixedValues& others);
OwnedTensor owned(const Tensor& tensor);
// The caller's: of a dtype that there is, with as many bytes as its sizes say. Error: tensor.wrong, which names it
// `what`.
Status check_owned(const OwnedTensor& tensor, const std::string& what);
// A lent tensor as one of ours, of type `wanted`: dense memory is only looked at, other is copied. Errors name the
// tensor `what`: run.input-type, run.null.
Result<Tensor> borrowed(const InputTensor& tensor, const TensorType& wanted, const std::string& what);

}  // namespace tosaic
