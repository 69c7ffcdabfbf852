// SPDX-License-Identifier: Apache-2.0
// JSON that other commands wrote, and that a report takes up.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tosaic::reporting {

// The text on one line, when it is an object whose "command" is one of these and that has `member`. `file` and `how`
// are for messages: "run --profile --json". Error: report.json.
Result<std::string> checked_json(std::string_view json, const std::vector<std::string_view>& commands,
                                 std::string_view member, const std::string& file, const std::string& how);

// Is the manifest, in the file `named`, that of this .pte, in the file `path`? One that wrote no program is of any.
// Error: report.other-manifest.
Status check_manifest_of(std::string_view manifest, const std::string& named, const Bytes& program,
                         const std::string& path);

}  // namespace tosaic::reporting
