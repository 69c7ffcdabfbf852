// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .pte file: the reader returns a program that can be written again, or a diagnostic.
#include "formats/pte/pte_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  auto program = tosaic::pte::read(tosaic::Bytes::copy(data, size), "fuzz.pte");
  if (program.ok() && !tosaic::pte::write(*program).ok()) __builtin_trap();
  if (!program.ok() && program.error().internal) __builtin_trap();
  return 0;
}
