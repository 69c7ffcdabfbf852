// SPDX-License-Identifier: Apache-2.0
// What is in a VGF file: segments, tensors, constants, and the TOSA graph that its modules hold.
#pragma once
#include "base/bytes.h"
#include "tosaic/files.hpp"

namespace tosaic {
Result<Inspection> inspect_vgf(const Bytes& bytes, const std::string& name);
}  // namespace tosaic
