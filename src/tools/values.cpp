// SPDX-License-Identifier: Apache-2.0
#include "tools/values.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/size_text.h"
#include "base/spelling.h"
#include "tosaic/tosaic.hpp"

namespace tosaic::tools {
namespace {

std::string not_this(const std::string& wanted, const std::string& given, const std::vector<std::string>& known) {
  std::string text = fmt::format("takes {}, not '{}'", wanted, given);
  const auto near = nearest(given, known);
  return near.empty() || near.size() == known.size() ? text
                                                     : text + fmt::format("; did you mean {}?", alternatives(near));
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string shown = "{" + CLI::detail::join(words, ",") + "}";
  return {[words](std::string& given) {
            if (std::count(words.begin(), words.end(), given)) return std::string();
            return not_this(alternatives(words), given, words);
          },
          shown};
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return {[least, most](std::string& given) {
            std::int64_t number = 0;
            const char* end = given.data() + given.size();
            const auto [at, problem] = std::from_chars(given.data(), end, number);
            if (problem == std::errc() && at == end && number >= least && number <= most) return std::string();
            return fmt::format("takes a whole number from {} to {}, not '{}'", least, most, given);
          },
          fmt::format("{}..{}", least, most)};
}

CLI::Validator known_target() {
  return {[](std::string& given) {
            std::vector<std::string> names;
            for (const TargetInfo& t : targets()) names.push_back(t.name);
            if (std::count(names.begin(), names.end(), given)) return std::string();
            const auto near = nearest(given, names);
            return fmt::format("there is no target '{}'; {}", given,
                               near.empty() || near.size() > 4
                                   ? "the targets are " + CLI::detail::join(names, ", ") +
                                         "; a PC's processor runs tosa-fp, and tosa-int in integers"
                                   : fmt::format("did you mean {}?", alternatives(near)));
          },
          ""};
}

CLI::Validator pair_of(std::vector<std::string> kinds) {
  return {
      [kinds](std::string& given) {
        const auto equals = given.find('=');
        const std::string kind = given.substr(0, equals);
        std::vector<std::string> forms;
        for (const auto& k : kinds) forms.push_back(k + "=PATH");
        if (equals == std::string::npos || equals + 1 == given.size() || !std::count(kinds.begin(), kinds.end(), kind))
          return fmt::format("takes {}, not '{}'", alternatives(forms), given);
        return std::string();
      },
      ""};
}

std::map<std::string, std::string> pairs(const std::vector<std::string>& given) {
  std::map<std::string, std::string> found;
  for (const std::string& pair : given) {
    const auto equals = pair.find('=');
    found[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return found;
}

CLI::Validator memory_size() {
  return {[](std::string& given) {
            return parsed_size(given) ? std::string()
                                      : fmt::format("takes a number of bytes such as 500M or 16G, not '{}'", given);
          },
          ""};
}

CLI::Validator board_size() {
  return {[](std::string& given) {
            return parsed_board_size(given) ? std::string()
                                            : fmt::format("takes a size such as 512K or 2M, not '{}'", given);
          },
          ""};
}

std::uint64_t bytes_of(const std::string& size) { return parsed_size(size).value_or(0); }

}  // namespace tosaic::tools
