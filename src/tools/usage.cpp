// SPDX-License-Identifier: Apache-2.0
#include "tools/usage.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/spelling.h"

namespace tosaic::tools {
namespace {

std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Null: anything goes.
CLI::Validator* check_of(const CLI::Option& option) {
  try {
    return const_cast<CLI::Option&>(option).get_validator(0);  // CLI11 has it for objects that may change only
  } catch (const CLI::OptionNotFound&) { return nullptr; }
}

const CLI::Option* option_named(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : options_of(command))
    if (!name.empty() && option->check_name(name)) return option;
  return nullptr;
}

// "tosaic compile", for people.
std::string called(const CLI::App& command) { return command.get_parent() ? "tosaic " + command.get_name() : "tosaic"; }

std::string see_help(const CLI::App& command) {
  return fmt::format("`{} --help` shows the options and examples", called(command));
}

std::string did_you_mean(const std::vector<std::string>& near, const std::string& otherwise) {
  return near.empty() ? otherwise : fmt::format("did you mean {}?", alternatives(near));
}

Diagnostic unknown_option(const CLI::App& app, const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  auto why = error("usage.unknown-option", fmt::format("{} has no option {}", called(command), name));
  const auto near = nearest(name, names_of(command));
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands({}))
    if (option_named(*other, name)) others.push_back("tosaic " + other->get_name());
  if (near.empty() && !others.empty()) return std::move(why).hint(fmt::format("{} has it", alternatives(others)));
  return std::move(why).hint(did_you_mean(near, see_help(command)));
}

Diagnostic one_too_many(const CLI::App& command, const std::string& word) {
  std::string takes;
  for (const CLI::Option* option : options_of(command))
    if (option->get_positional()) takes += (takes.empty() ? "" : ", ") + option->get_name();
  return error("usage.extra", takes.empty()
                                  ? fmt::format("{} takes options only, and is given '{}'", called(command), word)
                                  : fmt::format("{} takes one {}, and '{}' is one more", called(command), takes, word))
      .hint(see_help(command));
}

std::optional<Diagnostic> left_over(const CLI::App& app) {
  const CLI::App& command = chosen(app);
  for (const CLI::App* at : {&app, &command}) {
    const auto words = at->remaining(false);
    if (words.empty()) continue;
    const std::string& word = words.front();
    if (word.size() > 1 && word[0] == '-') return unknown_option(app, *at, word);
    return at->get_parent() ? one_too_many(*at, word) : unknown_command(app, word);
  }
  return std::nullopt;
}

// "--target: 1 required TEXT missing" names the option before the colon, "model is required" before the blank.
std::string subject_of(const std::string& text) { return text.substr(0, text.find_first_of(": ")); }

Diagnostic missing_argument(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = option_named(command, name);
  const std::string about = option && !option->get_description().empty() ? ": " + option->get_description() : "";
  return error("usage.missing", fmt::format("{} needs {}{}{}", called(command),
                                            name.starts_with("-") ? "the option " : "a ", name, about))
      .hint(see_help(command));
}

}  // namespace

Diagnostic unknown_command(const CLI::App& app, const std::string& word) {
  const auto names = command_names(app);
  auto why = error("usage.unknown-command", fmt::format("there is no command '{}'", word));
  std::error_code failure;
  if (std::filesystem::exists(word, failure) && nearest(word, names).empty())
    return std::move(why).hint(fmt::format("the command comes before the file, e.g. tosaic inspect {}", word));
  return std::move(why).hint(did_you_mean(nearest(word, names), "the commands are " + CLI::detail::join(names, ", ")));
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> all = command.get_options();
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* a) { return a->get_name().empty(); }))
    for (const CLI::Option* option : group->get_options()) all.push_back(option);
  return all;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return names;
}

const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::vector<std::string> words_of(const CLI::App& app, int count, char** words) {
  const CLI::App* command = nullptr;
  const CLI::Option* several = nullptr;  // may take the next word as well
  std::string name;
  std::vector<std::string> out;
  bool value = false;  // the next word is the option's first
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    if (!command) {
      for (const CLI::App* c : app.get_subcommands({}))
        if (c->get_name() == word) command = c;
    } else if (value) {
      value = false;
    } else if (word.size() > 1 && word[0] == '-') {
      name = word.substr(0, word.find('='));
      const CLI::Option* option = option_named(*command, name);
      several = option && option->get_items_expected_max() > 1 && check_of(*option) ? option : nullptr;
      value = several && word == name;
    } else if (several) {
      std::string given = word;
      if ((*check_of(*several))(given).empty())
        out.push_back(name);
      else
        several = nullptr;
    }
    out.push_back(std::move(word));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::optional<Diagnostic> swallowed_option(const CLI::App& app) {
  const CLI::App& command = chosen(app);
  for (const CLI::Option* option : options_of(command))
    for (const std::string& value : option->results())
      if (value.size() > 1 && value[0] == '-' && option->get_items_expected_max() > 0 && option_named(command, value))
        return error("usage.missing", fmt::format("{} needs a value before {}", option->get_name(), value))
            .hint(see_help(command));
  return std::nullopt;
}

Diagnostic usage_error(const CLI::App& app, const CLI::ParseError& problem) {
  const CLI::App& command = chosen(app);
  const std::string said = problem.what(), kind = problem.get_name(), subject = subject_of(said);
  if (auto swallowed = swallowed_option(app)) return *std::move(swallowed);
  if (kind == "ArgumentMismatch") {
    const CLI::Option* option = option_named(command, subject);
    return error("usage.missing",
                 fmt::format("{} needs a value{}", subject, option ? ": " + option->get_description() : std::string()))
        .hint(see_help(command));
  }
  if (kind == "ValidationError") {
    const std::string what = said.substr(std::min(said.size(), subject.size() + 2));
    return error("usage.value", what.starts_with("takes ") ? subject + " " + what : subject + ": " + what)
        .hint(see_help(command));
  }
  if (auto extra = left_over(app)) return *std::move(extra);
  if (kind == "RequiredError" && &command == &app)
    return error("usage.no-command", "a command is missing")
        .hint("the commands are " + CLI::detail::join(command_names(app), ", ") + "; `tosaic --help` explains them");
  if (kind == "RequiredError") return missing_argument(command, subject);
  return error("usage.value", said).hint(see_help(command));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) return " " + option->get_option_text();
  std::string text;
  if (option->get_type_size() != 0) {
    if (!option->get_type_name().empty()) text += " " + get_label(option->get_type_name());
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " " + get_label("REQUIRED");
  }
  const auto others = [&](const char* label, const std::set<CLI::Option*>& options) {
    if (!options.empty()) text += " " + get_label(label) + ":";
    for (const CLI::Option* other : options) text += " " + other->get_name();
  };
  others("Needs", option->get_needs());
  others("Excludes", option->get_excludes());
  return text;
}

}  // namespace tosaic::tools
