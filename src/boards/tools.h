// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"

namespace tosaic::boards {

// Of the packages that are installed for boards. Error: device.tool, with the command that installs them.
Result<std::string> find_tool(const std::string& program);

}  // namespace tosaic::boards
