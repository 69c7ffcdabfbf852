// SPDX-License-Identifier: Apache-2.0
// What Vela writes with --output-format=raw: NAME_vela.npz, a command stream for the NPU with its constants and the
// offsets of inputs and outputs.
#pragma once
#include <string>

#include "formats/vela/vela.h"

namespace tosaic::vela {

// Errors: vela.raw-output (names the member that is missing or wrong), those of zip and npy.
Result<Payload> read_raw_output(const Bytes& npz, const std::string& name);

}  // namespace tosaic::vela
