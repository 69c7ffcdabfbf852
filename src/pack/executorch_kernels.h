// SPDX-License-Identifier: Apache-2.0
// What ExecuTorch's runtime has kernels for, and how a call of anything else is said in calls of those.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/graph.h"
#include "ops/schema.h"

namespace tosaic::packing {

// Is the kernel among those that ExecuTorch registers (its portable and its quantised library)?
bool executorch_has(const pte::OperatorName& kernel);

// How ExecuTorch calls an operator of ATen.
struct ExecutorchCall {
  pte::OperatorName kernel;
  Schema schema;
};
// Nothing when it has no kernel of the operator, which tosaic need not know.
std::optional<ExecutorchCall> executorch_call(Operator op);

// The calls outside the delegates as calls of kernels that ExecuTorch has: core forms, else the operator's own
// lowering, whose TOSA operators have kernels of their own. What has neither stays as it is and is warned about: it
// runs in tosaic only. Types are real here; quantised tensors have been converted before.
Status use_executorch_kernels(Graph& graph, const std::function<void(Diagnostic)>& sink);

}  // namespace tosaic::packing
