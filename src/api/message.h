// SPDX-License-Identifier: Apache-2.0
// Diagnostics as the public API shows them.
#pragma once
#include "base/diagnostic.h"
#include "read/pt2.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {

Message to_message(const Diagnostic& diagnostic);
Sink to_messages(const MessageSink& sink);

}  // namespace tosaic
