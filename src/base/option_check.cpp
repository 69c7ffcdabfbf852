// SPDX-License-Identifier: Apache-2.0
#include "base/option_check.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

#include "base/size_text.h"
#include "base/spelling.h"

namespace tosaic {
namespace {

Diagnostic bad_value(const OptionInfo& option, const std::string& takes, const std::string& value) {
  return error("option.value", fmt::format("option '{}' takes {}, not '{}'", option.name, takes, value));
}

bool is_one_of(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool single(const OptionInfo& option) {
  return option.kind != OptionInfo::Kind::list && option.kind != OptionInfo::Kind::pairs;
}

}  // namespace

const OptionInfo* find_option(std::span<const OptionInfo> known, std::string_view name) {
  for (const OptionInfo& option : known)
    if (option.name == name || (!option.alias.empty() && option.alias == name)) return &option;
  return nullptr;
}

Status check_option(const OptionInfo& option, const std::string& value) {
  using Kind = OptionInfo::Kind;
  switch (option.kind) {
    case Kind::flag:
      if (value != "true" && value != "false" && !value.empty()) return bad_value(option, "true or false", value);
      return {};
    case Kind::number: {
      std::int64_t number = 0;
      const auto end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, number);
      if (read.ec != std::errc() || read.ptr != end || number < option.lowest || number > option.highest)
        return bad_value(option, fmt::format("a whole number from {} to {}", option.lowest, option.highest), value);
      return {};
    }
    case Kind::size:
      if (!parsed_board_size(value)) return bad_value(option, "a size such as 512K or 2M", value);
      return {};
    case Kind::pairs: {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos || equals + 1 == value.size() ||
          !is_one_of(option.allowed, value.substr(0, equals)))
        return bad_value(option, fmt::format("KIND=PATH with the kind {}", alternatives(option.allowed)), value);
      return {};
    }
    case Kind::text:
    case Kind::file:
    case Kind::list:
      if (!option.allowed.empty() && !is_one_of(option.allowed, value))
        return bad_value(option, alternatives(option.allowed), value);
      return {};
  }
  return {};
}

Result<Options> checked_options(const Options& given, std::span<const OptionInfo> known) {
  Options checked;
  for (const OptionInfo& option : known)
    if (!option.default_value.empty()) checked.set(option.name, option.default_value);
  for (const auto& [name, values] : given.all()) {
    const OptionInfo* option = find_option(known, name);
    if (!option) {
      std::vector<std::string> names;
      for (const OptionInfo& o : known) names.push_back(o.name);
      const auto near = nearest(name, names);
      return error("option.unknown", fmt::format("there is no option '{}'", name))
          .hint(near.empty() ? fmt::format("there are {}", alternatives(names))
                             : fmt::format("did you mean {}?", alternatives(near)));
    }
    if (single(*option) && values.size() != 1)
      return error("option.value", fmt::format("option '{}' takes one value, not {}", name, values.size()));
    for (const std::string& value : values) TOSAIC_CHECK(check_option(*option, value));
    checked.set(option->name, values);
  }
  return checked;
}

}  // namespace tosaic
