// SPDX-License-Identifier: Apache-2.0
// Diagnostics across the delegate contract: into the caller's buffer, and out of it again.
#pragma once
#include "base/diagnostic.h"
#include "tosaic/delegate.h"

namespace tosaic::contract {

// Fills `error`, which may be null or of another version (then nothing is written); returns `status`.
int report(int status, const Diagnostic& why, tosaic_delegate_error* error);
// What a delegate said when it returned `status`, which is not OK.
Diagnostic diagnostic_of(int status, const tosaic_delegate_error& error);

}  // namespace tosaic::contract
