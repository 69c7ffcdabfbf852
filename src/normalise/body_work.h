// SPDX-License-Identifier: Apache-2.0
// Whether both branches of a cond may as well be computed, and one result chosen.
#pragma once
#include <optional>
#include <string>

#include "ir/graph.h"

namespace tosaic {

// Why a branch should run only when it is taken: it computes much, or looks up what may not be there otherwise, or
// nobody can tell. Nothing where it is as well computed always.
std::optional<std::string> not_worth_computing_both(const Graph& branch);

}  // namespace tosaic
