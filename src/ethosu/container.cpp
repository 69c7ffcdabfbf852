// SPDX-License-Identifier: Apache-2.0
#include "ethosu/container.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace tosaic::ethosu {
namespace {

constexpr std::uint32_t cop1 = 0x31504f43, cop2 = 0x32504f43;  // "COP1", "COP2", little-endian
constexpr std::uint32_t action_config = 1, action_stream = 2, action_read_apb = 3, action_dump_shram = 4,
                        action_nop = 5;

Diagnostic bad(std::size_t byte, std::string why) {
  return error("ethosu.container", fmt::format("command stream container, byte {}: {}", byte, why));
}

std::uint32_t bits(std::uint32_t word, int high, int low) {
  return static_cast<std::uint32_t>(word >> low & ((std::uint64_t{1} << (high - low + 1)) - 1));
}

Result<Stream> parse_cop1(const Bytes& bytes, std::vector<std::uint32_t> words) {
  Stream stream;
  bool configured = false;
  for (std::size_t i = 1; i < words.size();) {
    const std::uint32_t tag = words[i], id = bits(tag, 7, 0), reserved = bits(tag, 15, 8),
                        parameter = bits(tag, 31, 16);
    if (id == action_nop) {
      ++i;
    } else if (id == action_config) {
      if (words.size() - i < 3) return bad(4 * i, "the configuration is cut short");
      TOSAIC_TRY(stream.config, parse_config(words[i + 1], words[i + 2]));
      configured = true;
      i += 3;
    } else if (id == action_stream) {
      if (!configured) return bad(4 * i, "commands without a configuration before them");
      const std::size_t length = std::size_t{reserved} << 16 | parameter;
      if (length > words.size() - i - 1)
        return bad(4 * i, fmt::format("{} command words stated, {} are there", length, words.size() - i - 1));
      if (4 * (i + 1) % 16 != 0) return bad(4 * i, "the commands are not at a multiple of 16 bytes");
      for (std::size_t rest = i + 1 + length; rest < words.size(); ++rest)
        if (words[rest] != 0 && bits(words[rest], 7, 0) != action_nop)
          return bad(4 * rest, "driver actions after the command stream are not supported");
      stream.first_byte = 4 * (i + 1);
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(i + 1);
      stream.words.assign(first, first + static_cast<std::ptrdiff_t>(length));
      return stream;
    } else if (id == action_read_apb || id == action_dump_shram) {
      return error("ethosu.driver-action",
                   fmt::format("byte {}: driver action {} ({}), which drivers refuse too", 4 * i, id,
                               id == action_read_apb ? "read APB register" : "dump SHRAM"));
    } else {
      return bad(4 * i, fmt::format("unknown driver action {}", id));
    }
  }
  return bad(bytes.size(), "no command stream inside");
}

Result<Stream> parse_cop2(const Bytes& bytes, const std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t veum = 0x4d554556;
  Stream stream;
  stream.container_version = 2;
  if (words.size() < 4) return bad(4, "the COP2 header is cut short");
  if (words[1] != 1)
    return bad(4, fmt::format("COP2 version {}.{}, only 1.0 is known", words[1] & 0xffff, words[1] >> 16));
  const std::uint64_t total = words[2] | std::uint64_t{words[3]} << 32;
  if (total > bytes.size() - 16) return bad(8, fmt::format("{} bytes stated, {} are there", total, bytes.size() - 16));
  if (words.size() < 14) return bad(16, "the COP2 metadata is cut short");
  if (words[4] != 1) return bad(16, fmt::format("unknown COP2 entry type {}", words[4]));
  const std::uint64_t entry = words[5];
  if (words[7] != veum || words[8] != 1) return bad(28, "the metadata is not VEUM version 1.0");
  TOSAIC_TRY(stream.config, parse_config(words[10], words[11]));
  // The entry's length counts what follows its tag: metadata, padding and commands; the commands start at the next
  // multiple of 16 after the metadata (20 bytes of fields after 16 bytes of header).
  const std::size_t metadata_end = 24 + 16 + 20;
  const std::size_t first = (metadata_end + 15) / 16 * 16;
  const std::size_t end = static_cast<std::size_t>(std::min<std::uint64_t>(24 + entry, 4 * words.size()));
  if (24 + entry > 16 + total || end < first) return bad(20, fmt::format("an entry of {} bytes in {}", entry, total));
  stream.first_byte = first;
  stream.words.assign(words.begin() + static_cast<std::ptrdiff_t>(first / 4),
                      words.begin() + static_cast<std::ptrdiff_t>(end / 4));
  return stream;
}

}  // namespace

int Config::weight_streams() const {
  if (!u85()) return cores;
  return macs <= 256 ? 1 : macs == 512 ? 2 : 4;
}

std::string Config::name() const {
  const char* const product_name = product == Product::u55 ? "u55" : product == Product::u65 ? "u65" : "u85";
  return std::string("ethos-") + product_name + "-" + std::to_string(macs);
}

Result<Config> parse_config(std::uint32_t config_word, std::uint32_t id_word) {
  Config config;
  config.config_word = config_word;
  config.id_word = id_word;
  const std::uint32_t product = bits(config_word, 31, 28);
  if (product > 2)
    return error("ethosu.unknown-product",
                 fmt::format("product number {} in the config word {:#010x}", product, config_word))
        .hint("0 is Ethos-U55, 1 Ethos-U65, 2 Ethos-U85");
  config.product = static_cast<Product>(product);
  const std::uint32_t macs_log2 = bits(config_word, 3, 0);
  const std::uint32_t least = product == 0 ? 5 : product == 1 ? 8 : 7, most = product == 0 ? 8 : product == 1 ? 9 : 11;
  if (macs_log2 < least || macs_log2 > most)
    return error("ethosu.unknown-product",
                 fmt::format("{} MACs in the config word {:#010x}, {} has {} to {}", 1u << macs_log2, config_word,
                             name_of(config.product), 1u << least, 1u << most));
  config.macs = 1 << macs_log2;
  if (config.product == Product::u65 && config.macs == 512) config.cores = 2;
  // The word counts all cores; tables sit at the end of each core's own.
  if (!config.u85()) config.shram_kb = static_cast<int>(bits(config_word, 15, 8)) / config.cores;
  return config;
}

Result<Stream> parse_container(const Bytes& bytes) {
  if (bytes.size() < 8) return bad(bytes.size(), "too short");
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  if (words[0] == cop1) return parse_cop1(bytes, std::move(words));
  if (words[0] == cop2) return parse_cop2(bytes, words);
  return bad(0, fmt::format("starts with {:#010x}, neither COP1 nor COP2", words[0]));
}

}  // namespace tosaic::ethosu
