// SPDX-License-Identifier: Apache-2.0
// What POSIX leaves open, and each of its systems has in its own way: base/system/linux, base/system/macos.
#pragma once
#include <sys/types.h>
#include <cstddef>

namespace tosaic {

// Makes sure that a file has room for so many bytes, where the file system can tell before they are written. 0, or the
// error number that says why not.
int reserve_room(int file, std::size_t bytes);
// A descriptor of what has this name, though it may be no file that can be read. Below 0: there is none.
int open_name(const char* path);
// Two connected sockets that no child inherits; sending where nobody listens is an error and no signal.
bool make_channel(int (&ends)[2]);
ssize_t send_quietly(int channel, const void* data, std::size_t size);
}  // namespace tosaic
