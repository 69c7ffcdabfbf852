// SPDX-License-Identifier: Apache-2.0
#include "tools/described.h"

#include <set>

#include "tools/values.h"

namespace tosaic::tools {
namespace {

// "--quantize,--quantise"; a flag that is on by default is given to turn it off.
std::string flag_names(const OptionInfo& option) {
  const std::string prefix = option.kind == OptionInfo::Kind::flag && option.default_value == "true" ? "--no-" : "--";
  return prefix + option.name + (option.alias.empty() ? "" : "," + prefix + option.alias);
}

std::string placeholder(const OptionInfo& option) {
  if (!option.placeholder.empty()) return option.placeholder;
  switch (option.kind) {
    case OptionInfo::Kind::number: return "N";
    case OptionInfo::Kind::file: return "FILE";
    case OptionInfo::Kind::pairs: return "KIND=PATH";
    case OptionInfo::Kind::size: return "SIZE";
    default: return "TEXT";
  }
}

void add_one(CLI::App& command, const std::shared_ptr<Options>& to, const OptionInfo& option) {
  using Kind = OptionInfo::Kind;
  const std::string name = option.name;
  if (option.kind == Kind::flag) {
    const bool value = option.default_value != "true";
    command.add_flag_callback(
        flag_names(option), [=] { to->set(name, value); }, option.sentence);
    return;
  }
  const bool several = option.kind == Kind::list || option.kind == Kind::pairs;
  CLI::Option* flag = nullptr;
  if (several) {
    flag = command.add_option_function<std::vector<std::string>>(
        flag_names(option), [=](const std::vector<std::string>& values) { to->set(name, values); }, option.sentence);
    flag->allow_extra_args(false);
    if (option.kind == Kind::list && option.allowed.empty()) flag->take_all();
    if (option.kind == Kind::list && !option.allowed.empty()) flag->delimiter(',');
  } else {
    flag = command.add_option_function<std::string>(
        flag_names(option), [=](const std::string& value) { to->set(name, value); }, option.sentence);
    if (!option.default_value.empty() && option.kind != Kind::number) flag->default_str(option.default_value);
  }
  if (option.kind == Kind::number)
    flag->check(whole_number(option.lowest, option.highest));
  else if (option.kind == Kind::size)
    flag->check(board_size());
  else if (option.kind == Kind::pairs)
    flag->check(pair_of(option.allowed));
  else if (!option.allowed.empty())
    flag->check(one_of(option.allowed));
  if (option.allowed.empty() || option.kind == Kind::pairs) flag->type_name(placeholder(option));
}

}  // namespace

std::shared_ptr<Options> add_described(CLI::App& command, std::span<const OptionInfo> options) {
  auto to = std::make_shared<Options>();
  for (const OptionInfo& option : options) add_one(command, to, option);
  return to;
}

std::vector<OptionInfo> options_of_integers() {
  std::vector<OptionInfo> options = compile_options();
  std::erase_if(options, [](const OptionInfo& option) { return !option.of_integers; });
  return options;
}

void add_described_targets(CLI::App& command, const std::shared_ptr<Options>& to) {
  std::set<std::string> families, names;
  for (const TargetInfo& target : targets()) {
    if (target.options.empty() || !families.insert(target.family).second) continue;
    CLI::App* group = nullptr;
    for (const OptionInfo& option : target.options) {
      if (!names.insert(option.name).second) continue;  // one that two families have stands once
      if (!group) group = command.add_option_group(target.family);
      add_one(*group, to, option);
    }
  }
}

void add_described_family(CLI::App& command, const std::shared_ptr<Options>& to, const std::string& family) {
  for (const TargetInfo& target : targets()) {
    if (target.family != family) continue;
    for (const OptionInfo& option : target.options) add_one(command, to, option);
    return;
  }
}

}  // namespace tosaic::tools
