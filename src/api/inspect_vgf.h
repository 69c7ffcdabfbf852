// SPDX-License-Identifier: Apache-2.0
// What is in a VGF file: segments, tensors, constants, and the TOSA graph that its modules hold.
#pragma once
#include "api/inspected.h"
#include "base/bytes.h"

namespace tosaic {
Result<Inspected> inspect_vgf(const Bytes& bytes, const std::string& name);
}  // namespace tosaic
