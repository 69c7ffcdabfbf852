// SPDX-License-Identifier: Apache-2.0
// Any bytes at all: the .pt2 reader gives a graph that verifies, or a diagnostic.
#include <cstdlib>
#include <string>

#include "read/pt2.h"

// What is changed is to be read, not refused for its checksum: none is stated (src/formats/zip/zip.h).
static std::string without_checksums(std::string file) {
  for (std::size_t at = 0; (at = file.find("PK\x01\x02", at)) != file.npos && at + 20 <= file.size(); at += 4)
    file.replace(at + 16, 4, 4, '\0');
  return file;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = without_checksums({reinterpret_cast<const char*>(data), size});
  auto program = tosaic::read_pt2(tosaic::Bytes::copy(file.data(), file.size()), "fuzz.pt2", [](tosaic::Diagnostic) {});
  if (program.ok())
    for (const auto& method : program->methods)
      if (!verify(method.graph).ok()) std::abort();
  return 0;
}
