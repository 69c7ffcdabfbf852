// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace tosaic::text {

std::string quoted(std::string_view text);  // with \" \\ \n \r \t \xNN

}  // namespace tosaic::text
