// SPDX-License-Identifier: Apache-2.0
// The last step of an error before it is shown: it names a file, and says what to do.
#pragma once
#include <string>

#include "base/diagnostic.h"

namespace tosaic {

// Readers know what is wrong at which byte; what that means for the user, and the hint, are those of the error's code
// (errors/families.h) where the error has none of its own. `file` is what the command was given: the location of an
// error that has none.
Diagnostic with_hint(Diagnostic why, const std::string& file);

}  // namespace tosaic
