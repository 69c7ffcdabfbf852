// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <fmt/format.h>
#include <cctype>
#include <charconv>
#include <string_view>

namespace tosaic {

std::optional<std::uint64_t> parsed_size(const std::string& text, int kilo) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [at, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || !(number > 0)) return std::nullopt;
  const std::size_t letter =
      at == end ? std::string_view::npos
                : std::string_view("KMGT").find(static_cast<char>(std::toupper(static_cast<unsigned char>(*at))));
  if (at != end && letter == std::string_view::npos) return std::nullopt;
  if (at != end) ++at;
  const bool binary = at != end && *at == 'i';
  if (binary) ++at;
  if (at != end && *at == 'B') ++at;
  for (std::size_t i = 0; letter != std::string_view::npos && i <= letter; ++i) number *= binary ? 1024 : kilo;
  if (at != end || number >= 1e18 || number < 1) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::string kib(double bytes) { return fmt::format("{:.1f} KiB", bytes / 1024); }

}  // namespace tosaic
