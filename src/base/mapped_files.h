// SPDX-License-Identifier: Apache-2.0
// The files that map_file has mapped, and what to do when one of them shrinks while it is read: the system has no bytes
// for the pages that are gone, and sends SIGBUS.
#pragma once
#include <cstddef>
#include <string>

#include "base/diagnostic.h"

namespace tosaic {

// From now on such pages read as zeros, and changed_file() tells. For programs, not for libraries: it takes the
// process's handler of SIGBUS.
void mind_shrinking_files();
// The first mapped file found to have shrunk; empty: none has. What was computed since is worth nothing.
std::string changed_file();
// The error that says so: file.changed.
Diagnostic file_changed(const std::string& path);

// For map_file.
void remember_mapping(const void* begin, std::size_t size, const std::string& path);
void forget_mapping(const void* begin);

}  // namespace tosaic
