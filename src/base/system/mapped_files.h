// SPDX-License-Identifier: Apache-2.0
// The files that map_file has mapped, what to do when one of them shrinks while it is read (the system has no bytes for
// the pages that are gone, and sends SIGBUS), and how to give their memory back.
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

// The pages of a mapped file that lie within these bytes leave the process's memory; who reads them again gets them
// from the file. For what has been read in full and copied to another layout. Any other memory stays as it is.
void release_pages(const void* data, std::size_t size);

}  // namespace tosaic
