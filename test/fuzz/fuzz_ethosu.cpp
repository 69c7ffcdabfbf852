// SPDX-License-Identifier: Apache-2.0
// Command streams as input: opening, listing and running must end with a result or an error. The memory that the
// stream works on is lent in exact sizes, so that a byte outside of it is seen.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ethosu/machine.h"
#include "formats/vela/vela.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tosaic;
  using namespace tosaic::ethosu;
  (void)vela::read(Bytes::copy(data, size));
  if (size < 1024) return 0;
  // The first kilobyte is the constants' beginning, so that weights change as well.
  std::vector<std::byte> constants(8192, std::byte{0x5a});
  std::memcpy(constants.data(), data, 1024);
  Options options;
  options.threads = 1;
  options.most_work = 3e6;
  auto machine = Machine::open(Bytes::copy(data + 1024, size - 1024), Bytes::of(constants), options);
  if (!machine.ok()) return 0;
  (*machine)->disassemble(true, [](const std::string&) {});
  std::vector<std::byte> scratch(20000, std::byte{0x33}), fast(5000, std::byte{0x44});
  Regions regions{};
  regions[1] = {scratch.data(), scratch.size(), true};
  regions[2] = {fast.data(), fast.size(), true};
  (void)(*machine)->run(regions, [](const std::string&) {});
  return 0;
}
