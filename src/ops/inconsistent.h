// SPDX-License-Identifier: Apache-2.0
// The code of the errors that say: the program contradicts itself. Its file was damaged or changed by hand.
#pragma once
#include <string_view>

namespace tosaic {
inline constexpr std::string_view inconsistent_model = "model.inconsistent";
}  // namespace tosaic
