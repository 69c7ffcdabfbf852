// SPDX-License-Identifier: Apache-2.0
// The manifest of a compilation as JSON: versions, options, hashes, estimates, the place of every node.
#pragma once
#include <string>

#include "api/compile.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {

std::string manifest(const CompileRequest& request, const Compiled& compiled, const CompileOutcome& outcome,
                     const Bytes& model);

}  // namespace tosaic
