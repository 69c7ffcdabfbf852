// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .ptd file: the reader returns entries that can be written and read again, or a diagnostic.
#include "formats/ptd/ptd_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  auto entries = tosaic::ptd::read(tosaic::Bytes::copy(data, size), "fuzz.ptd");
  if (entries.ok() && !tosaic::ptd::read(tosaic::ptd::write(*entries).joined(), "again.ptd").ok()) __builtin_trap();
  if (!entries.ok() && entries.error().internal) __builtin_trap();
  return 0;
}
