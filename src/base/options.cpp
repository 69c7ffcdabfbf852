// SPDX-License-Identifier: Apache-2.0
#include "tosaic/options.hpp"

#include <cstdlib>

namespace tosaic {

Options& Options::set(const std::string& name, std::string value) { return set(name, std::vector{std::move(value)}); }

Options& Options::set(const std::string& name, std::vector<std::string> values) {
  values_[name] = std::move(values);
  return *this;
}

std::vector<std::string> Options::list(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::string Options::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? "" : found->second.front();
}

bool Options::flag(std::string_view name) const { return text(name) == "true"; }

std::int64_t Options::number(std::string_view name) const { return std::strtoll(text(name).c_str(), nullptr, 10); }

std::string Options::of_kind(std::string_view name, std::string_view kind) const {
  std::string value;
  const auto found = values_.find(name);
  if (found == values_.end()) return value;
  for (const std::string& pair : found->second)  // the last one counts
    if (pair.size() > kind.size() && pair.starts_with(kind) && pair[kind.size()] == '=')
      value = pair.substr(kind.size() + 1);
  return value;
}

}  // namespace tosaic
