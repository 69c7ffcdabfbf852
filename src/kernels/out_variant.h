// SPDX-License-Identifier: Apache-2.0
// ExecuTorch calls kernels by the names of PyTorch's out-variants ("aten::add", "out"). The name, and which arguments
// remain, follow from the functional schema ("aten.add.Tensor") by rule; where PyTorch departs from it, the operator's
// file says so (AtenOp::out_overloads). Both directions are computed.
#pragma once
#include <optional>
#include <string_view>

#include "formats/pte/pte_file.h"
#include "ops/op.h"

namespace tosaic::kernels {

// {"aten::add", "out"} for aten.add.Tensor. View operators go by their _copy variants: aten.permute.default gives
// {"aten::permute_copy", "out"}.
pte::OperatorName out_variant(const Schema& schema);
// The same for an operator without schema, by PyTorch's rule: {"acme::blur", "out"} for acme.blur.default. Nothing for
// what writes to its operand, or is no operator ("_operator.add", control flow).
std::optional<pte::OperatorName> out_variant_by_name(Operator op);
// Does the out-variant take this argument? Factory functions lose dtype, layout and device: `out` has them.
bool kept_by_out_variant(const Schema& schema, const SchemaArgument& argument);

// The functional schema behind a kernel call with `arguments` values (outputs and results included).
std::optional<FoundOp> functional(const pte::OperatorName& kernel, std::size_t arguments);
// Values behind the inputs in such a call: the outputs, then what the call returns.
std::size_t trailing_arguments(const Schema& schema);
// Returns one list of tensors, which takes one argument.
bool gives_list(const Schema& schema);

}  // namespace tosaic::kernels
