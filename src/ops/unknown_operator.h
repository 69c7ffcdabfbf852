// SPDX-License-Identifier: Apache-2.0
// Why there is no lowering of an operator: what its name says of it, by PyTorch's rules for names.
#pragma once
#include <string_view>

#include "tosaic/diagnostic.hpp"

namespace tosaic {

// Codes: aten.training (gradients), aten.resized (a size that is changed in place), aten.unknown-operator.
Diagnostic unknown_operator(Operator op);

}  // namespace tosaic
