// SPDX-License-Identifier: Apache-2.0
// Calls of kernels: the arguments of a node, as an out-variant's schema wants them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/schema.h"
#include "pack/plan_values.h"

namespace tosaic::packing {

class KernelCalls : protected PlanValues {
 protected:
  using PlanValues::PlanValues;

  Status kernel_call(const Node& node);

 private:
  // An argument of an operator that tosaic does not know: the tensors that the program gives for it, if it gives any.
  struct Written {
    std::string name;
    bool tensors = false, list = false;
    std::vector<ValueId> values;
  };
  static Result<std::vector<Written>> arguments_as_written(const Node& node);

  Status number_call(const Node& node);
  Status unknown_kernel_call(const Node& node);
  Status call_with_results(const Node& node, const Schema& schema, pte::OperatorName kernel, std::vector<Index> args);
  Result<std::vector<Index>> results_of(const Node& node);
  Result<Index> written_tensors(const Written& written);
  Result<Index> single_tensor(const Node& node, const SchemaArgument& a, ValueId v);
  std::optional<Index> computed(const SymbolicArgument& a);
  std::optional<Index> computed_argument(const Attr& value);
  Result<Index> argument(const Node& node, const SchemaArgument& a);
  Result<Index> list_argument(const SchemaArgument& a, const std::string& type, const Attr& value, Diagnostic wrong);
};

}  // namespace tosaic::packing
