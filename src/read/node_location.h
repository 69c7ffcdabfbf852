// SPDX-License-Identifier: Apache-2.0
// Where a node of an exported program comes from, out of the metadata that torch.export keeps. Private to read/.
#pragma once
#include <string>

#include "ir/loc.h"
#include "read/json.h"

namespace tosaic {

LocRef read_location(const std::optional<Json>& metadata, std::string op, std::string name);

}  // namespace tosaic
