// SPDX-License-Identifier: Apache-2.0
// Contents as the JSON object that `tosaic report --json` prints and the page reads; docs/report.md lists its members.
#pragma once
#include <string>

#include "report/contents.h"

namespace tosaic::reporting {

inline constexpr int schema = 1;  // of the object; another number: members mean something else

// `version`: tosaic's.
std::string contents_json(const Contents& contents, const std::string& version);

}  // namespace tosaic::reporting
