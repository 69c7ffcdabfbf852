// SPDX-License-Identifier: Apache-2.0
// tosaic completion: what a shell offers after TAB, written from the description that the parser itself has.
#include <fmt/format.h>
#include <algorithm>
#include <memory>

#include "tools/tool.h"
#include "tools/usage.h"
#include "tools/values.h"

namespace tosaic::tools {
namespace {

struct OptionWords {
  std::vector<std::string> names;   // "-o", "--output"
  std::vector<std::string> values;  // the words that it takes, when they are known
  bool takes_value = false, files = false, folders = false;
  std::string description;
};

struct CommandWords {
  std::string name, description;
  std::vector<OptionWords> options;
  std::vector<std::string> values;  // of the positional argument
  bool files = false;
};

// The type that the help shows: "TEXT:{auto,int8}", "FILE", "DIR", "TARGET", "KIND=PATH".
std::vector<std::string> known_values(const std::string& type) {
  std::vector<std::string> values;
  if (type == "TARGET")
    for (const TargetInfo& t : targets()) values.push_back(t.name);
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return values;
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

CommandWords described(const CLI::App& app, const CLI::App& command) {
  CommandWords words{command.get_name(), command.get_description(), {}, {}, false};
  for (const CLI::Option* option : options_of(command)) {
    const std::string type = option->get_type_name();
    if (option->get_positional()) {
      words.files = type == "FILE";
      words.values = command.get_name() == "help" ? command_names(app) : known_values(type);
      continue;
    }
    OptionWords o;
    for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
    o.takes_value = option->get_items_expected_max() > 0;
    o.files = type == "FILE";
    o.folders = type == "DIR";
    o.values = known_values(type);
    o.description = option->get_description();
    words.options.push_back(std::move(o));
  }
  return words;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

// For single quotes, in every shell here.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// bash: one case per option that takes a value, then the words of the command.
std::string bash(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& c : commands) {
    if (!c.name.empty()) names += (names.empty() ? "" : " ") + c.name;
    std::string all, values;
    for (const OptionWords& o : c.options) {
      all += (all.empty() ? "" : " ") + joined(o.names);
      if (!o.takes_value) continue;
      const std::string reply = o.folders ? "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))"
                                : !o.values.empty()
                                    ? fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))", quoted(joined(o.values)))
                                : o.files ? "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))"
                                          : "COMPREPLY=()";
      values += fmt::format("        {}) {}; return ;;\n", joined(o.names, "|"), reply);
    }
    cases +=
        fmt::format("    {})\n      words={}\n      plain={}\n      files={}\n      case $prev in\n{}      esac ;;\n",
                    c.name.empty() ? "''" : c.name, quoted(all), quoted(joined(c.values)), c.files ? 1 : 0, values);
  }
  return fmt::format(
      "# bash completion of tosaic: source this file, or put it into "
      "~/.local/share/bash-completion/completions/tosaic\n"
      "_tosaic() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command='' words plain files i\n"
      "  local commands={}\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \" $commands \" in *\" ${{COMP_WORDS[i]}} \"*) command=${{COMP_WORDS[i]}}; break ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case $command in\n{}"
      "  esac\n"
      "  [ -z \"$command\" ] && plain=$commands\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "  elif [ -n \"$plain\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$plain\" -- \"$cur\"))\n"
      "  elif [ \"$files\" = 1 ]; then\n"
      "    compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "  fi\n"
      "}}\n"
      "complete -F _tosaic tosaic\n",
      quoted(names), cases);
}

// zsh's _arguments: '(-o --output)'{-o,--output}'[description]:value:action'
std::string zsh(const std::vector<CommandWords>& commands) {
  const auto escaped = [](std::string text) {
    for (const char* special : {"\\", "[", "]", ":"})
      for (std::size_t at = 0; (at = text.find(special, at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::string list, cases, global;
  for (const CommandWords& c : commands) {
    std::string specs;
    for (const OptionWords& o : c.options) {
      const std::string action = !o.takes_value     ? ""
                                 : o.folders        ? ":folder:_files -/"
                                 : o.values.empty() ? (o.files ? ":file:_files" : ":value: ")
                                                    : ":value:(" + joined(o.values) + ")";
      for (const std::string& name : o.names)
        specs += fmt::format(" \\\n      {}", quoted(fmt::format("*{}[{}]{}", name, escaped(o.description), action)));
    }
    if (!c.values.empty()) specs += " \\\n      " + quoted("*::word:(" + joined(c.values) + ")");
    if (c.files) specs += " \\\n      " + quoted("*:file:_files");
    if (c.name.empty()) {
      global = specs;
      continue;
    }
    list += "    " + quoted(escaped(c.name) + ":" + escaped(c.description)) + "\n";
    cases += fmt::format("    {})\n    _arguments{} ;;\n", c.name, specs);
  }
  return fmt::format(
      "#compdef tosaic\n"
      "# zsh completion of tosaic: put this file into a folder of $fpath under the name _tosaic\n"
      "_tosaic() {{\n"
      "  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  local line state\n"
      "  _arguments -C{} \\\n      '1: :->command' '*::argument:->arguments'\n"
      "  case $state in\n"
      "  command) _describe command commands ;;\n"
      "  arguments)\n"
      "    case $line[1] in\n{}"
      "    esac ;;\n"
      "  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _tosaic ]; then _tosaic \"$@\"; else compdef _tosaic tosaic; fi\n",
      list, global, cases);
}

std::string fish(const std::vector<CommandWords>& commands) {
  // Within fish's quotes, both the quote and the backslash are escaped by a backslash.
  const auto string = [](std::string text) {
    for (std::size_t at = 0; (at = text.find_first_of("\\'", at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return "'" + text + "'";
  };
  std::string out =
      "# fish completion of tosaic: put this file into ~/.config/fish/completions/tosaic.fish\n"
      "complete -c tosaic -f\n";
  for (const CommandWords& c : commands) {
    const std::string when =
        c.name.empty() ? "-n __fish_use_subcommand" : "-n " + string("__fish_seen_subcommand_from " + c.name);
    if (!c.name.empty())
      out += fmt::format("complete -c tosaic -n __fish_use_subcommand -a {} -d {}\n", c.name, string(c.description));
    if (c.files) out += fmt::format("complete -c tosaic {} -F\n", when);
    if (!c.values.empty()) out += fmt::format("complete -c tosaic {} -a {}\n", when, string(joined(c.values)));
    for (const OptionWords& o : c.options) {
      std::string names;
      for (const std::string& name : o.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const std::string value = !o.takes_value      ? ""
                                : !o.values.empty() ? " -x -a " + string(joined(o.values))
                                : o.folders         ? " -x -a '(__fish_complete_directories)'"
                                : o.files           ? " -r -F"
                                                    : " -x";
      out += fmt::format("complete -c tosaic {}{}{} -d {}\n", when, names, value, string(o.description));
    }
  }
  return out;
}

}  // namespace

void describe_completion(CLI::App* command, Tool& tool) {
  CLI::App& app = *command->get_parent();
  command->description("print a script with which a shell completes commands and options");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "the shell")->required()->check(one_of({"bash", "zsh", "fish"}));
  command->footer(
      "examples:\n"
      "  source <(tosaic completion bash)\n"
      "  tosaic completion zsh > ~/.zfunc/_tosaic\n"
      "  tosaic completion fish > ~/.config/fish/completions/tosaic.fish");
  command->callback([=, &app, &tool] {
    tool.action = [=, &app, &tool] {
      std::vector<CommandWords> commands{described(app, app)};
      commands[0].name.clear();
      for (const CLI::App* c : app.get_subcommands({}))
        if (!c->get_name().empty()) commands.push_back(described(app, *c));
      tool.output += *shell == "bash" ? bash(commands) : *shell == "zsh" ? zsh(commands) : fish(commands);
    };
  });
}

}  // namespace tosaic::tools
