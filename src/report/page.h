// SPDX-License-Identifier: Apache-2.0
// The page around the data: one HTML file with its styles, its scripts and the libraries that they use, which asks
// nobody for anything. It lies in the tool, compressed (cmake/report_page.cmake).
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace tosaic::reporting {

// `json`: what contents_json gives. `title` is text.
Result<std::string> page_of(std::string_view json, std::string_view title);

}  // namespace tosaic::reporting
