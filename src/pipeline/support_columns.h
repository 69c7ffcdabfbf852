// SPDX-License-Identifier: Apache-2.0
// The columns of the support matrix: every kind of target in every scheme that it may be asked for. Targets that differ
// in size only (ethos-u55-32, ethos-u55-128) are one.
#pragma once
#include <vector>

#include "pipeline/support_matrix.h"

namespace tosaic {

std::vector<SupportColumn> support_columns();

}  // namespace tosaic
