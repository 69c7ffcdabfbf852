// SPDX-License-Identifier: Apache-2.0
// A compiled program as sources for a microcontroller (firmware/firmware.h).
#pragma once
#include <string>
#include <vector>

#include "api/artifact.h"
#include "firmware/firmware.h"

namespace tosaic {

inline constexpr const char* firmware_piece = "firmware";
// `name` begins every file. The self-test in it is the calibration's first sample, or else the program's example, and
// what this computer makes of it. Errors: firmware.target, those of firmware_files and of running the program.
Result<std::vector<firmware::SourceFile>> firmware_of(const Artifact::Impl& artifact, const std::string& name);
// "net" of "models/net.pt2", as C takes it.
std::string firmware_name(const std::string& model);

}  // namespace tosaic
