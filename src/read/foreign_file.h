// SPDX-License-Identifier: Apache-2.0
// Files that are given for a .pt2 and hold something else, told by what they begin with: weights without a program,
// other frameworks' programs, what was compiled already.
#pragma once
#include <optional>
#include <string>

#include "base/bytes.h"
#include "formats/zip/zip.h"

namespace tosaic {

// Error: pt2.foreign. None: nothing that is known by name.
std::optional<Diagnostic> foreign_file(const Bytes& file, const std::string& name);
// A zip archive without an exported program.
Diagnostic foreign_archive(const zip::Archive& archive, const std::string& name);

}  // namespace tosaic
