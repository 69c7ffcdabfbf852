// SPDX-License-Identifier: Apache-2.0
#include "targets/ethos_u/vela_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>

#include "targets/target.h"

namespace tosaic {
namespace {

constexpr std::string_view system_prefix = "System_Config.", memory_prefix = "Memory_Mode.";

bool has(const std::vector<std::string>& sections, const std::string& name) {
  return std::find(sections.begin(), sections.end(), name) != sections.end();
}

// "u55" of "ethos-u55-128"; empty for targets that Vela has no part in.
std::string family_of(const std::string& target) {
  const auto first = target.find('-'), last = target.rfind('-');
  return target.starts_with("ethos-") && last > first ? target.substr(first + 1, last - first - 1) : "";
}

bool speaks_of(const std::string& name, const std::string& family) {
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find(family) != std::string::npos;
}

}  // namespace

std::vector<std::string> vela_sections(std::string_view text) {
  std::vector<std::string> sections;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const auto begin = line.find_first_not_of(" \t[");
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_first_of("]\r", begin) - begin);
    if (line.starts_with(system_prefix) || line.starts_with(memory_prefix)) sections.emplace_back(line);
  }
  return sections;
}

bool fits_family(const std::string& system_config, const std::string& accelerator) {
  const std::string own = family_of(accelerator);
  bool other = false;
  for (const Target& target : all_targets())
    if (const std::string family = family_of(target.name); !family.empty() && family != own)
      other |= speaks_of(system_config, family);
  return !other || speaks_of(system_config, own);
}

Diagnostic wrong_family(const std::string& system_config, const std::string& accelerator,
                        const std::vector<std::string>& sections) {
  std::vector<std::string> fitting;
  for (const std::string& section : sections)
    if (const std::string name = section.substr(section.find('.') + 1);
        section.starts_with(system_prefix) && fits_family(name, accelerator))
      fitting.push_back(name);
  Diagnostic why =
      error("vela.config", fmt::format("the system configuration {} is not {}'s", system_config, accelerator));
  why.notes.emplace_back("Vela would compile with it, and its estimate would be another device's");
  why.help = fmt::format("those that fit: {}", fmt::join(fitting, ", "));
  if (fitting.empty()) why.help = fmt::format("leave --system-config out for the default of {}", accelerator);
  return why;
}

Status check_vela_config(const std::string& ini, const std::vector<std::string>& sections,
                         const std::string& accelerator, const VelaOptions& options) {
  const struct {
    std::string_view prefix;
    const std::string& name;
    const char *what, *option;
  } wanted[] = {{system_prefix, options.system_config, "system configuration", "--system-config"},
                {memory_prefix, options.memory_mode, "memory mode", "--memory-mode"}};
  for (const auto& [prefix, name, what, option] : wanted) {
    if (has(sections, fmt::format("{}{}", prefix, name))) continue;
    std::vector<std::string> names;
    for (const std::string& section : sections)
      if (section.starts_with(prefix) &&
          (prefix == memory_prefix || fits_family(section.substr(prefix.size()), accelerator)))
        names.push_back(section.substr(prefix.size()));
    Diagnostic why = error("vela.config", ini.empty() ? fmt::format("Vela has no {} {}", what, name)
                                                      : fmt::format("it has no section [{}{}]", prefix, name));
    why.help = fmt::format("{} takes one of those that it has for {}: {}", option, accelerator, fmt::join(names, ", "));
    if (names.empty()) why.help = fmt::format("its sections: {}; choose with {}", fmt::join(sections, ", "), option);
    return std::move(why).at({ini, 0, ""});
  }
  if (!fits_family(options.system_config, accelerator))
    return wrong_family(options.system_config, accelerator, sections).at({ini, 0, ""});
  return {};
}

}  // namespace tosaic
