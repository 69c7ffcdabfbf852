// SPDX-License-Identifier: Apache-2.0
// Files as a system has them, for output.h and temporaries.h. Its error numbers are its own: error_text
// (child_process.h) has words for them.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/rope.h"

namespace tosaic {

Diagnostic unwritable(const std::string& path, const std::string& why);
// What the system said when it would not take `bytes` at `path`.
Diagnostic refused(const std::string& path, std::size_t bytes, int why);
// Where a path leads when its last part is a symbolic link, whether or not something is there.
std::optional<std::string> behind_links(const std::string& path);
std::string folder_of(const std::string& path);
// The file that has this name now, kept from being another's number when another process replaces it.
std::shared_ptr<const void> held(const std::string& path);
// Over what stands there. Room is made sure of first, and taken back if there is none. 0, or the error number.
int overwrite(const std::string& path, const Rope& data);
// `from` takes the place of `to`, whether or not something stands there. 0, or the error number.
int take_place(const std::string& from, const std::string& to);
// An empty folder of this process's own with a new name, in `parent` or where the system wants such things. "":
// `problem` says why not.
std::string new_folder(const std::string& parent, std::string& problem);

}  // namespace tosaic
