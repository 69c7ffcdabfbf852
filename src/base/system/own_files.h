// SPDX-License-Identifier: Apache-2.0
// Files of the program's own that nobody names, such as a cache: what stands there is not trusted, and never followed.
#pragma once
#include <string>

#include "base/bytes.h"

namespace tosaic {

// A copy: nothing that happens to the file afterwards is seen. Null: there is no ordinary file of that name and of at
// most so many bytes that can be read whole; a symbolic link is none.
Bytes copy_of_file(const std::string& path, std::size_t most_bytes);
// Whatever has that name is replaced as a whole, a symbolic link itself and never what it leads to; readers see the old
// file or the whole new one. false: it could not be, as the disk is full, say.
bool replace_file(const std::string& path, const Bytes& data);

}  // namespace tosaic
