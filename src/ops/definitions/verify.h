// SPDX-License-Identifier: Apache-2.0
// A node that is being built: what verify_node asks of it before its results have types.
#pragma once
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {

// Number, attributes, ranks and types of the operands, the dtypes of those results that the node has, then the
// operator's own ERROR_IFs. What holds to these, `infer` may be asked about.
Check verify_operands(const View& view, const Spec& spec);

}  // namespace tosaic::tosa
