// SPDX-License-Identifier: Apache-2.0
// Parts of verify_node: what it asks of a node that is being built, before its results have types; and what of any row.
#pragma once
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {

// Number, attributes, ranks and types of the operands, the dtypes of those results that the node has, then the
// operator's own ERROR_IFs. What holds to these, `infer` may be asked about.
Check verify_operands(const View& view, const Spec& spec);
// verify_node by the row of an operator that may be none of TOSA's (extension.h).
Check verify_as(const Op& op, const View& view, const Spec& spec);

}  // namespace tosaic::tosa
