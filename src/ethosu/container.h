// SPDX-License-Identifier: Apache-2.0
// The container around a command stream (COP1 or COP2): which product and configuration it was made for, and where
// the commands start.
#pragma once
#include <string>

#include "base/bytes.h"
#include "ethosu/isa.h"

namespace tosaic::ethosu {

struct Config {
  Product product = Product::u55;
  int macs = 0;
  int cores = 1;     // weight and scale streams of U55 and U65
  int shram_kb = 0;  // U55 and U65
  std::uint32_t config_word = 0, id_word = 0;
  bool u85() const { return product == Product::u85; }
  int weight_streams() const;  // how many streams one operation's weights are divided into
  std::string name() const;    // "ethos-u55-128"
};

struct Stream {
  Config config;
  std::vector<std::uint32_t> words;
  std::size_t first_byte = 0;  // of words[0] in the container: diagnostics count from the container's start
  int container_version = 1;   // 1: COP1, 2: COP2
};

// The configuration that the two words name. Error: ethosu.unknown-product.
Result<Config> parse_config(std::uint32_t config_word, std::uint32_t id_word);

// Errors: ethosu.container (not one, cut short, lying lengths), ethosu.unknown-product, ethosu.driver-action.
Result<Stream> parse_container(const Bytes& bytes);

}  // namespace tosaic::ethosu
