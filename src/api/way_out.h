// SPDX-License-Identifier: Apache-2.0
// The last hand on an error before a person reads it: it names a file, says in a sentence what is wrong, and what to
// do.
#pragma once
#include <string>

#include "base/diagnostic.h"

namespace tosaic {

// Readers know what is wrong at which byte; what that means for whoever gave them the file is the same for all errors
// of a family, and said here. `file` is what the command was given: the place of an error that has none of its own.
Diagnostic with_way_out(Diagnostic why, const std::string& file);

}  // namespace tosaic
