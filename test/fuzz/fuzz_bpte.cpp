// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .bpte file: the reader returns cases that can be written and read again, or a diagnostic.
#include "formats/bpte/bpte_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  auto file = tosaic::bpte::read(tosaic::Bytes::copy(data, size), "fuzz.bpte");
  if (!file.ok()) {
    if (file.error().internal) __builtin_trap();
    return 0;
  }
  const auto written = tosaic::bpte::write(*file);
  if (!written.ok() || !tosaic::bpte::read(*written, "again.bpte").ok()) __builtin_trap();
  return 0;
}
