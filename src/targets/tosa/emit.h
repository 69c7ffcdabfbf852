// SPDX-License-Identifier: Apache-2.0
// A TOSA flatbuffer as payload, for all targets whose delegates hold one.
#pragma once
#include "targets/target.h"

namespace tosaic {

// Its large constants are outside where `options` say so (external), or where they have to be.
Result<Emitted> emit_tosa(const Graph& graph, const Target& target, const Options& options, const Destination& to);
// The option `external` of such targets.
OptionInfo external_weights();

}  // namespace tosaic
