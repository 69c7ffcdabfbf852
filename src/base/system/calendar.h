// SPDX-License-Identifier: Apache-2.0
// The time of day, for what is written to be read elsewhere. What is measured has SteadyClock.
#pragma once
#include <string>

namespace tosaic {

// ISO 8601, of UTC: "2026-03-01T12:00:00.000001Z".
std::string time_of_day();

}  // namespace tosaic
